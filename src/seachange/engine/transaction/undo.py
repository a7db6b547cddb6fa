"""Points in a transaction to go back to: of a statement that fails, of a savepoint, and of statements of a block.

**Invariant:** a statement that fails leaves none of its writes.
"""

from __future__ import annotations

from dataclasses import dataclass

from seachange.engine.buffer.block_changes import ChangesState
from seachange.engine.buffer.declarations import DeclarationsMark
from seachange.engine.buffer.segment_staging import abandon
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_locks import StepMark, WriteLocksMark
from seachange.engine.constraints.foreign_key import ForeignKeys
from seachange.engine.context.deferral import Deferral
from seachange.engine.transaction.block_stages import follow_children, note_children, revert_stages
from seachange.model.ids import DescriptorId


@dataclass(frozen=True, slots=True)
class Mark:
    """What there was before a statement, in places of journals and numbers of declarations."""

    buffer: int
    pending: int
    shares: int
    deferral: Deferral
    rights: int
    changes: ChangesState


@dataclass(frozen=True, slots=True)
class SavepointMark:
    """What there was at a savepoint: the writes, and beside them locks, what was declared, and the tables used."""

    writes: Mark
    write_locks: WriteLocksMark
    declared: DeclarationsMark
    used: frozenset[DescriptorId]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a transaction had done before a statement of a block."""

    mark: Mark
    write_locks: StepMark
    used: dict[DescriptorId, int]
    declared: DeclarationsMark


@dataclass(frozen=True, slots=True)
class Undo:
    """`UndoPort`."""

    state: TransactionState
    foreign_keys: ForeignKeys

    # Statements.

    def mark(self) -> Mark:
        state = self.state
        shares, deferral = len(state.declared.shares), self.foreign_keys.deferral
        rights, changes = state.rights.mark(), state.block.state
        return Mark(state.buffer.mark(), state.pending.mark(), shares, deferral, rights, changes)

    def reset(self, mark: Mark) -> None:
        """Undoes everything since `mark`."""
        state = self.state
        reverted = state.block.jobs_since(mark.changes)
        revert_stages(state, mark.changes)
        if reverted:
            note_children(state, reverted)
        state.declared.reset(mark.shares)
        state.pending.reset(mark.pending)
        follow_children(state)
        self.foreign_keys.reset_deferral(mark.deferral)
        state.rights.reset(mark.rights)
        abandon(state, [segment.id for segment in state.buffer.reset(mark.buffer)])

    # Statements of a block that are run again.

    def checkpoint(self) -> Checkpoint:
        state = self.state
        return Checkpoint(self.mark(), state.write_locks.mark(), dict(state.used), state.declared.mark())

    def undo_to(self, to: Checkpoint, step: StepMark) -> None:
        """Undoes all statements since; `step` is how many keys were locked when the first of them had ended. Nothing of
        them is left, neither the versions that they were planned with nor their locks."""
        state = self.state
        self.reset(to.mark)
        state.buffer.forget_empty()
        for id_ in state.used.keys() - to.used.keys():
            state.shapes.forget(id_)
        state.used.clear()
        state.used.update(to.used)
        state.declared.undo_to(to.declared)
        state.write_locks.go_back(to.write_locks, step)
        # Rows that did not fit a newer version of their table have gone; the next statement finds out about the others.
        state.shapes.limits.clear()

    # Savepoints.

    def savepoint(self) -> SavepointMark:
        state = self.state
        state.block.has_savepoint = True
        return SavepointMark(self.mark(), state.write_locks.begin_scope(), state.declared.mark(), frozenset(state.used))

    def back_to(self, mark: SavepointMark) -> None:
        """Undoes everything since a savepoint, and releases the locks that were taken since. Tables that were first
        used since are as if they had not been: others may have changed them without the lock."""
        state = self.state
        self.reset(mark.writes)
        state.declared.undo_to(mark.declared)
        state.write_locks.back_to(mark.write_locks)
        for id_ in state.used.keys() - mark.used:
            del state.used[id_]
            state.shapes.forget(id_)
        # What stood against the head may have gone with what was done since.
        state.shapes.limits.clear()
        # So has what was declared of rows that were locked before, if their table has moved since.
        for row in state.declared.locked:
            state.used[row.table.id] = min(row.table.version, state.used.get(row.table.id, row.table.version))
