"""Partitions the rows of a unit into the entries of indexes, by key range and unsorted.

Entries are sorted once, when all of a range are there, however many units the rows were read in; and the rows are read
once for all indexes.

**Invariant:** the sum of the hashes of entries, and their number, are taken from the rows, not from what was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from seachange.model.scan import Scan
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.runs import BuiltIndex, EntrySum, Run, hash_sql
from seachange.pipeline.kernels.split_points import SplitPoints, place_sql
from seachange.storage.arrow import schema_of
from seachange.storage.bulk import as_stored, stored_output
from seachange.storage.entries import select_values
from seachange.storage.shuffle_file import ShuffleWriter
from seachange.storage.sorter import Sorter

# The batch size of DuckDB, so that wide text stays below Arrow's 2 GB, and the chunk sizes of partitioning.
_BATCH_ROWS = 10_240
_CHUNK_ROWS_MAX = 131_072
_CHUNK_BYTES_MAX = 16 << 20


@dataclass(frozen=True, slots=True)
class PartitionOutput:
    """The entries of one index."""

    target: BuiltIndex
    split_points: SplitPoints


def partition_rows(
    sorter: Sorter, rows: Scan, outputs: Sequence[PartitionOutput], kernel_context: KernelContext
) -> list[Run]:
    """Writes one shuffle file for each index. `rows` selects the columns that the entries are computed from, by their
    ids."""
    query = _entries_sql(rows, outputs)
    with ExitStack() as stack:
        partitioners = [_Partitioner(number, output, kernel_context, stack) for number, output in enumerate(outputs)]
        for chunk in _chunks(sorter.stream(query.sql, query, _BATCH_ROWS)):
            kernel_context.interrupts.check()
            for partitioner in partitioners:
                partitioner.write(chunk)
        return [partitioner.finish() for partitioner in partitioners]


def _entries_sql(rows: Scan, outputs: Sequence[PartitionOutput]) -> Scan:
    """The stored columns of all indexes, and for each of them the hash of the entry and its range."""
    columns = list(dict.fromkeys(column for output in outputs for column in output.target.columns))
    values = [select_values(columns, filled=True)]
    stored = [stored_output((column.id, column.type)) for column in columns]
    places: list[str] = []
    parameters = dict(rows.parameters)
    for number, output in enumerate(outputs):
        where = output.target.index.where
        place, split_points = place_sql(output.target, output.split_points, f"cut{number}_")
        parameters.update(split_points)
        stored.append(f"{hash_sql(output.target)} AS hash{number}")
        if where is not None:
            values.append(f"({where.text}) AS has{number}")
            stored.append(f"has{number}")
            # A row without an entry gets a number above all ranges.
            place = f"CASE WHEN has{number} THEN {place} ELSE {output.split_points.ranges} END"
        places.append(f"CAST({place} AS USMALLINT) AS place{number}")
    entries = f"SELECT {', '.join(values)} FROM ({rows.sql})"  # noqa: S608 - named by id
    hashed = f"SELECT {', '.join(stored)} FROM ({entries})"  # noqa: S608
    return Scan(f"SELECT *, {', '.join(places)} FROM ({hashed})", parameters, rows.relations)  # noqa: S608


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _CHUNK_ROWS_MAX or size >= _CHUNK_BYTES_MAX:
            yield pa.concat_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.concat_batches(held)


class _Partitioner:
    def __init__(self, number: int, output: PartitionOutput, kernel_context: KernelContext, stack: ExitStack) -> None:
        self._hash, self._place = f"hash{number}", f"place{number}"
        self._target = output.target
        self._ranges = output.split_points.ranges
        self._schema = schema_of(output.target.shape.columns)
        self._tally = EntrySum(0, 0)
        self._warehouse = kernel_context.warehouse
        (id_,) = kernel_context.take(1)
        writer = ShuffleWriter(kernel_context.warehouse.files, id_, self._schema, self._ranges)
        self._writer = stack.enter_context(writer)

    def write(self, chunk: pa.RecordBatch) -> None:
        places = chunk.column(self._place).to_numpy()
        hashes = chunk.column(self._hash).to_numpy()
        if self._target.index.where is not None:
            hashes = hashes[places < self._ranges]
        self._tally += EntrySum(len(hashes), _sum(hashes))
        self._writer.write(as_stored(chunk, self._schema), places)

    def finish(self) -> Run:
        file = self._writer.finish()
        self._warehouse.remember([file])
        return Run(self._target.index.id, self._tally, (), file)


def _sum(hashes: NDArray[np.uint64]) -> int:
    """The exact sum: adding the halves separately cannot overflow."""
    high, low = hashes >> np.uint64(32), hashes & np.uint64(0xFFFFFFFF)
    return (int(high.sum()) << 32) + int(low.sum())
