"""The rows of catalog relations as Arrow tables: those about the objects of a database, and those that are the same in
every database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import pyarrow as pa

from seachange.sql.pgcatalog import comments, information, procedures, relations, shared, types
from seachange.sql.pgcatalog.builtin import INFORMATION_SCHEMA, PG_CATALOG
from seachange.sql.pgcatalog.facts import Facts, Rows

Name = tuple[str, str]

# By PostgreSQL's name of a column's type: its Arrow type, and the value of a column that a row does not set.
_KEPT: Final[dict[str, tuple[pa.DataType, Any]]] = {
    "bool": (pa.bool_(), False),
    "int2": (pa.int16(), 0),
    "int4": (pa.int32(), 0),
    "int8": (pa.int64(), None),
    "cardinal_number": (pa.int32(), None),
    "oid": (pa.uint32(), 0),
    "xid": (pa.int64(), 0),
    "float4": (pa.float32(), 0.0),
    "float8": (pa.float64(), None),
    "bytea": (pa.binary(), None),
    "timestamptz": (pa.timestamp("us", "UTC"), None),
    "time_stamp": (pa.timestamp("us", "UTC"), None),
    "int2vector": (pa.list_(pa.int16()), []),
    "oidvector": (pa.list_(pa.uint32()), []),
    "int2[]": (pa.list_(pa.int16()), None),
    "oid[]": (pa.list_(pa.uint32()), None),
    "char": (pa.string(), ""),
}
# Other types: names, texts, and lists of them.
_TEXT: Final = (pa.string(), None)
_TEXTS: Final = (pa.list_(pa.string()), None)
# The modules with a function for each relation, by the schema; and those of rows that are the same in every database.
_MODULES: Final = {PG_CATALOG: (comments, procedures, relations, shared, types), INFORMATION_SCHEMA: (information,)}
_FIXED: Final[dict[Name, Callable[[Facts], Rows]]] = {
    (PG_CATALOG, "pg_type"): types.built_in_types,
    (INFORMATION_SCHEMA, "tables"): information.system_tables,
    (INFORMATION_SCHEMA, "columns"): information.system_columns,
}
# Relations whose rows are each about one descriptor, and what that refers to.
_OBJECTS: Final = """
    pg_attrdef pg_attribute pg_class pg_constraint pg_depend pg_enum pg_index pg_indexes pg_matviews pg_rewrite
    pg_sequence pg_sequences pg_tables pg_type pg_views
"""
_INFORMATION: Final = """
    check_constraints column_privileges columns constraint_column_usage constraint_table_usage key_column_usage
    referential_constraints role_column_grants role_table_grants table_constraints table_privileges tables
    view_column_usage view_table_usage views
"""
BY_DESCRIPTOR: Final[frozenset[Name]] = frozenset(
    (schema, name)
    for schema, names in ((PG_CATALOG, _OBJECTS), (INFORMATION_SCHEMA, _INFORMATION))
    for name in names.split()
)


@lru_cache(maxsize=1)
def columns() -> dict[Name, dict[str, str]]:
    """The columns of each relation, by schema and name, with PostgreSQL's names of their types."""
    found: dict[Name, dict[str, str]] = {}
    text = files("seachange.sql.pgcatalog").joinpath("columns.txt").read_text()
    for line in text.splitlines():
        name, *listed = line.split()
        schema, _, relation = name.partition(".")
        found[schema, relation] = dict(column.split(":") for column in listed)
    return found


def find_relation(schema: str | None, name: str) -> Name | None:
    """An unqualified name is searched in pg_catalog first."""
    if schema is None:
        schema = PG_CATALOG if name.startswith("pg_") else ""
    if schema not in (PG_CATALOG, INFORMATION_SCHEMA):
        return None
    return (schema, name) if (schema, name) in columns() else None


@lru_cache(maxsize=1)
def builtin_rows() -> dict[Name, list[dict[str, Any]]]:
    """Rows that are the same in every database: a line for each, after the name and the columns of their relation."""
    found: dict[Name, list[dict[str, Any]]] = {}
    text = files("seachange.sql.pgcatalog").joinpath("builtin_rows.txt").read_text()
    for line in text.splitlines():
        if not line.startswith(" "):
            relation, *named = line.split()
            rows = found[PG_CATALOG, relation] = []
            typed = columns()[PG_CATALOG, relation]
        else:
            rows.append({c: _read_value(typed[c], value) for c, value in zip(named, line.split(), strict=True)})
    return found


def _read_value(type_: str, text: str) -> Any:
    kept, _ = _KEPT.get(type_, _TEXT)
    if text == "-":
        return None
    return int(text) if pa.types.is_integer(kept) else text == "t" if pa.types.is_boolean(kept) else text


def listed_rows(facts: Facts, name: Name) -> pa.Table:
    """About the objects that the facts list; made by the function of the relation's name."""
    made = next((vars(module)[name[1]](facts) for module in _MODULES[name[0]] if name[1] in vars(module)), ())
    return arrow_table(name, list(made))


def fixed_rows(facts: Facts, name: Name) -> pa.Table:
    """The same, whatever objects there are."""
    made: Iterable[dict[str, Any]] = _FIXED[name](facts) if name in _FIXED else builtin_rows().get(name, ())
    return arrow_table(name, list(made))


def make_table(facts: Facts, name: Name) -> pa.Table:
    return pa.concat_tables([fixed_rows(facts, name), listed_rows(facts, name)])


def arrow_table(name: Name, rows: list[dict[str, Any]]) -> pa.Table:
    arrays = {}
    for column, type_ in columns()[name].items():
        kept, zero = _KEPT.get(type_, _TEXTS if type_.endswith("[]") else _TEXT)
        arrays[column] = pa.array([row.get(column, zero) for row in rows], kept)
    return pa.table(arrays)
