"""The child transactions of a block, when it goes back or ends.

**Invariant:** nothing of a change is left when its statement fails, or is undone: the child transactions are reverted
before the block forgets it, and while it holds the coordination key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seachange import errors
from seachange.changer.job import Job
from seachange.engine.buffer.block_changes import ChangesState
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.model.ids import KeyHash, Seq
from seachange.model.isolation import Isolation
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor
from seachange.runtime.faults import reach
from seachange.storage.keys import change_hash


def revert_stages(txn: TransactionState, mark: ChangesState) -> None:
    """Reverts the child transactions since the mark."""
    jobs, children = txn.block.jobs_since(mark), txn.statement.context.children
    txn.block.state = mark
    if jobs and children is not None:
        children.revert(jobs)
        reach("block.reverted")


def check_stages(txn: TransactionState) -> None:
    """Raises SerializationFailure if the block cannot go on, because one of its jobs was cancelled."""
    jobs, children = txn.block.state.jobs, txn.statement.context.children
    if jobs and children is not None:
        children.check(jobs)


def note_children(txn: TransactionState, jobs: Iterable[Job]) -> None:
    """Remembers which versions child transactions have published up to now, while others can change labels only."""
    newest = txn.epoch.schema(txn.epoch.catch_up())
    for job_id, id_ in [(job.id, id_) for job in jobs for id_ in job.descriptors]:
        published, (known, _) = newest.find(id_), txn.pending.change(id_) or (None, None)
        if published is not None:
            txn.block.note_children(job_id, (known or published).version, published)


def leave_stages(txn: TransactionState) -> None:
    """The COMMIT has ended the jobs of the block; or it is not known, and a worker reverts what it has not."""
    jobs, children = txn.block.state.jobs, txn.statement.context.children
    if jobs and children is not None:
        children.leave(jobs)
        reach("block.committed")


def follow_children(txn: TransactionState) -> None:
    """What is left of the block's changes is based on versions that its child transactions have published since. What
    others have published is left to COMMIT."""
    for id_ in txn.pending.ids:
        before, _ = txn.pending.change(id_) or (None, None)
        published = txn.block.newest_child(id_, before.version) if before is not None else None
        if published is not None:
            txn.pending.follow(id_, published)


def check_current(txn: TransactionState, before: Descriptor | None, bases: Mapping[KeyHash, Seq]) -> None:
    """Raises RowChanged if what the block is about to change, and has locked, is no longer what it plans with."""
    keeps_snapshot = txn.isolation is not Isolation.READ_COMMITTED
    if isinstance(before, Table) and (keeps_snapshot or txn.pending.changes(before)) and may_be_outdated(txn, before):
        head = txn.epoch.catch_up()
        if is_outdated(txn, before, txn.epoch.schema(head).by_id.get(before.id)):
            txn.block.outdated.add(before.id)
            raise errors.RowChanged(seq=head)
    if isinstance(before, Table) and keeps_snapshot:
        # The definition was compared by its version.
        bases = {key: base for key, base in bases.items() if key != change_hash(before.id)}
    txn.write_locks.check_keys(bases)


def may_be_outdated(txn: TransactionState, known: Table) -> bool:
    """Whether others can have changed or dropped a table: the transaction has changed labels at most, and so does not
    hold its coordination key."""
    return txn.pending.change(known.id) is None or txn.pending.is_labelled(known.id)


def is_outdated(txn: TransactionState, known: Table, newest: Table | None) -> bool:
    """Whether others have changed or dropped a table since."""
    if not may_be_outdated(txn, known):
        return False
    change = txn.pending.change(known.id)
    committed = known if change is None else change[0]
    return newest is None or (committed is not None and newest.version != committed.version)
