"""The branches of a scan's union: files read whole, by position, or from memory, and rows that are Arrow tables.

Untouched files are read directly. Touched ones are read through an anti-join of row positions, which skips row groups
like a direct read; or, where nothing could be skipped, from columns in memory without the superseded rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from seachange.model.ids import LayoutId
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.storage.arrow import arrow_type, column_name
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.patched import TouchedFile, in_memory
from seachange.storage.projection import StoredColumns, select_list
from seachange.storage.warehouse import Warehouse

# Smaller hash tables make the anti-join faster for rows that are not in them.
_JOINS_MAX = 4
_JOIN_ROWS_MIN = 1_000_000


@dataclass(slots=True)
class Branches:
    """Builds branches and collects what they refer to. `prefix` makes the names of one scan unique."""

    prefix: str
    table: Table
    index: Index
    columns: Sequence[Column]
    warehouse: Warehouse
    # A condition on `file_row_number`, to read a sample of each file.
    positions: str = ""
    parameters: dict[str, object] = field(default_factory=dict)
    relations: dict[str, object] = field(default_factory=dict)

    def parameter(self, value: object) -> str:
        name = f"{self.prefix}_p{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"

    def relation(self, table: pa.Table) -> str:
        name = f"{self.prefix}_r{len(self.relations)}"
        self.relations[name] = table
        return name

    def read(self, parts: SnapshotParts, from_memory: bool = False) -> list[str]:
        """`from_memory`: all rows of committed parts are needed."""
        layouts = {f.segment.layout_id for f in parts.files} | {layout_id for layout_id, _ in parts.inline}
        return [branch for layout_id in sorted(layouts) for branch in self._read(layout_id, parts, from_memory)]

    def _read(self, layout_id: LayoutId, parts: SnapshotParts, from_memory: bool) -> Iterator[str]:
        stored = self.table.stored_columns(self.index, self.table.layout_by_id[layout_id])
        select = select_list(stored, self.columns)
        files = _ends_first([f for f in parts.files if f.segment.layout_id == layout_id])
        rows = [table for i, table in parts.inline if i == layout_id]
        touched = [f for f in files if 0 < len(f.superseded) < f.segment.rows]
        kept = self._from_memory(stored, touched) if from_memory and touched else None
        if kept is not None:
            rows, touched = [*kept, *rows], []
        untouched = [f.segment for f in files if not len(f.superseded)]
        if untouched:
            yield f"SELECT {select} FROM read_parquet({self.parameter(self.warehouse.paths(untouched))}){self._where}"
        for part in _split(touched):
            yield self._by_position(select, part)
        if rows:
            yield f"SELECT {select} FROM {self.relation(_concatenated(rows))}"

    @property
    def _where(self) -> str:
        return f" WHERE {self.positions}" if self.positions else ""

    def _by_position(self, select: str, touched: Sequence[FileSlice]) -> str:
        paths = self.parameter(self.warehouse.paths([f.segment for f in touched]))
        gone = self.relation(_positions(touched))
        return (
            f"SELECT {select} FROM read_parquet({paths}) f ANTI JOIN {gone} p "
            f"ON f.file_index = p.file_index AND f.file_row_number = p.file_row_number{self._where}"
        )

    def _from_memory(self, stored: StoredColumns, touched: Sequence[FileSlice]) -> list[pa.Table] | None:
        """The needed columns of a layout's touched files; None if they do not fit in memory."""
        wanted = {column.id for column in self.columns}
        schema = pa.schema([(column_name(c), in_memory(arrow_type(t))) for c, t in stored if c in wanted])
        files = [TouchedFile(f.segment, f.superseded) for f in touched]
        if not schema.names or not self.warehouse.patched.has_room(files, schema.types):
            return None
        # Verifies the files.
        self.warehouse.paths([f.segment for f in touched])
        return self.warehouse.patched.tables(files, schema)


def union(branches: Iterable[str]) -> str:
    return " UNION ALL ".join(branches)


def _ends_first(files: Sequence[FileSlice]) -> list[FileSlice]:
    """In key order, but with the last one second: the first rows by key, in either direction, are found early, so that
    DuckDB can skip the rest."""
    ordered = sorted(files, key=lambda f: f.segment.key_min)
    return ordered[:1] + ordered[1:][-1:] + ordered[1:-1]


def _split(touched: Sequence[FileSlice]) -> Iterator[Sequence[FileSlice]]:
    """Several joins instead of one, where there are enough rows to outweigh the planning."""
    joins = min(_JOINS_MAX, len(touched), 1 + sum(f.segment.rows for f in touched) // _JOIN_ROWS_MIN)
    for number in range(joins):
        yield touched[number::joins]


def _concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """One relation, since each has to be registered; the first table has the needed columns."""
    if len(tables) == 1:
        return tables[0]
    schema = tables[0].schema
    return pa.concat_tables([table.select(schema.names).cast(schema) for table in tables])


def _positions(touched: Sequence[FileSlice]) -> pa.Table:
    """The positions to skip, by the number of the file in the list."""
    ordinals = np.repeat(np.arange(len(touched), dtype=np.uint64), [len(f.superseded) for f in touched])
    rows = np.concatenate([f.superseded for f in touched])
    return pa.table({"file_index": pa.array(ordinals), "file_row_number": pa.array(rows)})
