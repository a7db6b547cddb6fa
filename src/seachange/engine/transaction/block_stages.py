"""The child transactions of a block, when it goes back or ends.

**Invariant:** nothing of a change is left when its statement fails, or is undone: the child transactions are reverted
before the block forgets it, and while it holds the coordination key.
"""

from __future__ import annotations

from collections.abc import Sequence

from seachange import errors
from seachange.engine.buffer.block_changes import ChangesState
from seachange.engine.buffer.row_locks import WriteLock
from seachange.engine.buffer.transaction_state import TransactionState
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


def leave_stages(txn: TransactionState) -> None:
    """The COMMIT has ended the jobs of the block; or it is not known, and a worker reverts what it has not."""
    jobs, children = txn.block.state.jobs, txn.statement.context.children
    if jobs and children is not None:
        children.leave(jobs)
        reach("block.committed")


def follow_children(txn: TransactionState) -> None:
    """What is left of the block's changes is based on versions that child transactions have published since."""
    if not txn.block.has_run:
        return
    newest = txn.epoch.schema(txn.epoch.catch_up())
    for id_ in txn.pending.ids:
        published = newest.find(id_)
        if published is not None:
            txn.pending.follow(id_, published)


def check_current(txn: TransactionState, before: Descriptor | None, locks: Sequence[WriteLock]) -> None:
    """Raises RowChanged if what the block is about to change, and has locked, is no longer what it plans with."""
    names = locks
    if isinstance(before, Table) and txn.isolation is not Isolation.READ_COMMITTED:
        head = txn.epoch.catch_up()
        newest = txn.epoch.schema(head).by_id.get(before.id)
        if newest is not None and not txn.pending.changes(before) and newest.version != before.version:
            txn.block.outdated.add(before.id)
            raise errors.RowChanged(seq=head)
        definition = change_hash(before.id)
        names = [lock for lock in locks if lock.lock != definition]
    # Above READ COMMITTED the definition was compared by its version.
    txn.write_locks.check(names, txn.snapshot.seq)
