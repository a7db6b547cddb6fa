"""Running the end of a block again if its COMMIT meets a conflict with another node; all of it, after a schema change.

At READ COMMITTED a statement that meets a row which was changed meanwhile waits, and runs on the newest version. If
the other writer is in another node, that may be found out at COMMIT only. The block then goes back to the first
statement that wrote such a row and runs it, and those after it, at the newest snapshot: as if it had waited until then.

**Invariant:** the client cannot tell. Each statement from there on gives the result that the client has seen, or the
block fails with 40001. That goes for queries too: one that came after a statement which has waited sees what was
committed until then, and a row that programs update first works as a mutex. A query is not run again if nothing was
written to its tables since, by others or by the block.

**Invariant:** a block that waits to be resumed releases no more than it would have locked later, so it closes no cycle
that its statements would not have closed.

Of a client that has got no rows since, no result can differ. So before it gets rows that may depend on what the block
has changed in tables to which other nodes write, the changed rows are locked for all nodes (`secure`), and the block
goes back there and then if another node has overtaken it.

**Invariant:** a statement that lost because of the shape in which its block first used a table would lose again: the
block then begins again as a whole, and uses its tables in their newest shape.

**Invariant:** an open block never goes back behind a savepoint that it can still be rolled back to: the places that the
savepoint remembers are those of the statements as they ran. Only COMMIT goes back there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seachange import errors
from seachange.engine.buffer.write_buffer import IndexBuffer, StagedFile
from seachange.engine.context.drawn_values import Drawn
from seachange.engine.context.statement_calls import StatementCall
from seachange.engine.session.statement_loop import StatementRunner
from seachange.engine.transaction.transaction import Transaction
from seachange.engine.transaction.undo import Checkpoint
from seachange.engine.transaction.validate import conflict_with
from seachange.model.ids import DescriptorId, IndexId, KeyHash, Seq
from seachange.model.isolation import Isolation
from seachange.model.locking import LockPolicy
from seachange.sql.port.result import Result
from seachange.sql.settings.session_settings import SessionSettings
from seachange.storage.keys import entry_hash, unique_hash

# Of longer blocks, the statements that came last can be run again.
STEPS_MAX = 1_000
# A result of more rows is not kept to be compared.
ROWS_MAX = 100
# After the first conflict a block locks all that it writes: it meets another for what it had written before that.
RESUMES_MAX = 20
# What a statement is refused with that other versions of tables know no more: its client has to look at them.
_DEFINITION_CLASS = "42"

# By table: the rows, or None if they are too many to be compared.
Written = dict[DescriptorId, dict[tuple[IndexId, bytes], tuple[Any, ...] | None] | None]


@dataclass(frozen=True, slots=True)
class BlockStep:
    """A statement of the block: where it began and ended, what it answered (None if that is not kept), the tables that
    it looked at and as of when, and the values that were drawn for it. `is_held`: that was before a schema change."""

    call: StatementCall
    begin: Checkpoint
    end: Checkpoint
    result: Result | None
    seen: frozenset[DescriptorId]
    snapshot: Seq
    is_held: bool
    drawn: Drawn
    written: Written


class BlockStatements:
    """The statements of an open block, as far back as they can be run again; `settings` are those of the session."""

    def __init__(self, runner: StatementRunner, settings: SessionSettings) -> None:
        self._runner = runner
        self._settings = settings
        self._steps: list[BlockStep] = []
        # How many came before these.
        self._forgotten = 0
        self._resumed = 0

    def clear(self) -> None:
        self._steps.clear()
        self._forgotten = self._resumed = 0

    def forget(self) -> None:
        """What came before the next statement is not run again: something else was done in between."""
        self._forgotten += len(self._steps)
        self._steps.clear()

    @property
    def count(self) -> int:
        """The statements of the block so far."""
        return self._forgotten + len(self._steps)

    @property
    def _is_whole(self) -> bool:
        """Whether they are all that the transaction has written and locked."""
        begin = self._steps[0].begin
        return not (begin.mark.buffer or begin.mark.pending or begin.mark.shares) and not begin.declared.locked

    def run(self, call: StatementCall, kept: int, transaction: Transaction) -> Result:
        """`kept`: the statements before the newest savepoint."""
        if transaction.state.isolation is not Isolation.READ_COMMITTED or call.prepared.is_definition:
            if call.prepared.is_definition and not transaction.state.pending:
                self._share(transaction, kept)
            self.forget()
            result = self._runner.run(call, transaction)
            # What a block writes after a schema change is not written again: other nodes wait for it.
            if transaction.state.pending:
                transaction.state.write_locks.share_all()
            return result
        if len(self._steps) >= STEPS_MAX:
            self.forget()
        if call.prepared.shows_rows:
            self._secure(transaction, kept)
        transaction.state.write_locks.begin_statement(call.prepared.shows_rows)
        try:
            return self._perform(call, transaction, transaction.undo.checkpoint(), {})
        except errors.SerializationFailure as problem:
            if isinstance(problem, errors.StaleNode) or not self._start_over(transaction, kept):
                raise
            return self._perform(call, transaction, transaction.undo.checkpoint(), {})

    def _start_over(self, transaction: Transaction, kept: int) -> bool:
        """After a statement that was refused in the shape in which the block has used its tables: whether the whole
        block has been run again in the newest one, as if it had begun after the schema change."""
        can_start = transaction.state.snapshot.is_held and self.can_resume(transaction) and self._is_whole
        if not can_start or kept:
            return False
        try:
            if not self._resume_at(0, transaction):
                return False
        except (errors.SerializationFailure, errors.IntegrityError, errors.DataError) as problem:
            if isinstance(problem, errors.StaleNode):
                raise
            return False
        transaction.start_statement()
        return True

    def _share(self, transaction: Transaction, kept: int) -> None:
        """What was written before the first schema change is not written again after it either."""
        if transaction.state.isolation is Isolation.READ_COMMITTED:
            self._secure(transaction, kept, everywhere=True)
        elif met := transaction.state.write_locks.secure(LockPolicy.WAIT, everywhere=True):
            raise conflict_with(max(met.values()))

    def _secure(self, transaction: Transaction, kept: int, everywhere: bool = False) -> None:
        """The statement to come sees what other nodes cannot change any more, unless that was changed before a
        savepoint: then it is as in a block that was not overtaken, and COMMIT goes back."""
        policy = LockPolicy.NOWAIT if self.can_resume(transaction) else LockPolicy.WAIT
        met = transaction.state.write_locks.secure(policy, everywhere)
        if not met:
            return
        transaction.state.write_locks.note_conflicts(met)
        place = self._find_place(transaction) if self.can_resume(transaction) else None
        if place is not None and self._forgotten + place < kept:
            return
        if not self._resume_at(place, transaction, kept):
            raise conflict_with(max(met.values()))
        transaction.start_statement()

    def _perform(self, call: StatementCall, transaction: Transaction, begin: Checkpoint, drawn: Drawn) -> Result:
        transaction.state.statement.seen.clear()
        transaction.state.statement.tape.load(drawn)
        settings = self._settings.changes
        result = self._runner.run(call, transaction)
        if self._settings.changes != settings:
            # By set_config: what came before it would mean something else now.
            self.forget()
            return result
        is_sent = call.sink is not None and call.sink.is_begun
        known = None if is_sent or len(result.rows) > ROWS_MAX else result
        end, seen, drawn = (
            transaction.undo.checkpoint(),
            frozenset(transaction.state.statement.seen),
            transaction.state.statement.tape.drawn(),
        )
        written = transaction.state.buffer.rows_since(begin.mark.buffer)
        kept = replace(call, sink=None) if call.sink is not None else call
        snapshot = transaction.state.snapshot
        step = BlockStep(kept, begin, end, known, seen, snapshot.seq, snapshot.is_held, drawn, written)
        self._steps.append(step)
        return result

    def can_resume(self, transaction: Transaction) -> bool:
        return (
            bool(self._steps)
            and transaction.state.isolation is Isolation.READ_COMMITTED
            and not transaction.state.pending
        )

    def resume(self, transaction: Transaction) -> bool:
        """After a conflict: whether the block now is as its client knows it, on the newest versions of its rows."""
        return self._resume_at(self._find_place(transaction) if self.can_resume(transaction) else None, transaction)

    def _resume_at(self, place: int | None, transaction: Transaction, kept: int = 0) -> bool:
        self._resumed += 1
        if place is None or self._resumed > RESUMES_MAX:
            return False
        known = tuple(self._steps)
        try:
            return self._run_from(place, transaction)
        except errors.SerializationFailure as problem:
            if isinstance(problem, errors.StaleNode):
                raise
            # What came before keeps the shape of its tables, in which the newest rows cannot be shown.
            if not (place and transaction.state.snapshot.is_held and self._is_whole) or kept:
                raise
        self._steps[:] = known
        return self._run_from(0, transaction)

    def _run_from(self, place: int, transaction: Transaction) -> bool:
        again = self._steps[place:]
        transaction.undo.undo_to(again[0].begin, again[0].end.write_locks)
        del self._steps[place:]
        changed: set[DescriptorId] = set()
        return all(self._is_unchanged(step, transaction, changed) for step in again)

    def _is_unchanged(self, step: BlockStep, transaction: Transaction, changed: set[DescriptorId]) -> bool:
        """`changed` are the tables of which the block has written other rows than its client knows of."""
        begin = transaction.undo.checkpoint()
        if step.call.prepared.is_query and step.seen.isdisjoint(changed) and not _is_outdated(step, transaction):
            self._steps.append(replace(step, begin=begin, end=begin))
            return True
        if step.result is None:
            return False
        transaction.start_statement()
        try:
            result = self._perform(step.call, transaction, begin, step.drawn)
        except errors.Error as problem:
            if problem.sqlstate.startswith(_DEFINITION_CLASS):
                return False
            raise
        written = self._steps[-1].written
        changed.update(
            id_
            for id_ in {*written, *step.written}
            if id_ not in written or written[id_] is None or written[id_] != step.written.get(id_)
        )
        return _is_same(result, step.result, step.call.prepared.is_ordered)

    # Where to go back to.

    def _find_place(self, transaction: Transaction) -> int | None:
        """The first statement that wrote, locked or relied on what others have changed."""
        met, locked = transaction.state.write_locks.met, transaction.state.write_locks.writes
        shares = transaction.state.declared.shares
        found = [
            self._step_of([n for n, key in enumerate(shares) if key in met], lambda at: at.mark.shares),
            self._step_of([n for n, key in enumerate(locked) if key in met], lambda at: at.write_locks.writes),
        ]
        if transaction.state.buffer.is_adapted:
            adapted = self._find_adapted(transaction)
            found = [adapted, *found] if adapted is not None and -1 not in found else []
        else:
            implied = transaction.state.write_locks.implied
            found += [
                self._step_of([n for n, key in enumerate(implied) if key in met], lambda at: at.write_locks.keys),
                self._step_of(_written_at(transaction), lambda at: at.mark.buffer),
            ]
        places = [place for place in found if place is not None]
        if not places:
            # It is not known which: all of them, then.
            return 0 if self._is_whole else None
        place = min(places)
        if place >= 0 and self._steps[place].is_held and self._is_whole:
            # It would lose again as of that time: the block has to begin after the schema change.
            return 0
        return place if place >= 0 else None

    def _find_adapted(self, transaction: Transaction) -> int | None:
        """The same for rows that the commit has put into another form: the first statement that looked at their tables,
        which may have locked them. None if that may not be all that was met, or was not enough before."""
        state = transaction.state
        if self._resumed or not self._is_whole or any(state.buffer.staged_segments()):
            return None
        known = {*state.declared.shares, *state.write_locks.writes}
        tables: set[DescriptorId] = set()
        for buffer in state.buffer.indexes.values():
            hashes = {key for encoded in buffer.entries for key in _hashes(buffer, encoded)}
            known |= hashes
            if not hashes.isdisjoint(state.write_locks.met):
                tables.add(buffer.plan.table_id)
        if not tables or not known >= state.write_locks.met.keys():
            return None
        return next(
            (n for n, step in enumerate(self._steps) if not tables.isdisjoint({*step.seen, *step.written})), None
        )

    def _step_of(self, places: Sequence[int], count: Callable[[Checkpoint], int]) -> int | None:
        """The statement that did the first of these; -1 if that came before all of them."""
        if not places:
            return None
        if places[0] < count(self._steps[0].begin):
            return -1
        return next((n for n, step in enumerate(self._steps) if places[0] < count(step.end)), -1)


def _written_at(transaction: Transaction) -> list[int]:
    """The places in the journal of what the transaction has written and others have, too."""
    found = []
    for place, where, encoded in transaction.state.buffer.written_since(0):
        if isinstance(where, StagedFile):
            is_met = _is_overtaken(transaction, where)
        else:
            is_met = not _hashes(where, encoded or b"").isdisjoint(transaction.state.write_locks.met)
        if is_met:
            found.append(place)
    return found


def _is_overtaken(transaction: Transaction, file: StagedFile) -> bool:
    if file.hashes is None:
        return False
    with transaction.state.epoch.lock:
        return transaction.state.epoch.conflicts.find_listed([(file.hashes, file.base)]) is not None


def _hashes(buffer: IndexBuffer, encoded: bytes) -> set[KeyHash]:
    """What the commit lists for an entry, whatever is done to it."""
    plan, entry = buffer.plan, buffer.entries.get(encoded)
    if plan.holds_rows:
        return {entry_hash(plan.index.id, encoded), unique_hash(plan.index.id, encoded)}
    key = plan.unique_key(entry.key) if entry is not None else None
    return set() if key is None else {unique_hash(plan.index.id, plan.unique_codec.encode(key))}


def _is_outdated(step: BlockStep, transaction: Transaction) -> bool:
    """Whether others have written to a table that the statement looked at, or changed it, since it did."""
    epoch = transaction.state.epoch
    then, now = epoch.schema(step.snapshot).by_id, epoch.schemas.newest.by_id
    for id_ in step.seen:
        table = now.get(id_)
        if table is None or id_ not in then or then[id_].version != table.version:
            return True
        with epoch.lock:
            if epoch.conflicts.newest_touching(table.index_by_id) > step.snapshot:
                return True
    return False


def _is_same(result: Result, before: Result, is_ordered: bool) -> bool:
    """Rows that were not asked for in an order may come in any."""
    if (result.tag, result.count) != (before.tag, before.count):
        return False
    if is_ordered:
        return list(result.rows) == list(before.rows)
    return Counter(map(repr, result.rows)) == Counter(map(repr, before.rows))
