r"""The commands of the shell that begin with a backslash, under psql's names, as a table of queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from seachange.engine.session.session import Session
from seachange.errors import UndefinedTable
from seachange.sql.port.result import Result

_RELATIONS = """
SELECT n.nspname AS "Schema", c.relname AS "Name",
       CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index'
                      WHEN 'S' THEN 'sequence' ELSE 'other' END AS "Type",
       pg_get_userbyid(c.relowner) AS "Owner"
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind::text = ANY (string_to_array('{kinds}', ','))
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'seachange')
  AND c.relname LIKE CASE WHEN $1 = '' THEN '%' ELSE replace(replace($1, '*', '%'), '?', '_') END
ORDER BY 1, 2
"""
_SCHEMAS = """
SELECT nspname AS "Name", pg_get_userbyid(nspowner) AS "Owner" FROM pg_namespace
WHERE nspname NOT IN ('pg_catalog', 'information_schema', 'seachange') ORDER BY 1
"""
_ROLES = """
SELECT rolname AS "Role name", concat_ws(', ', CASE WHEN rolsuper THEN 'Superuser' END,
       CASE WHEN rolcreaterole THEN 'Create role' END, CASE WHEN rolcreatedb THEN 'Create DB' END,
       CASE WHEN NOT rolcanlogin THEN 'Cannot login' END) AS "Attributes"
FROM pg_roles WHERE rolname NOT LIKE 'pg\\_%' ORDER BY 1
"""
_DATABASES = 'SELECT datname AS "Name", pg_get_userbyid(datdba) AS "Owner" FROM pg_database ORDER BY 1'


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """`query` is its whole effect; None for commands that act on the shell. `takes_pattern`: on the names of the first
    column, with * and ?."""

    name: str
    purpose: str
    query: str | None = None
    takes_pattern: bool = False
    argument: str = ""


def _relations(name: str, purpose: str, kinds: str) -> ShellCommand:
    return ShellCommand(name, purpose, _RELATIONS.replace("{kinds}", kinds), True, "[PATTERN]")


COMMANDS: tuple[ShellCommand, ...] = (
    ShellCommand("\\d", "describe a table or view, or list all relations", argument="[NAME]"),
    _relations("\\dt", "list tables", "r"),
    _relations("\\di", "list indexes", "i"),
    _relations("\\dv", "list views", "v,m"),
    _relations("\\ds", "list sequences", "S"),
    _relations("\\dr", "list tables, views and sequences", "r,v,m,S"),
    ShellCommand("\\dn", "list schemas", _SCHEMAS),
    ShellCommand("\\du", "list roles", _ROLES),
    ShellCommand("\\l", "list databases", _DATABASES),
    ShellCommand("\\x", "switch between one line for a row and one for each column"),
    ShellCommand("\\timing", "show how long statements take, or stop it"),
    ShellCommand("\\e", "edit the last statement in $EDITOR"),
    ShellCommand("\\i", "run a file", argument="FILE"),
    ShellCommand("\\watch", "run the last statement again and again, until Ctrl-C", argument="[SECONDS]"),
    ShellCommand("\\?", "show these commands"),
    ShellCommand("\\q", "quit (or Ctrl-D)"),
)
_BY_NAME = {command.name: command for command in COMMANDS}

# Queries of the shell itself.
NAMES = {
    "completion": """
        SELECT relname::text FROM pg_class WHERE relnamespace <> 11 UNION
        SELECT attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace NOT IN (11) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1
    """,
    "progress": """
        SELECT id, stage, progress, waiting_for FROM seachange.jobs
        WHERE status IN ('pending', 'running', 'reverting') ORDER BY id DESC LIMIT 1
    """,
}

_COLUMNS = """
SELECT a.attname AS "Column", format_type(a.atttypid, a.atttypmod) AS "Type",
       CASE WHEN a.attnotnull THEN 'not null' ELSE '' END AS "Nullable", pg_get_expr(d.adbin, d.adrelid) AS "Default"
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_PARTS = (
    (
        "Indexes:",
        'SELECT pg_get_indexdef(indexrelid) AS "Index" FROM pg_index WHERE indrelid = $1::regclass ORDER BY 1',
    ),
    (
        "Constraints:",
        'SELECT conname AS "Name", pg_get_constraintdef(oid) AS "Definition" FROM pg_constraint '
        "WHERE conrelid = $1::regclass ORDER BY 1",
    ),
    (
        "Referenced by:",
        'SELECT conrelid::regclass::text AS "Table", conname AS "Name", pg_get_constraintdef(oid) AS "Definition" '
        "FROM pg_constraint WHERE confrelid = $1::regclass AND contype = 'f' ORDER BY 1, 2",
    ),
)


def find_command(name: str) -> ShellCommand | None:
    return _BY_NAME.get(name)


def describe_relation(session: Session, name: str) -> Iterator[tuple[str, Result]]:
    """The parts of its description with their titles; parts without rows are left out."""
    if session.execute("SELECT to_regclass($1)::text", (name,)).rows[0][0] is None:
        raise UndefinedTable(name=name)
    yield f"{name}:", session.execute(_COLUMNS, (name,))
    for title, query in _PARTS:
        result = session.execute(query, (name,))
        if result.rows:
            yield title, result


def help_text() -> str:
    """
    >>> print(help_text().splitlines()[1])
    \\dt [PATTERN]     list tables
    """
    return "\n".join(f"{f'{c.name} {c.argument}':<17} {c.purpose}" for c in COMMANDS)
