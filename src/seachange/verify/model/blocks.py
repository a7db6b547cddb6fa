"""The model of a transaction block that adds a constraint: a unique index, or a rule on rows.

The block writes rows into a buffer before and after its DDL statement. The stages of the statement are child
transactions; what the block commits is one request: rows, entries, the last version and the check of the records.
Other sessions write one row each, as their version says, and record a violation where the table of states says so.
Nothing is drained: a writer below min_version is rebased when it commits, so a drain is no part of safety.

**Invariant:** at the head and for every open transaction, an index that its version reads holds exactly the entries of
the rows, and no row violates a constraint that it may rely on; the block reads by its index what its rows say; no other
session is refused because of a change that is not committed. From every state the table can become free again (the
constraint committed, or nothing of it left) without help of other clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from seachange.model.change import elements
from seachange.model.states import BEHAVIOUR, Behaviour, Checking, State
from seachange.verify.model.block_state import (
    NOTHING,
    BlockPhase,
    Buffered,
    OpenBlock,
    OtherSession,
    normal,
    read_index,
)
from seachange.verify.model.explore import Label, value_at
from seachange.verify.model.explore import State as Explored
from seachange.verify.model.program import Act, Program
from seachange.verify.model.switches import Switch, Switches

_RULES = (elements.CheckConstraint, elements.ColumnNotNull)
Steps = Iterator[tuple[Label, OpenBlock]]


@dataclass(frozen=True, slots=True)
class BlockScope:
    """`rows` are the values of the rows at first (0: there is none), `values` those that may be written, of which `bad`
    violates a rule. `moves`: each statement of the block reads the head (READ COMMITTED). `fails`: it may be rolled
    back or killed."""

    rows: tuple[int, ...] = (1, 0)
    values: tuple[int, ...] = (0, 1)
    bad: int | None = None
    nodes: int = 1
    writes: bool = True
    savepoints: bool = False
    moves: bool = False
    fails: bool = True


class _Write(NamedTuple):
    """A write of another session, by the version `used` and with checks as of `look`."""

    transaction: OtherSession
    used: int
    look: int
    row: int
    old: int
    new: int


class BlockModel:
    def __init__(self, program: Program, scope: BlockScope, switches: Switches) -> None:
        path = [instruction for _, instruction in program.path(0)]
        last = max(n for n, instruction in enumerate(path) if instruction.act is Act.PUBLISH)
        self._code = path[: last + 1]
        versions = range(self._code[-1].version + 1)
        added = [e for e in program.elements if program.state(0, e) is State.ABSENT]
        (element,) = [e for e in added if isinstance(e, (elements.UniqueIndex, *_RULES))]
        self._is_index = isinstance(element, elements.UniqueIndex)
        states = [program.state(version, element) for version in versions]
        # After the last one: it was reverted.
        self._states = [*states, State.ABSENT]
        self._does: list[Behaviour] = [BEHAVIOUR[state] for state in self._states]
        self._gone = len(states)
        self._scope = scope
        self._switches = switches
        self._rows = range(len(scope.rows))

    @property
    def initial(self) -> OpenBlock:
        rows = tuple(((0, value, ()),) if value else () for value in self._scope.rows)
        buffer = (None,) * len(rows)
        return self._normal(OpenBlock(rows, (), None, 0, 0, 0, 0, None, 0, (), buffer, None, BlockPhase.OPEN, 0))

    def _normal(self, state: OpenBlock) -> OpenBlock:
        return normal(state, self._gone, self._needs_raise(state.position), self._scope.moves, self._switches)

    def _needs_raise(self, position: int) -> bool:
        """Whether the sequence of the last raise is read before the next one."""
        for instruction in self._code[position:]:
            if instruction.act in (Act.BACKFILL, Act.VALIDATE):
                return True
            if instruction.act in (Act.RAISE, Act.SNAPSHOT):
                return False
        return False

    def _broken(self, *switches: Switch) -> bool:
        return not self._switches.isdisjoint(switches)

    def _to(self, text: str, state: OpenBlock, **changes: Any) -> tuple[Label, OpenBlock]:
        return (text,), self._normal(state._replace(**changes))

    def _flaw(self, text: str, state: OpenBlock, flaw: str) -> tuple[Label, OpenBlock]:
        return (text,), state._replace(phase=BlockPhase.FLAW, open=(flaw,))

    def successors(self, explored: Explored) -> Iterable[tuple[Label, Explored]]:
        state = OpenBlock(*explored)
        if state.phase is not BlockPhase.FLAW:
            yield from self._others(state)
            yield from self._block(state)

    # Other sessions.

    def _others(self, state: OpenBlock) -> Steps:
        if len(state.open) < self._scope.nodes:
            begun = OtherSession(state.head, state.version, False)
            yield self._to(f"T begins ({self._states[state.version]})", state, open=(*state.open, begun))
        for slot, transaction in enumerate(state.open):
            if slot and transaction == state.open[slot - 1]:
                continue
            yield self._to("T ends", state, open=(*state.open[:slot], *state.open[slot + 1 :]))
            yield from self._commits(state, slot, transaction)

    def _commits(self, state: OpenBlock, slot: int, transaction: OtherSession) -> Steps:
        snapshot, planned, _ = transaction
        used, look = (state.version, state.head) if planned < state.lowest else (planned, snapshot)
        if used != planned and self._broken(Switch.UNCHECKED_REBASE):
            used, look = planned or state.version, snapshot
        if planned < state.lowest and self._broken(Switch.NO_DRAIN_NO_REBASE):
            flaw = "a live transaction was refused because of the change"
            yield self._flaw("T commits below min_version, and is refused", state, flaw)
            return
        rest = state._replace(open=(*state.open[:slot], *state.open[slot + 1 :]))
        for row in self._rows:
            if state.rows[row] and state.rows[row][-1][0] > snapshot:
                # The row was changed meanwhile.
                continue
            old = value_at(state.rows[row], snapshot, NOTHING)
            for new in self._scope.values:
                if new != old:
                    yield from self._write(rest, _Write(transaction, used, look, row, old, new))

    def _write(self, state: OpenBlock, write: _Write) -> Steps:
        does, now = self._does[write.used], self._does[state.version]
        taken, met = self._violates(state, write)
        text = self._say_write(write)
        if (taken or met) and does.checks is Checking.REFUSED:
            return
        if met and self._broken(Switch.HARD_KEYS):
            flaw = "another session was aborted by a constraint that is not committed"
            yield self._flaw(f"{text}: it conflicts with another writer of the key", state, flaw)
            return
        records = False
        if (taken or met) and does.checks is Checking.RECORDED:
            if self._broken(Switch.EARLY_LOOK):
                if not write.transaction.looked:
                    looked = (*state.open, write.transaction._replace(looked=True))
                    if now.checks is Checking.RECORDED:
                        yield self._to("T looks: the constraint is not committed", state, open=looked)
                    return
            elif now.checks is Checking.REFUSED and not self._broken(Switch.BLIND_RECORD):
                # It was committed meanwhile: the violator fails.
                return
            silent = met and not taken and self._broken(Switch.SILENT_KEYS)
            records = now.checks is Checking.RECORDED and not silent
        yield self._commit_write(state, write, text, records)

    def _violates(self, state: OpenBlock, write: _Write) -> tuple[bool, bool]:
        """Whether the row violates the constraint as of the look; and whether another commit has left its key since."""
        does, new = self._does[write.used], write.new
        if not self._is_index:
            return new == self._scope.bad, False
        if not new:
            return False, False
        other = 1 - write.row
        entries = read_index(state, write.look)
        taken = does.checks is not Checking.NONE and (new, other) in entries
        left = {key for seq, _, keys in state.rows[other] if seq > write.look for key in keys}
        return taken, does.writes and new in left

    def _commit_write(self, state: OpenBlock, write: _Write, text: str, records: bool) -> tuple[Label, OpenBlock]:
        does, seq = self._does[write.used], state.head + 1
        leaves = self._is_index and does.writes and bool(write.new)
        if self._broken(Switch.UNDECLARED_KEYS) and does.checks is Checking.NONE:
            leaves = False
        event = (seq, write.new, (write.new,) if leaves else ())
        changes: dict[str, Any] = {
            "rows": _with(state.rows, write.row, (*state.rows[write.row], event)),
            "head": seq,
            "buffer": _overtaken(state.buffer, write.row),
            "savepoint": state.savepoint and (_overtaken(state.savepoint[0], write.row), state.savepoint[1]),
            "recorded": int(records or state.recorded),
        }
        if self._is_index and does.writes:
            changes["cells"] = _entries(state, seq, write.row, write.old, write.new)
        return self._to(text + (" and records the violation" if records else ""), state, **changes)

    def _say_write(self, write: _Write) -> str:
        planned, used = self._states[write.transaction.planned], self._states[write.used]
        rebased = f", rebased to {used}" if write.used != write.transaction.planned else ""
        return f"T (planned {planned}{rebased}) commits: row {write.row + 1} goes {_say(write.old, write.new)}"

    # The block.

    def _block(self, state: OpenBlock) -> Steps:
        match state.phase:
            case BlockPhase.OPEN:
                yield from self._go_on(state)
            case BlockPhase.PLAIN:
                yield from self._commit_plain(state)
            case BlockPhase.FAILED | BlockPhase.DEAD:
                yield from self._clean_up(state)
            case BlockPhase.CLEANED if self._broken(Switch.LATE_COMMIT) and self._is_valid(state):
                yield from self._commit(state, "the block's COMMIT arrives late: ")
            case _:
                pass

    def _is_valid(self, state: OpenBlock) -> bool:
        """Whether the statement is done, so that the block checks its own rows by the constraint."""
        return state.position == len(self._code) - 1

    def _go_on(self, state: OpenBlock) -> Steps:
        if state.position == 0 or self._is_valid(state) or self._broken(Switch.BACKGROUND):
            # A statement answers when its work is done.
            yield from self._statements(state)
        if not self._is_valid(state):
            yield from self._advance(state)
        if state.position == 0 or self._is_valid(state):
            yield from self._commit(state, "the block COMMITs: ")
        if self._scope.fails:
            yield self._to("the block is rolled back", state, phase=BlockPhase.FAILED)
            yield self._to("the block's process is killed", state, phase=BlockPhase.DEAD)

    def _look(self, state: OpenBlock) -> int:
        """The snapshot of the block's statements."""
        return state.head if self._scope.moves else _known(state.start)

    def _statements(self, state: OpenBlock) -> Steps:
        look = self._look(state)
        for row in self._rows if self._scope.writes else ():
            own = state.buffer[row]
            mine = own.value if own is not None else value_at(state.rows[row], look, NOTHING)
            for new in self._scope.values:
                if new == mine:
                    continue
                old = value_at(state.rows[row], look, NOTHING)
                late = bool(state.rows[row]) and state.rows[row][-1][0] > look
                first = own or Buffered(old, NOTHING, late)
                buffer = _with(state.buffer, row, first._replace(value=new))
                if self._is_valid(state) and self._breaks(self._own_view(state, look, buffer)):
                    continue
                yield self._to(f"the block writes: row {row + 1} goes {_say(mine, new)}", state, buffer=buffer)
        if self._scope.savepoints and state.savepoint is None:
            yield self._to("the block sets a SAVEPOINT", state, savepoint=(state.buffer, state.position > 0))
        if state.savepoint:
            yield self._roll_back_to(state, *state.savepoint)

    def _roll_back_to(self, state: OpenBlock, buffer: Any, begun: bool) -> tuple[Label, OpenBlock]:
        text, undone = "the block is rolled back TO SAVEPOINT", state._replace(buffer=buffer, savepoint=())
        if begun or not state.position:
            return self._to(text, undone)
        if self._broken(Switch.SAVEPOINT_LEFTOVERS):
            return self._to(f"{text}; the states stay as they are", undone, phase=BlockPhase.PLAIN)
        return self._to(f"{text}; a child transaction publishes ABSENT", self._reverted(undone), phase=BlockPhase.PLAIN)

    def _advance(self, state: OpenBlock) -> Steps:
        """The next child transaction of the DDL statement."""
        instruction = self._code[state.position]
        following = state._replace(position=state.position + 1)
        seq = state.head + 1
        match instruction.act:
            case Act.PUBLISH:
                name = self._states[instruction.version]
                yield self._to(f"a child publishes {name}", following, version=instruction.version, head=seq)
            case Act.RAISE if self._broken(Switch.NO_EXEMPTION):
                flaw = "the block can never commit: its drain waits for its own transaction"
                yield self._flaw("the block waits for every writer to know the version", state, flaw)
            case Act.RAISE:
                text = "a child raises min_version; R is the sequence of the raise"
                yield self._to(text, following, lowest=state.version, head=seq, at=seq, recorded=0)
            case Act.SNAPSHOT:
                yield self._to("R is the head", following, at=state.head, recorded=0)
            case Act.BACKFILL:
                own = self._broken(Switch.BUFFER_IN_GENERATION)
                buffer = state.buffer if own else (None,) * len(state.buffer)
                base = _content(self._own_view(state, state.at, buffer))
                text = "the backfill reads the rows at R" + (", and the block's own" if own else "")
                yield self._to(f"{text}, and is attached", following, base=base)
            case Act.VALIDATE:
                yield from self._validate(state, following)
            case _:
                pass

    def _validate(self, state: OpenBlock, following: OpenBlock) -> Steps:
        look = state.start if self._broken(Switch.VALIDATE_AT_START) else state.at
        if self._breaks(self._own_view(state, look, state.buffer)):
            yield self._to("the validation finds a violation: the block fails", state, phase=BlockPhase.FAILED)
        else:
            yield self._to("the validation of the rows at R, under the block's own, finds nothing", following)

    def _commit_plain(self, state: OpenBlock) -> Steps:
        if _is_overtaken(state):
            yield self._to("the block COMMITs: a row was changed by another", state, phase=BlockPhase.OVER)
            return
        rows, seq = list(state.rows), state.head + 1
        for row, own in enumerate(state.buffer):
            if own is not None:
                rows[row] = (*rows[row], (seq, own.value, ()))
        yield self._to("the block COMMITs its rows", state, rows=tuple(rows), head=seq, phase=BlockPhase.OVER)

    def _commit(self, state: OpenBlock, who: str) -> Steps:
        adds, seq = self._is_valid(state), state.head + 1
        if _is_overtaken(state):
            yield self._to(who + "a row was changed by another (40001)", state, phase=BlockPhase.FAILED)
            return
        if adds and any(state.buffer) and self._broken(Switch.SELF_FENCE):
            flaw = "the block is refused by the min_version that it has raised itself"
            yield self._flaw(who + "refused", state, flaw)
            return
        if adds and state.recorded and not self._broken(Switch.IGNORED_RECORD):
            yield self._to(who + "a violation is on record (40001)", state, phase=BlockPhase.FAILED)
            return
        look = state.start if self._broken(Switch.OWN_KEYS_AT_START) else state.head
        checks = adds and any(state.buffer) and not self._broken(Switch.OWN_KEYS_UNCHECKED)
        if checks and self._breaks(self._own_view(state, look, state.buffer)):
            yield self._to(who + "its rows violate the constraint at the head", state, phase=BlockPhase.FAILED)
            return
        rows, after = list(state.rows), state
        for row, own in enumerate(state.buffer):
            if own is None:
                continue
            rows[row] = (*rows[row], (seq, own.value, (own.value,) if own.value and adds else ()))
            old = own.old
            if self._broken(Switch.OLD_IMAGE):
                old = value_at(state.rows[row], _known(state.start), NOTHING)
            if adds and self._is_index and not self._broken(Switch.OWN_ENTRIES_MISSING):
                after = after._replace(cells=_entries(after, seq, row, old, own.value))
        version = self._code[-1].version if adds else state.version
        text = who + ("rows, entries and PUBLIC in one request" if adds else "its rows")
        yield self._to(text, after, rows=tuple(rows), head=seq, version=version, phase=BlockPhase.OVER)

    def _clean_up(self, state: OpenBlock) -> Steps:
        is_dead = state.phase is BlockPhase.DEAD
        if 0 < state.version < self._code[-1].version:
            if is_dead and self._broken(Switch.LEFTOVERS):
                return
            who = "any node, after the owner's end," if is_dead else "the owner"
            phase = BlockPhase.CLEANED if is_dead else BlockPhase.OVER
            yield self._to(f"{who} publishes ABSENT", self._reverted(state), phase=phase)
        else:
            yield self._to("nothing is left behind", state, phase=BlockPhase.OVER)

    def _reverted(self, state: OpenBlock) -> OpenBlock:
        return state._replace(version=self._gone, head=state.head + 1, at=None, recorded=0)

    # What must be true.

    def _own_view(self, state: OpenBlock, look: int | None, buffer: tuple[Buffered | None, ...]) -> tuple[int, ...]:
        at = state.head if look is None else look
        return tuple(
            own.value if own is not None else value_at(state.rows[row], at, NOTHING) for row, own in enumerate(buffer)
        )

    def _breaks(self, values: tuple[int, ...]) -> bool:
        if not self._is_index:
            return self._scope.bad in values
        return values[0] == values[-1] != NOTHING

    def problem(self, explored: Explored) -> str | None:
        state = OpenBlock(*explored)
        if state.phase is BlockPhase.FLAW:
            return str(state.open[0])
        views = [(state.head, state.version), *((t.snapshot, t.planned) for t in state.open)]
        for look, version in views:
            if self._does[version].reads:
                values = self._own_view(state, look, (None,) * len(state.rows))
                if self._is_index and read_index(state, look) != _content(values):
                    return f"a PUBLIC index has other entries than the rows {values}"
                if self._breaks(values):
                    return f"the rows {values} violate a PUBLIC constraint"
        return self._misread(state)

    def _misread(self, state: OpenBlock) -> str | None:
        """What the block itself reads by its new index. With one snapshot it does not read it: the index begins
        later."""
        reads = self._scope.moves or self._broken(Switch.INDEX_AT_START)
        if state.phase is not BlockPhase.OPEN or not self._is_index or not self._is_valid(state) or not reads:
            return None
        if _is_overtaken(state):
            return None
        look = self._look(state)
        seen = set(read_index(state, look))
        for row, own in enumerate(state.buffer):
            if own is not None:
                seen.discard((own.old, row))
                seen |= {(own.value, row)} if own.value else set()
        values = self._own_view(state, look, state.buffer)
        return None if seen == _content(values) else f"the block reads other rows by its index than {values}"

    def is_free(self, explored: Explored) -> bool:
        state = OpenBlock(*explored)
        return state.phase in (BlockPhase.OVER, BlockPhase.CLEANED) and state.version in (
            0,
            self._code[-1].version,
            self._gone,
        )

    def is_own_step(self, label: Label) -> bool:
        """Whether the step needs no other client, and no choice of this one but to end."""
        return not label[0].startswith(("T ", "the block writes", "the block sets", "the block's process"))

    def tell(self, trace: list[tuple[Explored, Label, Explored]]) -> list[str]:
        return [label[0] for _, label, _ in trace]


