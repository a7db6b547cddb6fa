"""Finds duplicate keys in an index without sorting it again.

The files of a generation are sorted already, so equal keys are neighbours in them. The rest (files that overlap others,
inline rows) is compared among itself, and with the sorted files by a join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column
from seachange.pipeline.kernels.executor import Executor
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.reading import ReadsSource
from seachange.pipeline.kernels.source import IndexSource, size_of
from seachange.storage.arrow import column_name
from seachange.storage.bulk import equal_neighbours
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.keys import Key
from seachange.storage.row_groups import comparable
from seachange.storage.segment_footer import segment_name
from seachange.storage.segment_reader import reading

Found = tuple[int, Key]


def find_duplicates(source: IndexSource, executor: Executor, report: Callable[[int], None]) -> Found | None:
    """The number of rows that repeat the key of another row, and one such key."""
    found = _find_in_chain(replace(source, hidden=None), executor, report)
    if found is None or source.hidden is None:
        return found
    # Some of them may be hidden.
    return _run([CompareAcross(source, SnapshotParts((), ()))], executor, lambda rows: None)


def _find_in_chain(source: IndexSource, executor: Executor, report: Callable[[int], None]) -> Found | None:
    chain, rest = split_chain(source)
    tasks: list[CompareNeighbours | CompareAcross] = []
    before: FileSlice | None = None
    for part in _slices(chain, executor.sizes(source.rows).unit_rows):
        tasks.append(CompareNeighbours(replace(source, parts=SnapshotParts(tuple(part), ())), before))
        before = part[-1]
    if rest.files or rest.inline:
        tasks.append(CompareAcross(replace(source, parts=rest), SnapshotParts(tuple(chain), ())))
    return _run(tasks, executor, report)


def _run(
    tasks: Sequence[CompareNeighbours | CompareAcross], executor: Executor, report: Callable[[int], None]
) -> Found | None:
    found: dict[int, Found | None] = {}

    def finished(number: int, hit: Found | None) -> None:
        found[number] = hit
        report(tasks[number].source.rows)

    executor.run(tasks, finished, [task.source.rows for task in tasks])
    hits = [hit for _, hit in sorted(found.items()) if hit is not None]
    return (sum(rows for rows, _ in hits), hits[0][1]) if hits else None


def _slices(chain: Sequence[FileSlice], rows_max: int) -> Iterator[list[FileSlice]]:
    part: list[FileSlice] = []
    rows = 0
    for file in chain:
        if part and rows + file.segment.rows > rows_max:
            yield part
            part, rows = [], 0
        part.append(file)
        rows += file.segment.rows
    if part:
        yield part


@dataclass(frozen=True, slots=True)
class CompareNeighbours(ReadsSource):
    """The files of `source` follow each other by their keys; the last row of `before` precedes them."""

    before: FileSlice | None

    @property
    def title(self) -> str:
        return f"compare {self.source.rows} neighbours in {self.source.index.name}"

    def run(self, kernel_context: KernelContext) -> Found | None:
        return _in_chain(self.source, self.before, kernel_context)


@dataclass(frozen=True, slots=True)
class CompareAcross(ReadsSource):
    """The rows of `source` overlap the chain."""

    chain: SnapshotParts

    @property
    def title(self) -> str:
        return f"compare {self.source.rows} entries of {self.source.index.name} with all others"

    @property
    def read_bytes(self) -> int:
        return self.source.size_bytes + size_of(self.chain)

    def run(self, kernel_context: KernelContext) -> Found | None:
        return _across(self.source, self.chain, self.source.parts, kernel_context)


def split_chain(source: IndexSource) -> tuple[list[FileSlice], SnapshotParts]:
    """Files in key order that do not overlap, in the current layout; and the rest."""
    chain: list[FileSlice] = []
    rest: list[FileSlice] = []
    types = source.table.stored_columns(source.index, source.table.layout)
    for file in sorted(source.parts.files, key=lambda f: (f.segment.key_min, f.segment.id)):
        if len(file.superseded) >= file.segment.rows:
            continue
        layout = source.table.layout_by_id[file.segment.layout_id]
        same_types = source.table.stored_columns(source.index, layout) == types
        after_last = not chain or chain[-1].segment.key_max < file.segment.key_min
        (chain if same_types and after_last else rest).append(file)
    return chain, SnapshotParts(tuple(rest), source.parts.inline)


def _in_chain(source: IndexSource, before: FileSlice | None, kernel_context: KernelContext) -> Found | None:
    names = [column_name(c) for c in source.index.key]
    rows, key = 0, None
    last = None if before is None else _last_live_key(before, names, kernel_context)
    for columns in _live_keys(source.parts.files, names, kernel_context):
        kernel_context.interrupts.check()
        joined = [pa.concat_arrays(pair) for pair in zip(last, columns, strict=True)] if last else columns
        same = equal_neighbours([comparable(column) for column in joined], source.index.nulls_distinct)
        repeated = pc.sum(same).as_py() or 0
        if repeated and key is None:
            place = pc.index(same, True).as_py()
            key = tuple([column[place].as_py() for column in joined])
        rows += repeated
        last = [column.slice(len(column) - 1) for column in columns]
    return (rows, key) if key is not None else None


def _live_keys(chain: Sequence[FileSlice], names: list[str], kernel_context: KernelContext) -> Iterator[list[pa.Array]]:
    """The key columns, one batch at a time, without superseded rows."""
    for file in chain:
        gone = _gone(file)
        start = 0
        with _opened(file, kernel_context) as opened:
            for batch in opened.iter_batches(columns=names):
                keep = pa.array(~gone[start : start + batch.num_rows])
                start += batch.num_rows
                live = batch.filter(keep)
                if live.num_rows:
                    yield [live.column(name) for name in names]


def _last_live_key(file: FileSlice, names: list[str], kernel_context: KernelContext) -> list[pa.Array]:
    place = int(np.flatnonzero(~_gone(file))[-1])
    with _opened(file, kernel_context) as opened:
        group = start = 0
        while start + opened.metadata.row_group(group).num_rows <= place:
            start += opened.metadata.row_group(group).num_rows
            group += 1
        rows = opened.read_row_group(group, columns=names).slice(place - start, 1)
    return [rows.column(name).combine_chunks() for name in names]


def _gone(file: FileSlice) -> NDArray[np.bool_]:
    gone = np.zeros(file.segment.rows, dtype=bool)
    gone[file.superseded] = True
    return gone


@contextmanager
def _opened(file: FileSlice, kernel_context: KernelContext) -> Iterator[pq.ParquetFile]:
    kernel_context.warehouse.path(file.segment)
    name = segment_name(file.segment.id)
    with reading(name), kernel_context.warehouse.files.open_input(name) as opened:
        yield pq.ParquetFile(opened)


def _across(
    source: IndexSource, chain: SnapshotParts, rest: SnapshotParts, kernel_context: KernelContext
) -> Found | None:
    key = [source.table.column_by_id[c] for c in source.index.key]
    names = ", ".join(column_name(c.id) for c in key)
    loose = source.scan(key, rest, kernel_context.warehouse, "loose")
    ordered = source.scan(key, chain, kernel_context.warehouse, "ordered")
    scan = Scan("", {**loose.parameters, **ordered.parameters}, {**loose.relations, **ordered.relations})
    present = _present(key) if source.index.nulls_distinct else "true"
    equals = "=" if source.index.nulls_distinct else "IS NOT DISTINCT FROM"
    same = " AND ".join(f"o.{column_name(c.id)} {equals} l.{column_name(c.id)}" for c in key)
    # The first of the loose rows is a duplicate too if the chain has its key.
    sql = (
        f"SELECT {names}, n - 1 + CAST(taken AS INTEGER) AS extra FROM (SELECT l.*, "  # noqa: S608 - named by id
        f"EXISTS (SELECT 1 FROM ({ordered.sql}) o WHERE {same}) AS taken "
        f"FROM (SELECT {names}, count(*) AS n FROM ({loose.sql}) WHERE {present} GROUP BY ALL) l) "
        "WHERE n > 1 OR taken"
    )
    with kernel_context.sorter() as sorter:
        ((rows,),) = sorter.ask(f"SELECT sum(extra) FROM ({sql})", scan)  # noqa: S608 - as above
        if not rows:
            return None
        (first,) = sorter.fetch(f"SELECT {names} FROM ({sql}) ORDER BY ALL LIMIT 1", scan)  # noqa: S608 - as above
    return int(rows), first


def _present(columns: Sequence[Column]) -> str:
    return " AND ".join(f"{column_name(c.id)} IS NOT NULL" for c in columns)
