"""The record of a schema change that a commit carries for the history.

**Invariant:** a change is in the history exactly if it was published: the record is a part of the commit that publishes
it, and a statement that was rolled back to a savepoint is not in the record of its block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from seachange.changer.job import work_done
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.model.change_history import CHANGE_CODEC, ChangedObject, ChangeRecord, PlannedChange, total_work
from seachange.model.ids import DescriptorId
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import UNPLANNED, Descriptor
from seachange.model.schema.temporary import is_temporary
from seachange.planner.strategy import RANK, Cost
from seachange.sql.change.object_access import kind_of
from seachange.sql.translate.time_functions import STATEMENT


def plan_change(state: TransactionState, text: str, cost: Cost, refills: bool = False) -> PlannedChange:
    return PlannedChange(
        text,
        state.rights.actor.user,
        state.statement.session.database,
        state.statement.moments[STATEMENT],
        cost.strategy.value,
        RANK[cost.strategy],
        cost.estimate,
        refills,
    )


def encode_history(state: TransactionState) -> str:
    """The record of what the commit publishes; empty if that is no schema change. Temporary tables and roles are left
    out."""
    changed = [(before, after) for before, after in state.pending.published() if _is_lasting(before, after)]
    planned = state.block.state.planned
    if not planned or not changed:
        return ""
    jobs = state.block.state.jobs
    ids = (*(change.id for change in state.declared.jobs), *(job.id for job in jobs))
    done = total_work([work_done(job) for job in jobs])
    objects = tuple(changed_object(before, after) for before, after in changed)
    return CHANGE_CODEC.encode(ChangeRecord(planned, objects, ids, done))


def encode_job_history(
    record: ChangeRecord,
    changed: Mapping[DescriptorId, tuple[Descriptor | None, Descriptor | None]],
    newest: Callable[[DescriptorId], Descriptor | None],
) -> str:
    """The record of what a job publishes. `record` has the objects that the job has created, which earlier stages of it
    may have published."""
    created = [(None, newest(o.id)) for o in record.objects if o.id not in changed]
    pairs = [*changed.values(), *(pair for pair in created if pair[1] is not None)]
    return CHANGE_CODEC.encode(replace(record, objects=tuple(changed_object(*pair) for pair in pairs)))


def _is_lasting(before: Descriptor | None, after: Descriptor | None) -> bool:
    descriptor = after or before
    return not isinstance(descriptor, UNPLANNED) and not is_temporary(getattr(descriptor, "schema", ""))


def changed_object(before: Descriptor | None, after: Descriptor | None) -> ChangedObject:
    descriptor = after or before
    assert descriptor is not None
    place = getattr(descriptor, "schema", "")
    name = f"{place}.{descriptor.name}" if place else descriptor.name
    versions = (before.version if before is not None else 0, after.version if after is not None else 0)
    had, has = (set(each.index_by_id) if isinstance(each, Table) else set() for each in (before, after))
    return ChangedObject(descriptor.id, f"{kind_of(descriptor)} {name}", *versions, tuple(sorted(had - has)))
