"""Isolation levels, spelled as in PostgreSQL."""

from __future__ import annotations

from enum import StrEnum


class Isolation(StrEnum):
    READ_COMMITTED = "read committed"
    REPEATABLE_READ = "repeatable read"
    SERIALIZABLE = "serializable"


# READ UNCOMMITTED promises less than READ COMMITTED gives, so it is the same level, as in PostgreSQL.
ISOLATION_BY_NAME: dict[str, Isolation] = {
    "read uncommitted": Isolation.READ_COMMITTED,
    **{level.value: level for level in Isolation},
}
