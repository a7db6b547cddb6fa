"""Segments of index entries that queries select in a sorter, and the keys that the commit lists for them.

**Invariant:** a commit lists for a file of entries what it would list for the entries one by one: the rows, and the
unique keys that they take or give up. Files that are not staged are abandoned when the write fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from seachange.engine.buffer.segment_staging import abandon, reserve, shape_of
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import StagedFile
from seachange.engine.encode.write_plan import EntryPlan
from seachange.model.ids import Seq
from seachange.model.segments import Segment, SegmentKind
from seachange.storage.bulk import Distinct
from seachange.storage.keys import Hashes, entry_hashes, unique_hashes
from seachange.storage.sorter import Sorter


@contextmanager
def sorter_of(txn: TransactionState) -> Iterator[Sorter]:
    """The sorter of one bulk write."""
    parts, interrupts = txn.parts, txn.client.interrupts
    new_sorter = Sorter(parts.files, parts.data / "tmp", partial(reserve, txn), connect=parts.sorts.connect)
    with new_sorter as sorter, interrupts.reaching(sorter):
        yield sorter


class EntryFiles:
    """The files that one bulk write has written so far."""

    def __init__(self, txn: TransactionState, sorter: Sorter) -> None:
        self._txn = txn
        self._sorter = sorter
        self.written: list[Segment] = []

    @contextmanager
    def abandoned_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            abandon(self._txn, [segment.id for segment in self.written])
            raise

    def write(
        self, plan: EntryPlan, sql: str, kind: SegmentKind, unique: Distinct | None = None, fresh: bool = False
    ) -> list[Segment]:
        """Sorts the entries of a query, or the keys of removed ones."""
        segments = self._sorter.sort_query(sql, {}, shape_of(plan, kind, fresh), unique)
        self._txn.parts.warehouse.remember(segments)
        self.written += segments
        return segments

    def stage(self, plan: EntryPlan, segment: Segment, base: Seq, moves: bool) -> StagedFile:
        """`moves`: keys are taken or given up by it."""
        is_data = segment.kind is SegmentKind.DATA
        hashes = hash_entries(self._txn, plan, segment, moves or not is_data)
        return StagedFile(segment, base, plan, hashes, brings_keys=moves and is_data)


def hash_entries(txn: TransactionState, plan: EntryPlan, segment: Segment, moves: bool) -> Hashes:
    """The hashes that single-row writes would list: that of the row, and those of the unique keys that it takes or
    gives up."""
    found = [np.empty(0, np.int64)]
    index_id = plan.index.id
    if plan.holds_rows or (plan.unique_width and moves):
        keys = txn.parts.warehouse.reader(segment, plan.columns[: plan.key_width]).keys()
        each = txn.client.interrupts.each
        if plan.holds_rows:
            encoded = [plan.codec.encode(key) for key in each(keys)]
            found.append(entry_hashes(index_id, encoded))
            if moves:
                found.append(unique_hashes(index_id, encoded))
        else:
            unique = (plan.unique_key(key) for key in each(keys))
            found.append(unique_hashes(index_id, (plan.unique_codec.encode(key) for key in unique if key is not None)))
    return np.concatenate(found)
