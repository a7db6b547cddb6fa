"""The views of the schema `seachange`: what the engine tells of itself, as relations that any query can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from seachange.model.scan import Scan
from seachange.sql.pgcatalog.scan import find_relation
from seachange.sql.port.system_columns import SYSTEM_SCHEMA, SYSTEM_VIEWS
from seachange.storage.arrow import arrow_type


def is_system(schema: str | None, name: str) -> bool:
    return schema == SYSTEM_SCHEMA and name in SYSTEM_VIEWS


def is_told(schema: str | None, name: str) -> bool:
    """Whether a name means a relation that the engine makes up: one of these, or of the catalogs of PostgreSQL."""
    return is_system(schema, name) or find_relation(schema, name) is not None


# What may hold values of rows, or words of statements: superusers see it.
_PRIVATE: dict[str, frozenset[str]] = {
    "jobs": frozenset({"statement", "error", "hint"}),
    "events": frozenset({"event"}),
}
HIDDEN = "<insufficient privilege>"


def without_private(name: str, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    private = _PRIVATE.get(name, frozenset())
    hides = [column in private for column in SYSTEM_VIEWS[name]]
    return [
        tuple(HIDDEN if hidden and value is not None else value for value, hidden in zip(row, hides, strict=True))
        for row in rows
    ]


def scan_system(name: str, rows: Sequence[tuple[Any, ...]], number: int) -> Scan:
    """The rows of a view as one Arrow table; `number` tells the references of one statement apart."""
    columns = SYSTEM_VIEWS[name]
    schema = pa.schema([pa.field(column, arrow_type(type_)) for column, type_ in columns.items()])
    table = pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema=schema)
    relation = f"system_{name}_{number}"
    return Scan(f"SELECT * FROM {relation}", {}, {relation: table}, "system view")  # noqa: S608
