"""A readable form of a table at a snapshot, for DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ScanFacts:
    """What a table at a snapshot is made of: segments read raw, segments read around superseded rows, rows inline in
    the catalog, and rows that the transaction itself wrote."""

    untouched: int
    touched: int
    superseded: int
    inline_rows: int
    own_rows: int


@dataclass(frozen=True, slots=True)
class Scan:
    """A DuckDB query text whose result columns are the table's visible columns by name, the named values that it
    takes as parameters (`$name`), and the Arrow tables that it reads by name. Names are unique per scan, so several
    scans go into one statement. The text depends on the table's shape only, never on how many segments it has.
    `access` says in words how the rows are found; `found` are the values of the columns if it was by a look-up."""

    sql: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    relations: Mapping[str, object] = field(default_factory=dict)
    access: str = "full scan"
    found: Mapping[str, Sequence[Any]] | None = None
