"""Changes of few rows each: those of many commits are collected, and shown together.

**Invariant:** what a row was before a change is the row after the last change of its key, or, for the first one of the
key, the row as of the state where the collection began.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from seachange.engine.feed.table_state import TableState
from seachange.model.ids import LayoutId, Seq
from seachange.model.segments import InlineBatch, Op
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.storage.arrow import arrow_type, column_name, read_stored
from seachange.storage.json_rows import json_object
from seachange.storage.plan import plan_columns
from seachange.storage.projection import compile_row
from seachange.storage.small_arrays import array_of

Row = tuple[Any, ...]
# More rows than these are looked up by one query instead of one by one.
_FEW = 24
_BATCH_ROWS = 10_240


@dataclass(frozen=True, slots=True)
class RowChange:
    """`op` is empty where nothing happened: a row that was not there was deleted."""

    op: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class _Collected:
    """The positions of documents: of the row after the change, and of the row before it, which may be looked up."""

    after: int | None
    before: int | None
    looked_up: int | None


class InlineChanges:
    """Of one version of a table."""

    def __init__(self, state: TableState) -> None:
        self._state = state
        self._rows: list[Row] = []
        self._read: list[tuple[Seq, LayoutId, list[int], list[Row]]] = []
        self._changes: list[_Collected] = []
        # The document of the newest row of each key.
        self._newest: dict[bytes, int | None] = {}
        self._looked_up: list[tuple[bytes, Row]] = []
        self._projections: dict[LayoutId, Callable[[Row], Row] | None] = {}

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, seq: Seq, batch: InlineBatch) -> None:
        ops, rows = self._state.read(batch)
        self._read.append((seq, batch.layout_id, ops, rows))
        width, encode = len(self._state.known.primary.key), self._state.keys.encode
        project = self._projection(batch.layout_id)
        for op, row in zip(ops, rows, strict=True):
            key = row[:width]
            encoded = encode(key)
            before: int | None = None
            looked_up: int | None = None
            if encoded in self._newest:
                before = self._newest[encoded]
            elif op != Op.INSERT:
                looked_up = len(self._looked_up)
                self._looked_up.append((encoded, key))
            after = None
            if op != Op.TOMBSTONE:
                after = len(self._rows)
                self._rows.append(row if project is None else project(row))
            self._newest[encoded] = after
            self._changes.append(_Collected(after, before, looked_up))

    def follow(self) -> None:
        """The state goes on to the end of the collection."""
        for seq, layout_id, ops, rows in self._read:
            self._state.advance_by(seq, layout_id, ops, rows)

    def _projection(self, layout_id: LayoutId) -> Callable[[Row], Row] | None:
        if layout_id not in self._projections:
            table = self._state.known
            stored = table.stored_columns(table.primary, table.layout_by_id[layout_id])
            self._projections[layout_id] = compile_row(stored, table.visible_columns)
        return self._projections[layout_id]

    def show(self, duck: DuckSession) -> list[RowChange]:
        """In the order in which they were added; the state is that where the collection began."""
        together = self._find_together(duck) if len(self._looked_up) > _FEW else None
        places = self._find_each() if together is None else []
        texts = self._documents(duck)
        found = [None if p is None else texts[p] for p in places] if together is None else together
        shown = []
        for change in self._changes:
            before = found[change.looked_up] if change.looked_up is not None else None
            if change.before is not None:
                before = texts[change.before]
            after = texts[change.after] if change.after is not None else None
            op = "delete" if after is None else "insert" if before is None else "update"
            shown.append(RowChange("" if before is None and after is None else op, before, after))
        return shown

    def _find_each(self) -> list[int | None]:
        """The rows that are looked up join those that are shown; returns their positions."""
        image, places = self._state.image() if self._looked_up else None, list[int | None]()
        for _, key in self._looked_up:
            stored = image.get(key, self._state.at) if image is not None else None
            places.append(None if stored is None else len(self._rows))
            if stored is not None:
                project = self._projection(stored.layout_id)
                self._rows.append(stored.row if project is None else project(stored.row))
        return places

    def _find_together(self, duck: DuckSession) -> list[str | None]:
        state, table = self._state, self._state.known
        key = [table.column_by_id[c] for c in table.primary.key]
        read = list(dict.fromkeys([*table.visible_columns, *key]))
        parts = state.image().parts(state.at)
        scan = plan_columns(table, table.primary, read, parts, state.warehouse, "old")
        sought = pa.table(
            {
                "n": pa.array(range(len(self._looked_up)), pa.int64()),
                **{
                    column_name(c.id): pa.array([k[place] for _, k in self._looked_up], arrow_type(c.type))
                    for place, c in enumerate(key)
                },
            }
        )
        same = " AND ".join(f"o.{column_name(c.id)} = {read_stored('k.' + column_name(c.id), c.type)}" for c in key)
        document = json_object(table.visible_columns, "o", state.labels)
        sql = f"SELECT k.n, {document} AS shown FROM ({scan.sql}) o JOIN sought k ON {same}"  # noqa: S608 - by ids
        query = DuckQuery(sql, scan.parameters, {**scan.relations, "sought": sought})
        return _numbered(duck, query, len(self._looked_up))

    def _documents(self, duck: DuckSession) -> list[str | None]:
        if not self._rows:
            return []
        columns = self._state.known.visible_columns
        names = [column_name(c.id) for c in columns]
        values: Sequence[Sequence[Any]] = list(zip(*self._rows, strict=True)) if columns else []
        arrays = [array_of(each, arrow_type(c.type)) for each, c in zip(values, columns, strict=True)]
        rows = pa.table([pa.array(range(len(self._rows)), pa.int64()), *arrays], names=["n", *names])
        read = ", ".join(["n", *(f"{read_stored(n, c.type)} AS {n}" for n, c in zip(names, columns, strict=True))])
        document = json_object(columns, "r", self._state.labels)
        sql = f"SELECT n, {document} AS shown FROM (SELECT {read} FROM rows_changed) r"  # noqa: S608 - named by ids
        return _numbered(duck, DuckQuery(sql, {}, {"rows_changed": rows}), len(self._rows))


def _numbered(duck: DuckSession, query: DuckQuery, count: int) -> list[str | None]:
    """Texts by their numbers: DuckDB may return them in another order."""
    found = np.empty(count, dtype=object)
    with duck.batches(query, _BATCH_ROWS) as reader:
        for batch in reader:
            found[batch.column(0).to_numpy()] = batch.column(1).to_numpy(zero_copy_only=False)
    texts: list[str | None] = found.tolist()
    return texts
