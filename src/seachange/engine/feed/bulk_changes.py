"""Changes of many rows by one commit, read from its files, and rows that came or went as a whole.

They are streamed: DuckDB computes the documents of both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from seachange.engine.feed.table_state import TableState
from seachange.model.ids import LayoutId
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column, Table
from seachange.model.segments import IndexDelta, Op, Segment, SegmentKind
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.storage.arrow import column_name, schema_of
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.json_rows import json_object
from seachange.storage.plan import plan_columns
from seachange.storage.small_arrays import array_of

BATCH_ROWS = 10_240
_NO_POSITIONS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Written:
    """What a commit wrote: rows that were not there before, other rows, and keys that it removed."""

    fresh: SnapshotParts
    others: SnapshotParts
    gone: SnapshotParts


def read_whole(state: TableState, parts: SnapshotParts, op: str, duck: DuckSession) -> Iterator[pa.RecordBatch]:
    """All rows of a table, as inserted or deleted ones."""
    table = state.known
    scan = _scan(state, parts, table.visible_columns, "whole")
    shown = json_object(table.visible_columns, "r", state.labels)
    sides = f"NULL AS was, {shown} AS made" if op == "insert" else f"{shown} AS was, NULL AS made"
    sql = f"SELECT '{op}' AS op, {sides} FROM ({scan.sql}) r"  # noqa: S608 - named by ids
    yield from _stream(duck, sql, [scan])


def read_bulk(state: TableState, delta: IndexDelta, duck: DuckSession) -> Iterator[pa.RecordBatch]:
    """The changes of one commit; the state is that before it. Batches of op, before and after."""
    table, written = state.known, _sort(state, delta)
    shown = table.visible_columns
    if written.fresh.files or written.fresh.inline:
        yield from read_whole(state, written.fresh, "insert", duck)
    has_others = bool(written.others.files or written.others.inline)
    if not has_others and not (written.gone.files or written.gone.inline):
        return
    key = [table.column_by_id[c] for c in table.primary.key]
    read = list(dict.fromkeys([*shown, *key]))
    old = _scan(state, state.image().parts(state.at), read, "old")
    was = json_object(shown, "o", state.labels)
    same = " AND ".join(f"o.{column_name(c.id)} = w.{column_name(c.id)}" for c in key)
    if has_others:
        new = _scan(state, written.others, read, "new")
        made = json_object(shown, "w", state.labels)
        is_new = f"o.{column_name(key[0].id)} IS NULL"
        sql = (
            f"SELECT CASE WHEN {is_new} THEN 'insert' ELSE 'update' END AS op, "  # noqa: S608 - named by ids
            f"CASE WHEN {is_new} THEN NULL ELSE {was} END AS was, {made} AS made "
            f"FROM ({new.sql}) w LEFT JOIN ({old.sql}) o ON {same}"
        )
        yield from _stream(duck, sql, [new, old])
    if written.gone.files or written.gone.inline:
        gone = _scan(state, written.gone, key, "gone")
        sql = f"SELECT 'delete' AS op, {was} AS was, NULL AS made FROM ({old.sql}) o SEMI JOIN ({gone.sql}) w ON {same}"  # noqa: S608 - named by ids
        yield from _stream(duck, sql, [old, gone])


def _sort(state: TableState, delta: IndexDelta) -> _Written:
    data = [s for s in delta.segments if s.kind is SegmentKind.DATA]
    rows: dict[Op, list[tuple[LayoutId, pa.Table]]] = {op: [] for op in Op}
    for batch in delta.batches:
        ops, listed = state.read(batch)
        table = state.known
        stored = table.stored_columns(table.primary, table.layout_by_id[batch.layout_id])
        for op in Op:
            chosen = [row for each, row in zip(ops, listed, strict=True) if each == op]
            if chosen:
                schema = schema_of(stored)
                columns = zip(*chosen, strict=True)
                arrays = [array_of(values, f.type) for values, f in zip(columns, schema, strict=True)]
                rows[op].append((batch.layout_id, pa.Table.from_arrays(arrays, schema=schema)))
    return _Written(
        SnapshotParts(_files([s for s in data if s.fresh]), tuple(rows[Op.INSERT])),
        SnapshotParts(_files([s for s in data if not s.fresh]), tuple(rows[Op.PUT])),
        SnapshotParts(
            _files([s for s in delta.segments if s.kind is SegmentKind.TOMBSTONES]), tuple(rows[Op.TOMBSTONE])
        ),
    )


def _files(segments: Sequence[Segment]) -> tuple[FileSlice, ...]:
    return tuple(FileSlice(segment, _NO_POSITIONS) for segment in segments)


def _scan(state: TableState, parts: SnapshotParts, columns: Sequence[Column], prefix: str) -> Scan:
    table: Table = state.known
    return plan_columns(table, table.primary, columns, parts, state.warehouse, prefix)


def _stream(duck: DuckSession, sql: str, scans: Sequence[Scan]) -> Iterator[pa.RecordBatch]:
    parameters = {name: value for scan in scans for name, value in scan.parameters.items()}
    relations = {name: rows for scan in scans for name, rows in scan.relations.items()}
    with duck.batches(DuckQuery(sql, parameters, relations), BATCH_ROWS) as reader:
        yield from reader
