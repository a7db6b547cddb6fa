"""Schemas in the style of several tools: created, filled, queried and looked at on both, with the same outcome of every
statement, errors included.

A dump is statements, one on each line or ended by a semicolon, and after `-- queries` what is asked. The number of
compared statements and of differences is printed; what differs is listed below with a reason.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.both import Answer, Both, open_both, values
from tests.support.postgres import LocalPostgres

FOLDER = Path(__file__).parent / "testdata" / "dumps"
DUMPS = sorted(path.stem for path in FOLDER.iterdir())

# What is asked of every schema.
INTROSPECTION = (
    "SELECT table_schema, table_name, table_type, is_insertable_into FROM information_schema.tables WHERE {own}",
    "SELECT table_schema, table_name, column_name, ordinal_position, is_nullable, data_type, character_maximum_length,"
    " numeric_precision, numeric_scale, udt_name, is_identity, identity_generation, is_generated"
    " FROM information_schema.columns WHERE {own}",
    "SELECT table_schema, table_name, column_name, column_default FROM information_schema.columns WHERE {own}",
    "SELECT constraint_schema, constraint_name, table_name, constraint_type, is_deferrable, initially_deferred"
    " FROM information_schema.table_constraints WHERE {own} AND constraint_name NOT LIKE '%not_null'",
    "SELECT constraint_name, table_name, column_name, ordinal_position, position_in_unique_constraint"
    " FROM information_schema.key_column_usage WHERE {own}",
    "SELECT constraint_name, unique_constraint_name, match_option, update_rule, delete_rule"
    " FROM information_schema.referential_constraints",
    "SELECT constraint_name, table_name, column_name FROM information_schema.constraint_column_usage WHERE {own}",
    "SELECT sequence_schema, sequence_name, data_type, start_value, minimum_value, maximum_value, increment,"
    " cycle_option FROM information_schema.sequences",
    "SELECT schemaname, tablename, indexname, indexdef FROM pg_indexes WHERE schemaname NOT IN ('pg_catalog')",
    "SELECT conname, contype, conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace <> 'pg_catalog'::regnamespace AND connamespace <> 'information_schema'::regnamespace",
    "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attnum FROM pg_attribute a"
    " JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE a.attnum > 0 AND NOT a.attisdropped AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"
    " AND c.relkind IN ('r', 'v')",
    "SELECT t.typname, e.enumlabel FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid ORDER BY e.enumsortorder",
)
OWN = "table_schema NOT IN ('pg_catalog', 'information_schema', 'seachange')"

# By dump, the beginnings of statements whose outcome differs, and why.
_DEFAULTS = "a default that is a constant shows in the form of its column"
_REAL = "a real is a number in binary to programs, with all digits that it has"
_PLACES = "numbers of columns are places among those that are seen"
DIFFERENT: dict[str, dict[str, str]] = {
    "clauses": {
        "SELECT table_schema, table_name, column_name, ordinal_position": _PLACES,
        "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attnum": _PLACES,
    },
    "handwritten": {
        'SELECT * FROM "inventory"."product"': _REAL,
    },
    "prisma": {
        'CREATE TABLE "Wide"': "a numeric has at most 38 digits",
        'DROP TABLE "Wide"': "a numeric has at most 38 digits",
    },
    "rails": {
        "SELECT table_schema, table_name, column_name, column_default": _DEFAULTS,
    },
    "sqlalchemy": {"SELECT table_schema, table_name, column_name, column_default": _DEFAULTS},
}


def read_dump(name: str) -> tuple[list[str], list[str]]:
    made, _, asked = (FOLDER / f"{name}.sql").read_text().partition("-- queries\n")
    return [[s.strip() for s in part.split(";\n") if s.strip()] for part in (made, asked)]  # type: ignore[return-value]


def stored(both: Both) -> list[str]:
    """Queries of all rows of all tables."""
    tables = both.ask_postgres(f"SELECT table_schema, table_name FROM information_schema.tables WHERE {OWN}")
    return [f'SELECT * FROM "{schema}"."{table}"' for schema, table in tables.rows or ()]


@pytest.mark.parametrize("name", DUMPS)
def test_dump_restores_as_in_postgresql(name: str, postgres_server: LocalPostgres, tmp_path: Path) -> None:
    with open_both(postgres_server, tmp_path) as both:
        made, asked = read_dump(name)
        found = list(_differences(both, made))
        rows = stored(both)
        found += _differences(both, rows)
        introspection = [query.format(own=OWN) for query in INTROSPECTION]
        found += _differences(both, introspection)
        found += _differences(both, [*asked, *rows])
    count = len(made) + len(asked) + len(introspection) + 2 * len(rows)
    print(f"{name}: {count} statements compared, {len(found)} differ")
    listed = DIFFERENT.get(name, {})
    unlisted = [how for statement, how in found if not any(statement.startswith(start) for start in listed)]
    assert not unlisted, "\n".join(unlisted)
    gone = [start for start in listed if not any(statement.startswith(start) for statement, _ in found)]
    assert not gone, f"these no longer differ: {gone}"


def _differences(both: Both, statements: list[str]) -> Iterator[tuple[str, str]]:
    for statement in statements:
        expected, actual = _outcome(both.ask_postgres(statement)), _outcome(both.ask_ours(statement))
        if expected != actual:
            how = f"    PostgreSQL {_only(expected, actual)}\n    ours       {_only(actual, expected)}"
            yield statement, f"{statement[:300]}\n{how}"


def _outcome(answer: Answer) -> list[str] | str:
    return values(answer)


def _only(these: list[str] | str, those: list[str] | str) -> str:
    if isinstance(these, str) or isinstance(those, str):
        return str(these)[:400]
    return "; ".join(row for row in these if row not in those)[:500]
