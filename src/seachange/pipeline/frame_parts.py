"""The parts of a table's DataFrame: for each layout its files, the row positions to skip, and rows in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from seachange.model.ids import LayoutId
from seachange.model.schema.descriptor import Table
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.keys import Key, KeyCodec
from seachange.storage.projection import StoredColumns
from seachange.storage.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class FrameFile:
    """A file by path and name, with the positions of the rows to skip."""

    path: str
    name: str
    superseded: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FrameBranch:
    """The rows of one layout; `rows` has its columns, named by their ids."""

    stored: StoredColumns
    files: tuple[FrameFile, ...]
    rows: pa.Table | None


def frame_branches(table: Table, parts: Sequence[SnapshotParts], warehouse: Warehouse) -> list[FrameBranch]:
    """The branches of the primary index. Their files have been verified."""
    files = [f for part in parts for f in part.files if len(f.superseded) < f.segment.rows]
    inline = [item for part in parts for item in part.inline]
    layouts = sorted({f.segment.layout_id for f in files} | {layout_id for layout_id, _ in inline})
    return [_branch(table, layout_id, files, inline, warehouse) for layout_id in layouts]


def _branch(
    table: Table,
    layout_id: LayoutId,
    files: Sequence[FileSlice],
    inline: Sequence[tuple[LayoutId, pa.Table]],
    warehouse: Warehouse,
) -> FrameBranch:
    rows = [held for id_, held in inline if id_ == layout_id]
    stored = table.stored_columns(table.primary, table.layout_by_id[layout_id])
    return FrameBranch(
        stored,
        tuple(
            FrameFile(warehouse.path(f.segment), warehouse.name(f.segment.id), f.superseded)
            for f in files
            if f.segment.layout_id == layout_id
        ),
        pa.concat_tables(rows) if rows else None,
    )


def hide_keys(
    parts: SnapshotParts, keys: Sequence[Key], key: StoredColumns, codec: KeyCodec, warehouse: Warehouse
) -> SnapshotParts:
    """The parts without the rows that have one of these keys."""
    if not keys:
        return parts
    encoded = [codec.encode(values) for values in keys]
    hidden = frozenset(encoded)
    files = tuple(_without_keys(file, keys, encoded, key, warehouse) for file in parts.files)
    inline = tuple((layout_id, _without_rows(rows, hidden, key, codec)) for layout_id, rows in parts.inline)
    return SnapshotParts(files, inline)


def _without_keys(
    file: FileSlice, keys: Sequence[Key], encoded: Sequence[bytes], key: StoredColumns, warehouse: Warehouse
) -> FileSlice:
    found = warehouse.reader(file.segment, key).positions(keys, encoded)
    gone = found[found >= 0]
    return FileSlice(file.segment, np.union1d(file.superseded, gone)) if len(gone) else file


def _without_rows(rows: pa.Table, hidden: frozenset[bytes], key: StoredColumns, codec: KeyCodec) -> pa.Table:
    values = zip(*(rows.column(f"c{column_id}").to_pylist() for column_id, _ in key), strict=True)
    return rows.filter(pa.array([codec.encode(tuple(value)) not in hidden for value in values], pa.bool_()))
