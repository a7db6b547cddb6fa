"""Temporary tables: ordinary tables in a schema that belongs to one session, and is dropped with it.

>>> schema_of_session(7, 3)
'pg_temp_7_3'
>>> epoch_of('pg_temp_7_3')
7
"""

from __future__ import annotations

import re

# Each session's name for its own temporary schema.
OWN_SCHEMA = "pg_temp"
_SCHEMA = re.compile(r"pg_temp_([0-9]+)_[0-9]+")


def schema_of_session(epoch: int, actor: int) -> str:
    """The epoch tells whether the session may still exist."""
    return f"pg_temp_{epoch}_{actor}"


def is_temporary(schema: str) -> bool:
    return schema.startswith("pg_temp_") and _SCHEMA.fullmatch(schema) is not None


def epoch_of(schema: str) -> int | None:
    found = _SCHEMA.fullmatch(schema)
    return int(found[1]) if found is not None else None
