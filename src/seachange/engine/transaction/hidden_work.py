"""What an unfinished change has written, and what it costs the writers of other sessions: measured in the indexes that
it adds and that no reader sees yet.

**Invariant:** above the base of such an index there are entries of other sessions only: those of the block that adds it
are in its buffer until COMMIT.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from seachange.changer.job import Job
from seachange.engine.replica.epoch import EpochState
from seachange.model.change.elements import PrimaryIndex, SecondaryIndex, UniqueIndex
from seachange.model.ids import IndexId
from seachange.model.schema.descriptor import Table
from seachange.model.states import State
from seachange.storage.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class HiddenWork:
    """Sizes of files, the number of indexes that every write maintains, and the entries that others have written."""

    written_bytes: int = 0
    indexes: int = 0
    entries: int = 0


def measure_hidden_work(job: Job, epoch: EpochState, warehouse: Warehouse) -> HiddenWork:
    found = HiddenWork(sum(map(warehouse.size, job.files)))
    for index_id in _hidden_indexes(job, epoch):
        contents = epoch.catalog.index_contents(epoch.epoch, index_id, epoch.applied)
        members = contents.generation.members if contents.generation is not None else ()
        rows = [batch.rows for delta in contents.deltas for batch in delta.batches]
        rows += [segment.rows for delta in contents.deltas for segment in delta.segments]
        found = HiddenWork(
            found.written_bytes + sum(member.segment.size_bytes for member in members),
            found.indexes + 1,
            found.entries + sum(rows),
        )
    return found


def _hidden_indexes(job: Job, epoch: EpochState) -> Iterator[IndexId]:
    for target in job.change.targets:
        element = target.element
        if target.adds and isinstance(element, PrimaryIndex | SecondaryIndex | UniqueIndex):
            table = epoch.schemas.newest.find(element.table_id)
            known = (*table.indexes, *table.coming) if isinstance(table, Table) else ()
            yield from (i.id for i in known if i.id == element.index_id and i.state is not State.PUBLIC)