def _known(point: int | None) -> int:
    assert point is not None
    return point


def _with(items: tuple[Any, ...], place: int, item: Any) -> tuple[Any, ...]:
    return (*items[:place], item, *items[place + 1 :])


def _overtaken(buffer: tuple[Buffered | None, ...], row: int) -> tuple[Buffered | None, ...]:
    own = buffer[row]
    return buffer if own is None else _with(buffer, row, own._replace(is_overtaken=True))


def _is_overtaken(state: OpenBlock) -> bool:
    return any(own is not None and own.is_overtaken for own in state.buffer)


def _content(values: tuple[int, ...]) -> frozenset[tuple[int, int]]:
    return frozenset((value, row) for row, value in enumerate(values) if value)


def _entries(state: OpenBlock, seq: int, row: int, old: int, new: int) -> tuple[Any, ...]:
    """The events of the entries of the index; before the raise that its backfill reads, they need not be kept."""
    if old == new or (state.base is None and state.at is None):
        return state.cells
    came = tuple((seq, value, row, is_there) for value, is_there in ((old, 0), (new, 1)) if value)
    return (*state.cells, *came)


def _say(old: int, new: int) -> str:
    names = {NOTHING: "nothing", 1: "'a'", 2: "'b'"}
    return f"from {names[old]} to {names[new]}"
