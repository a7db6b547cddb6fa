"""The model of one table: rows, the entries of its indexes, its constraints on rows, and a job that changes them.

A row is a key and a value of the column that the change is about. A transaction has a snapshot, the version that it was
planned with, and writes one row when it commits; what it does to the indexes is what its version says, found through
the primary index of that version, never through the rows themselves. Those are kept beside, as what must be true:

**Invariant:** for every open transaction and for the head, each index that its version reads holds exactly the entries
of the rows at its snapshot; no two rows share a key that is unique in it; no row breaks a rule that holds in it; no
commit overwrites a row that was written since its snapshot; an index that was collected has no entries.

Nothing is modelled twice: a transaction that ends without writing is as good as one that never began, a crash of the
job leaves what was committed, and a drain that ends is a raise that no transaction is below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from seachange.model.ids import ColumnId, TableId
from seachange.verify.model.entries import NONE, Content, Entries
from seachange.verify.model.explore import Events, Label, Refusal, State, value_at
from seachange.verify.model.program import Act, Program
from seachange.verify.model.row_job import Compaction, RowJob
from seachange.verify.model.row_state import (
    CELLS,
    EXPIRED,
    GENERATIONS,
    HEAD,
    LIVE,
    LOWEST,
    OPEN,
    POSITION,
    RECORDED,
    ROW,
    UNREGISTERED,
    VERSION,
    ZOMBIE,
    Canon,
    Scope,
)
from seachange.verify.model.shape import ROWS, IndexKind, RowsVersion, shape_of
from seachange.verify.model.side_by_side import Versions
from seachange.verify.model.switches import Switch, Switches
from seachange.verify.model.words import Speaker, Trace, say_common, say_rebase, say_value, tell_steps

_FLAW = "flaw"
# The position of a resumed worker that has done its harm.
_DONE = -2
# By number of index and entry: what a commit stores there, and whether it declares the key.
Written = dict[tuple[int, int], tuple[int, bool]]


class _Attempt(NamedTuple):
    """A transaction that is about to commit: the views of the version that it was planned with (`own`), of the one
    whose states it obeys and of the newest; the rows as it has seen them, and as what is derived again finds them. One
    is made for each that is open in each state, in half the time of a dataclass."""

    state: State
    slot: int
    planned: int
    used: int
    snapshot: int
    look: int
    own: RowsVersion
    view: RowsVersion
    current: RowsVersion
    seen: Content
    now: Content


class RowModel:
    def __init__(
        self,
        program: Program,
        table: str | TableId,
        column: str | frozenset[ColumnId],
        scope: Scope,
        switches: Switches,
    ) -> None:
        self._scope, self._switches = scope, switches
        self._speaker = Speaker(program)
        self.shape = shape_of(program, table, column)
        self._code, self._starts, self._kinds = program.instructions, program.starts, self.shape.kinds
        # Again for versions that a worker publishes after it lost its job: they are newer than all others.
        self._views = self.shape.views * 2
        self._versions = len(program.versions)
        self._forth = max(instruction.version for _, instruction in program.path(0))
        self._keys, self._bad = len(scope.rows), scope.bad_value
        self._returns = self.shape.table_id in program.returning
        self._stops = scope.pauses or Switch.NO_FENCE in switches
        self._zombies = scope.workers or Switch.ZOMBIE_COORDINATOR in switches
        self._entries = Entries(self._kinds, self._keys, scope.values, switches, self.shape.converted, scope.bad_value)
        self._canon = Canon(program, self.shape, self._zombies, switches)
        self._job = RowJob(self.shape, scope, self._entries, self._canon, Versions(program, switches), switches)
        self._compaction = Compaction(self.shape, self._entries, self._canon, switches)

    @property
    def initial(self) -> State:
        rows = tuple(((0, value),) if value != NONE else () for value in self._scope.rows)
        now = self._scope.rows
        cells = tuple(((),) * self._entries.size(n) for n in range(len(self._kinds)))
        is_kept = self._returns and Switch.COLLECTED_TABLE not in self._switches
        generations = tuple(
            ((0, 0, self._entries.content(n, now)),) if is_kept or n in self._views[0].writes else ()
            for n in range(len(self._kinds))
        )
        starts = self._starts
        return self._canon.normal(rows, cells, generations, starts, 0, 0, (NONE,) * len(starts), 0, (), (), 0, NONE)

    def successors(self, state: State) -> Iterable[tuple[Label, State]]:
        out: list[tuple[Label, State]] = []
        self._begin(state, out)
        for slot, transaction in enumerate(state[OPEN]):
            if not slot or transaction != state[OPEN][slot - 1]:
                self._go_on(state, slot, out)
        self._work(state, out)
        if self._scope.compaction:
            self._compaction.step(state, out)
        return out

    def problem(self, state: State) -> str | None:
        if state[ROW] == _FLAW:
            return str(state[CELLS])
        rows, cells, generations, positions, version, _, _, _, transactions, _, head, _ = state
        for number in self._canon.collected(positions):
            if generations[number] or any(cells[number]):
                return f"{self.name(number)} no longer exists, and has entries that will never be collected"
        wrong = self._misread(rows, cells, generations, head, self._views[version])
        if wrong is not None:
            return f"at the head, {wrong}"
        for snapshot, planned, flag in transactions:
            if flag != EXPIRED:
                wrong = self._misread(rows, cells, generations, snapshot, self._views[planned])
                if wrong is not None:
                    return f"at the snapshot of an open transaction, {wrong}"
        return None

    def _misread(
        self, rows: tuple[Events, ...], cells: Any, generations: Any, snapshot: int, view: RowsVersion
    ) -> str | None:
        now = tuple(value_at(events, snapshot, NONE) for events in rows)
        for number in view.reads:
            found = self._entries.read(cells[number], generations[number], snapshot, by_base=False)
            if found != self._entries.content(number, now):
                return self._say_misread(number, found, now)
            if self._kinds[number] >= IndexKind.UNIQUE or self._kinds[number] is IndexKind.PRIMARY_BY_VALUE:
                present = [value for value in now if value != NONE]
                if len(set(present)) < len(present):
                    return f"two rows have the same key in {self.name(number)}"
        if view.promises and self._bad != NONE and self._bad in now:
            return "a row breaks a constraint that is PUBLIC"
        return None

    # Transactions.

    def _begin(self, state: State, out: list[tuple[Label, State]]) -> None:
        positions, version, lowest, transactions, head = (
            state[POSITION],
            state[VERSION],
            state[LOWEST],
            state[OPEN],
            state[HEAD],
        )
        if len(transactions) >= self._scope.nodes or self._views[version].primary == NONE:
            return
        if self._canon.is_over(positions):
            return
        versions: Sequence[int] = (version,)
        if Switch.CACHED_SCHEMA in self._switches and version <= self._forth:
            versions = range(lowest, version + 1)
        flag = UNREGISTERED if Switch.LATE_REGISTER in self._switches else LIVE
        for planned in versions:
            begun = (*transactions, (head, planned, flag))
            out.append((("begin", planned, flag), self._canon.changed(state, {OPEN: begun})))

    def _go_on(self, state: State, slot: int, out: list[tuple[Label, State]]) -> None:
        version, lowest, transactions, head = state[VERSION], state[LOWEST], state[OPEN], state[HEAD]
        snapshot, planned, flag = transactions[slot]
        others = transactions[:slot] + transactions[slot + 1 :]
        if flag == UNREGISTERED:
            out.append((("register", slot), self._canon.changed(state, {OPEN: (*others, (snapshot, planned, LIVE))})))
            return
        if flag == LIVE and self._stops:
            out.append((("expire", slot), self._canon.changed(state, {OPEN: (*others, (snapshot, planned, EXPIRED))})))
        used, look = planned, snapshot
        if Switch.NO_FENCE not in self._switches:
            if flag == EXPIRED:
                out.append((("stale", slot), self._canon.changed(state, {OPEN: others})))
                return
            if Switch.DISTANCE_FENCE in self._switches:
                if version - planned > 1:
                    used, look = version, head
            elif planned < lowest:
                if Switch.NO_DRAIN_NO_REBASE in self._switches:
                    flaw = (_FLAW, "a live transaction was refused because of the change")
                    out.append((("refused", slot), flaw))
                    return
                used, look = version, head
        out += [(label, after) for label, after in self._writes(state, slot, used, look) if isinstance(after, tuple)]

    def refusals(self, state: State) -> Iterator[tuple[Label, Refusal, State]]:
        """The writes of open transactions that are rejected, and the state afterwards. A rejected transaction equals
        one that never began."""
        for slot, (snapshot, planned, flag) in enumerate(state[OPEN]):
            if flag == LIVE:
                used, look = (state[VERSION], state[HEAD]) if planned < state[LOWEST] else (planned, snapshot)
                without = self._canon.changed(state, {OPEN: state[OPEN][:slot] + state[OPEN][slot + 1 :]})
                for label, after in self._writes(state, slot, used, look):
                    if isinstance(after, Refusal):
                        yield label, after, without

    def _writes(self, state: State, slot: int, used: int, look: int) -> Iterator[tuple[Label, State | Refusal]]:
        """Every row that the transaction may write, every way, and the outcome; `used` is the version whose states it
        follows and `look` the snapshot of its checks: not its own, if it was rebased."""
        attempt = self._attempt(state, slot, used, look)
        for key in range(self._keys):
            old = attempt.seen[key]
            for new in range(NONE, self._scope.values):
                if new != old:
                    label = ("commit", slot, key, old, new, attempt.planned, used)
                    yield label, self._outcome(attempt, key, new)

    def _attempt(self, state: State, slot: int, used: int, look: int) -> _Attempt:
        snapshot, planned, _ = state[OPEN][slot]
        data = state[ROW], state[CELLS], state[GENERATIONS]
        view, own = self._views[used], self._views[planned]
        seen = self._entries.rows_of(own.primary, *data, snapshot)
        is_derived = used != planned and view.primary != NONE
        now = self._entries.rows_of(view.primary, *data, look) if is_derived else seen
        return _Attempt(state, slot, planned, used, snapshot, look, own, view, self._views[state[VERSION]], seen, now)

    def _outcome(self, attempt: _Attempt, key: int, new: int) -> State | Refusal:
        """The outcome of writing one row."""
        view, current, old = attempt.view, attempt.current, attempt.seen[key]
        if view.primary == NONE:
            return Refusal.GONE
        # A rebased write must find the row as it was.
        if attempt.now[key] != old:
            return Refusal.MOVED
        breaks = new == self._bad != NONE
        if breaks and (view.refuses or (view.records and current.refuses)):
            return Refusal.BROKEN
        rows, cells, generations = attempt.state[ROW], attempt.state[CELLS], attempt.state[GENERATIONS]
        written = keys = self._written(view, key, old, new)
        if attempt.used != attempt.planned and Switch.REBASE_FORGETS_KEYS not in self._switches:
            # A rebased commit keeps the keys by which its first plan would have conflicted.
            keys = {**self._written(attempt.own, key, old, new), **written}
        overwrites = bool(rows[key]) and rows[key][-1][0] > attempt.snapshot
        if (view.primary == ROWS and overwrites) or self._conflicts(keys, cells, attempt.snapshot):
            return Refusal.CONFLICT
        if new != NONE and any(self._is_taken(n, key, new, cells, generations, attempt.look) for n in view.checks):
            return Refusal.TAKEN
        if overwrites:
            return (_FLAW, "a commit overwrites a row that was written since its snapshot: that write is lost")
        return self._committed(attempt, key, new, written, records=breaks and view.records and current.records)

    def _committed(self, attempt: _Attempt, key: int, new: int, written: Written, records: bool) -> State:
        state, slot = attempt.state, attempt.slot
        rows, sequence = state[ROW], state[HEAD] + 1
        cells = [list(c) for c in state[CELLS]]
        for (number, entry), (stored, left) in written.items():
            cells[number][entry] = (*cells[number][entry], (sequence, stored, left))
        changes: dict[int, Any] = {
            ROW: (*rows[:key], (*rows[key], (sequence, new)), *rows[key + 1 :]),
            CELLS: tuple(map(tuple, cells)),
            RECORDED: 1 if records else state[RECORDED],
            OPEN: state[OPEN][:slot] + state[OPEN][slot + 1 :],
            HEAD: sequence,
        }
        return self._canon.changed(state, changes)

    def _written(self, view: RowsVersion, key: int, old: int, new: int) -> Written:
        """What the write stores in each entry of each index, and whether the commit declares its key."""
        written: Written = {}
        for number in view.removes:
            if self._entries.has_entry(number, old):
                written[number, self._entries.entry(number, key, old)] = (NONE, self._leaves_key(view, number))
        for number in view.writes:
            if self._entries.has_entry(number, new):
                stored = self._entries.stored(number, key, new)
                written[number, self._entries.entry(number, key, new)] = (stored, self._leaves_key(view, number))
        return written

    def _conflicts(self, written: Written, cells: Any, snapshot: int) -> bool:
        """Whether an entry of a primary index, or a unique key, was written since the snapshot."""
        for (number, entry), (_, left) in written.items():
            if self._kinds[number] <= IndexKind.PRIMARY_BY_VALUE:
                events = cells[number][entry]
                if events and events[-1][0] > snapshot:
                    return True
            elif left:
                first = entry - entry % self._keys
                for events in cells[number][first : first + self._keys]:
                    if events and events[-1][0] > snapshot and events[-1][2]:
                        return True
        return False

    def _is_taken(self, number: int, key: int, value: int, cells: Any, generations: Any, look: int) -> bool:
        kind = self._kinds[number]
        if kind is IndexKind.PRIMARY:
            return False
        found = self._entries.read(cells[number], generations[number], look, by_base=False)
        if kind is IndexKind.PRIMARY_BY_VALUE:
            return found[value] not in (NONE, key)
        return any(found[value * self._keys + other] != NONE for other in range(self._keys) if other != key)

    def _leaves_key(self, view: RowsVersion, number: int) -> bool:
        if self._kinds[number] is IndexKind.PLAIN:
            return False
        return Switch.UNDECLARED_KEYS not in self._switches or number in view.checks

    # The jobs.

    def _work(self, state: State, out: list[tuple[Label, State]]) -> None:
        for position in state[POSITION]:
            instruction = self._code[position]
            self._job.step(state, instruction, position, out)
            if instruction.back is not None:
                canceled = self._job.moved(state, instruction, instruction.back)
                out.append((("cancel", position), self._canon.changed(state, {POSITION: canceled})))
        if self._zombies:
            self._resume(state, out)

    def _resume(self, state: State, out: list[tuple[Label, State]]) -> None:
        """A stopped worker of the only job."""
        (position,), zombie = state[POSITION], state[ZOMBIE]
        instruction = self._code[position]
        if zombie == NONE and instruction.act is not Act.END:
            out.append((("stop", position), self._canon.changed(state, {ZOMBIE: position})))
        elif zombie >= 0 and zombie != position:
            if Switch.ZOMBIE_COORDINATOR not in self._switches:
                out.append((("turned away", zombie), self._canon.changed(state, {ZOMBIE: NONE})))
            elif self._code[zombie].act is Act.PUBLISH:
                version = self._code[zombie].version + self._versions
                changes = {VERSION: version, HEAD: state[HEAD] + 1, ZOMBIE: _DONE}
                out.append((("zombie", zombie), self._canon.changed(state, changes)))

    # Descriptions.

    def name(self, number: int) -> str:
        return self._speaker.element(self.shape.indexes[number])

    def _show(self, content: Sequence[int]) -> str:
        told = [f"row {key + 1} is {say_value(value, self._bad)}" for key, value in enumerate(content) if value != NONE]
        return ", ".join(told) or "there are no rows"

    def _say_misread(self, number: int, found: Content, now: Content) -> str:
        right = self._entries.content(number, now)
        missing = sum(f == NONE != r for f, r in zip(found, right, strict=True))
        what = "lacks the entry of a row" if missing else "has an entry that no row has"
        return f"{self.name(number)} is PUBLIC and {what} ({self._show(now)})"

    def tell(self, trace: Trace) -> list[str]:
        return tell_steps(trace, OPEN, self._say)

    def _say(self, label: Label, who: str) -> str:
        match label[0]:
            case "commit":
                _, _, key, old, new, planned, used = label
                values = f"from {say_value(old, self._bad)} to {say_value(new, self._bad)}"
                return f"{who} commits: row {key + 1} goes {values}{say_rebase(planned, used)}"
            case "fold":
                return f"compaction of {self.name(label[1])} reads it at the head"
            case "swap":
                return f"compaction of {self.name(label[1])} swaps in what it has read"
            case "not swapped":
                return f"compaction of {self.name(label[1])} is refused: there is a newer generation"
            case "forget":
                return f"the superseded generation of {self.name(label[1])} is deleted"
            case _:
                return say_common(self._speaker, label, who)
