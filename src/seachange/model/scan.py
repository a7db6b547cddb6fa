"""A scan: a table at a snapshot in a form that DuckDB reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ScanFacts:
    """The parts of a table at a snapshot: segments read as they are, segments with superseded rows, rows inline in the
    catalog, and rows that the transaction itself wrote."""

    untouched: int
    touched: int
    superseded: int
    inline_rows: int
    own_rows: int


@dataclass(frozen=True, slots=True)
class Scan:
    """A DuckDB query whose result columns are the table's visible columns by name, the values of its parameters
    (`$name`), and the Arrow tables that it reads by name. Names are unique per scan, so several scans fit into one
    statement. The text depends only on the table's shape, never on its number of segments. `access` describes how the
    rows are found; `found` are the values of the columns if they were found by a lookup."""

    sql: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    relations: Mapping[str, object] = field(default_factory=dict)
    access: str = "full scan"
    found: Mapping[str, Sequence[Any]] | None = None
