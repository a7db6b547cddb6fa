"""System views: the relations of schema `seachange`, through which the engine reports its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from seachange.model.scan import Scan
from seachange.sql.pgcatalog.rows import find_relation
from seachange.sql.pgcatalog.scan import HIDDEN
from seachange.sql.port.system_columns import SYSTEM_SCHEMA, SYSTEM_VIEWS
from seachange.storage.arrow import arrow_type


def is_system(schema: str | None, name: str) -> bool:
    return schema == SYSTEM_SCHEMA and name in SYSTEM_VIEWS


def is_virtual_relation(schema: str | None, name: str) -> bool:
    """Whether a name is that of a system view or of a relation of pg_catalog."""
    return is_system(schema, name) or find_relation(schema, name) is not None


# Columns that may contain values of rows or text of statements: only superusers see them.
_PRIVATE: dict[str, frozenset[str]] = {
    "jobs": frozenset({"statement", "error", "hint"}),
    "changes": frozenset({"statement"}),
    "leases": frozenset({"statement"}),
    "cache": frozenset({"store", "folder"}),
    "events": frozenset({"event"}),
}


def without_private(name: str, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    private = _PRIVATE.get(name, frozenset())
    hides = [column in private for column in SYSTEM_VIEWS[name]]
    return [
        tuple(HIDDEN if hidden and value is not None else value for value, hidden in zip(row, hides, strict=True))
        for row in rows
    ]


def scan_system(name: str, rows: Sequence[tuple[Any, ...]], number: int) -> Scan:
    """The rows of a view as one Arrow table; `number` distinguishes the references of a statement."""
    columns = SYSTEM_VIEWS[name]
    schema = pa.schema([pa.field(column, arrow_type(type_)) for column, type_ in columns.items()])
    table = pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema=schema)
    relation = f"system_{name}_{number}"
    return Scan(f"SELECT * FROM {relation}", {}, {relation: table}, "system view")  # noqa: S608
