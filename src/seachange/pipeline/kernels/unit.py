"""One unit of a backfill: its rows are read once and turned into runs for each index."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import duckdb

from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column
from seachange.pipeline.kernels.converted import missing_key
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.partition import PartitionOutput, partition_rows
from seachange.pipeline.kernels.rebuild import computed_columns, locate, select_computed
from seachange.pipeline.kernels.runs import BuiltIndex, Run, build_run
from seachange.pipeline.kernels.source import IndexSource, Unit
from seachange.pipeline.kernels.split_points import SplitPoints
from seachange.storage.arrow import column_name
from seachange.storage.entries import columns_read
from seachange.storage.sorter import Sorter

_STORED, _COMPUTED, _ROWS = "stored_rows", "computed_rows", "unit_rows"


def read_unit(
    source: IndexSource,
    unit: Unit,
    targets: Sequence[BuiltIndex],
    split_points: Sequence[SplitPoints | None],
    kernel_context: KernelContext,
) -> list[Run]:
    """Entries of a target without split points are sorted here, those of the others partitioned."""
    outputs = [
        PartitionOutput(target, cut) for target, cut in zip(targets, split_points, strict=True) if cut is not None
    ]
    sorted_here = [target for target, cut in zip(targets, split_points, strict=True) if cut is None]
    with kernel_context.sorter() as sorter:
        if not sorted_here:
            rows = source.scan(_columns_read(targets), unit.parts, kernel_context.warehouse, "unit")
            return partition_rows(sorter, rows, outputs, kernel_context)
        _hold_rows(sorter, source, unit, targets, kernel_context)
        runs = [build_run(sorter, _ROWS, target, kernel_context) for target in sorted_here]
        return [*runs, *(partition_rows(sorter, Scan(f"FROM {_ROWS}"), outputs, kernel_context) if outputs else ())]


def _columns_read(targets: Sequence[BuiltIndex]) -> list[Column]:
    found = (c for t in targets for c in columns_read(t.table, t.index, t.columns, filled=True))
    return list(dict.fromkeys(found))


def _hold_rows(
    sorter: Sorter, source: IndexSource, unit: Unit, targets: Sequence[BuiltIndex], kernel_context: KernelContext
) -> None:
    """Expressions are evaluated once, so that a volatile one has the same value in all indexes."""
    computes = any(target.is_computed_from(source.index) for target in targets)
    first, generated = computed_columns(source.table) if computes else ((), ())
    read = _columns_read(targets)
    read += [source.table.column_by_id[c] for item in (*first, *generated) for c in item.inputs]
    if first or generated:
        read += [source.table.column_by_id[c] for c in source.table.primary.key] + list(source.table.visible_columns)
    columns = list(dict.fromkeys(read))
    scan = source.scan(columns, unit.parts, kernel_context.warehouse, "unit")
    steps = [step for step in (first, generated) if step]
    names = [*(_STORED, _COMPUTED)[: len(steps)], _ROWS]
    sorter.keep(names[0], scan.sql, scan)
    for step, (before, after) in zip(steps, pairwise(names), strict=True):
        try:
            sorter.keep(after, select_computed(before, columns, step))
        except duckdb.Error as problem:
            raise locate(sorter, before, source.table, step, problem, kernel_context.translate) from problem
        sorter.drop(before)
    for target in targets:
        _check_key(sorter, source, target)


def _check_key(sorter: Sorter, source: IndexSource, target: BuiltIndex) -> None:
    """A row without a value for its new key, which other writers may write, would be lost."""
    for column_id in source.table.needed_for(target.index):
        empty = f"SELECT * FROM {_ROWS} WHERE {column_name(column_id)} IS NULL LIMIT 1"  # noqa: S608 - named by id
        if sorter.ask(empty):
            raise missing_key(sorter, empty, source.table, source.table.column_by_id[column_id])
