"""One unit of a backfill: its rows, held once, become sorted runs of each index.

**Invariant:** the sum of the hashes of entries, and their number, are taken from the rows, not from what was written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from seachange import errors
from seachange.model.descriptor import Column, Index, Table
from seachange.model.ids import IndexId, LayoutId, SegmentId, Seq
from seachange.model.scan import Scan
from seachange.model.segments import Segment, SegmentKind
from seachange.pipeline.naming import show_key
from seachange.pipeline.rebuild import computed_columns, locate, select_computed
from seachange.pipeline.shape import base_shape
from seachange.pipeline.source import Source, Unit
from seachange.pipeline.workshop import Workshop
from seachange.storage.arrow import column_name
from seachange.storage.bulk import Distinct
from seachange.storage.entries import columns_read, select_entries
from seachange.storage.segment_writer import SegmentShape
from seachange.storage.sorter import Sorter

# What is merged is read by ranges of keys, a whole number of row groups.
_PASSING_GROUP_ROWS = 20_480
_STORED, _COMPUTED, _ROWS = "stored_rows", "computed_rows", "unit_rows"


@dataclass(frozen=True, slots=True)
class Target:
    """An index to be built; `table` is seen with the primary index that its entries end in."""

    table: Table
    index: Index

    @property
    def is_primary(self) -> bool:
        return self.index.id == self.table.primary.id

    @property
    def shape(self) -> SegmentShape:
        return base_shape(self.table, self.index)

    @property
    def columns(self) -> list[Column]:
        return [self.table.column_by_id[c] for c, _ in self.shape.columns]

    @property
    def distinct(self) -> Distinct | None:
        """A new primary key was shown to be one before; two rows with one key would be lost, so it is looked at."""
        if not self.is_primary:
            return None
        key = [self.table.column_by_id[c] for c in self.index.key]
        return Distinct(
            self.index.key,
            lambda values: errors.UniqueViolation(constraint=self.index.name, key=f"key {show_key(key, values)}"),
        )


@dataclass(frozen=True, slots=True)
class Tally:
    """How many entries there are, and the sum of their hashes, whatever their order."""

    entries: int
    hashes: int

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.entries + other.entries, self.hashes + other.hashes)


@dataclass(frozen=True, slots=True)
class Run:
    """What a unit has made for one index: sorted segments, and the tally of the rows that they were made from. What is
    `passing` was written to be merged: there is no base segment among it."""

    index_id: IndexId
    tally: Tally
    segments: tuple[Segment, ...]
    passing: bool = False


def encode_runs(runs: Sequence[Run]) -> str:
    return json.dumps(
        [
            [r.index_id, r.tally.entries, str(r.tally.hashes), [_encode_segment(s) for s in r.segments], r.passing]
            for r in runs
        ],
        separators=(",", ":"),
    )


def decode_runs(text: str) -> tuple[Run, ...]:
    return tuple(
        Run(IndexId(index_id), Tally(entries, int(hashes)), tuple(map(_decode_segment, segments)), *passing)
        for index_id, entries, hashes, segments, *passing in json.loads(text)
    )


def _encode_segment(s: Segment) -> list[object]:
    return [s.id, s.index_id, s.layout_id, s.rows, s.size_bytes, s.checksum.hex(), s.key_min.hex(), s.key_max.hex()]


def _decode_segment(body: list[Any]) -> Segment:
    id_, index_id, layout_id, rows, size, checksum, low, high = body
    return Segment(
        SegmentId(id_),
        IndexId(index_id),
        LayoutId(layout_id),
        SegmentKind.DATA,
        Seq(0),
        True,
        rows,
        size,
        *(bytes.fromhex(part) for part in (checksum, low, high)),
    )


def tally_of(sorter: Sorter, target: Target, scan: Scan) -> Tally:
    """Of a query that gives the stored columns of the index."""
    hashed = ", ".join(f"CAST({column_name(c.id)} AS {c.type.duckdb})" for c in target.columns)
    ((entries, hashes),) = sorter.ask(f"SELECT count(*), sum(hash({hashed})) FROM ({scan.sql})", scan)  # noqa: S608
    return Tally(int(entries), int(hashes or 0))


def build_runs(
    source: Source, unit: Unit, targets: Sequence[Target], workshop: Workshop, is_only: bool = True
) -> list[Run]:
    """`is_only`: there is no other unit, and so nothing to merge."""
    with workshop.sorter() as sorter:
        _hold_rows(sorter, source, unit, targets, workshop)
        # Rows are written anew in the order of their source as a rule: then they are not merged either.
        runs = [_build_run(sorter, target, not is_only and not target.is_primary) for target in targets]
    for run in runs:
        workshop.warehouse.remember(run.segments)
    return runs


def _build_run(sorter: Sorter, target: Target, passing: bool) -> Run:
    entries = select_entries(target.table, target.index, _ROWS, filled=True)
    tally = tally_of(sorter, target, Scan(entries))
    shape = replace(target.shape, passing=passing, row_group_rows=_PASSING_GROUP_ROWS) if passing else target.shape
    segments = sorter.sort_query(entries, {}, shape, target.distinct) if tally.entries else []
    return Run(target.index.id, tally, tuple(segments), passing)


def _hold_rows(sorter: Sorter, source: Source, unit: Unit, targets: Sequence[Target], workshop: Workshop) -> None:
    """Expressions are evaluated once, so that what is volatile has one value in all that is made of it."""
    first, generated = computed_columns(source.table) if any(t.is_primary for t in targets) else ((), ())
    read = [c for t in targets for c in columns_read(t.table, t.index, t.columns, filled=True)]
    read += [source.table.column_by_id[c] for item in (*first, *generated) for c in item.inputs]
    if first or generated:
        read += [source.table.column_by_id[c] for c in source.table.primary.key] + list(source.table.visible_columns)
    columns = list(dict.fromkeys(read))
    scan = source.scan(columns, unit.parts, workshop.warehouse, "unit")
    steps = [step for step in (first, generated) if step]
    names = [*(_STORED, _COMPUTED)[: len(steps)], _ROWS]
    sorter.keep(names[0], scan.sql, scan)
    for step, before, after in zip(steps, names, names[1:], strict=False):
        try:
            sorter.keep(after, select_computed(before, columns, step))
        except duckdb.Error as problem:
            raise locate(sorter, before, source.table, step, problem, workshop.translate) from problem
        sorter.drop(before)
