"""Known failures of clients, with reasons: everything else is expected to work."""

from __future__ import annotations

_NOT_NULL = "SET NOT NULL after a change that relied on an empty table, in one transaction block, is refused"

# By client and feature.
KNOWN_FAILURES: dict[tuple[str, str], str] = {
    ("node-postgres", "values"): "a column of numerics without digits loses the zeros at their end",
    ("Alembic", "upgrade"): _NOT_NULL,
    ("Alembic", "autogenerate finds differences"): _NOT_NULL,
    ("Alembic", "batch_alter_table, constraints, comments"): _NOT_NULL,
}
