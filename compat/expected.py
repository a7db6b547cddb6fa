"""What is known to fail, and why: all else is expected to work."""

from __future__ import annotations

_NOT_NULL = "SET NOT NULL of a table with rows, in a transaction block, is refused"
_SCALE = "a numeric without a scale loses the zeros at its end"

# By client and feature.
KNOWN_FAILURES: dict[tuple[str, str], str] = {
    ("asyncpg", "enum types"): "there are no arrays of enum types",
    ("node-postgres", "values"): _SCALE,
    ("JDBC", "values"): _SCALE,
    ("Alembic", "upgrade"): _NOT_NULL,
    ("Alembic", "autogenerate finds differences"): _NOT_NULL,
    ("Alembic", "batch_alter_table, constraints, comments"): _NOT_NULL,
}
