"""The model of a transaction block that adds a foreign key: one parent, one child that refers to it, and own rows.

The block deletes and inserts both rows in its buffer, before and after its DDL statement. A parent's writer leaves its
key; a child's insert leaves a share of it if its version maintains the foreign key. Until the foreign key is committed,
a key and a share that meet refuse no session: the later of two other sessions records a violation, and the block fails
if one of its own rows was met since it was checked. A COMMIT that finds a record looks again: it fails if a child has
no parent at the head, under the block's own rows; if not, what is recorded after the look is looked at in the same way.

**Invariant:** for every open transaction and for the head: if its version shows the foreign key, a child that is there
has its parent. No other session is refused before the block's COMMIT. From every state the tables can become free again
without help of other clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from seachange.model.change import elements
from seachange.model.states import BEHAVIOUR, Checking, State
from seachange.verify.model.block_state import BlockPhase, OtherSession
from seachange.verify.model.explore import Label, value_at
from seachange.verify.model.explore import State as Explored
from seachange.verify.model.program import Act, Program
from seachange.verify.model.switches import Switch, Switches

PARENT, CHILD = 0, 1
# That a violation is on record; and, without a safeguard, that none is looked for any more.
_RECORDED, _IGNORED = 1, 2
_NAMES = ("the parent", "a child that refers to it")


@dataclass(frozen=True, slots=True)
class BlockReferenceScope:
    """`writes`: the block has rows of its own, and may be rolled back or killed; `unseen`: the parent is in a table
    that no other session knows before the COMMIT."""

    parent: bool = True
    child: bool = False
    nodes: int = 1
    writes: bool = True
    unseen: bool = False


class OwnRow(NamedTuple):
    """A row of the block: whether it is there. `is_overtaken`: another session has written the row; `is_met`: one has
    written the other row, and left a key or a share, since this one was checked."""

    there: int
    is_overtaken: bool
    is_met: bool


class ReferringBlock(NamedTuple):
    """`rows`: for the parent and the child the events (sequence, whether it is there, whether a key or share was left).
    `at`: the sequence that the validation reads; `recorded`: a violation is on record since then, or since a look."""

    rows: tuple[Any, ...]
    head: int
    position: int
    version: int
    lowest: int
    at: int | None
    recorded: int
    open: tuple[OtherSession, ...]
    buffer: tuple[OwnRow | None, ...]
    phase: BlockPhase


Steps = Iterator[tuple[Label, ReferringBlock]]


class BlockReferenceModel:
    def __init__(self, program: Program, scope: BlockReferenceScope, switches: Switches) -> None:
        path = [instruction for _, instruction in program.path(0)]
        last = max(n for n, instruction in enumerate(path) if instruction.act is Act.PUBLISH)
        self._code = path[: last + 1]
        (key,) = [e for e in program.elements if isinstance(e, elements.ForeignKeyElement)]
        states = [program.state(version, key) for version in range(self._code[-1].version + 1)]
        # After the last one: it was reverted.
        self._states = [*states, State.ABSENT]
        self._does = [BEHAVIOUR[state] for state in self._states]
        self._gone = len(states)
        self._scope, self._switches = scope, switches

    @property
    def initial(self) -> ReferringBlock:
        rows = tuple(((0, 1, 0),) if there else () for there in (self._scope.parent, self._scope.child))
        return self._normal(ReferringBlock(rows, 0, 0, 0, 0, None, 0, (), (None, None), BlockPhase.OPEN))

    def successors(self, explored: Explored) -> Iterable[tuple[Label, Explored]]:
        state = ReferringBlock(*explored)
        yield from self._others(state)
        if state.phase is BlockPhase.OPEN:
            yield from self._go_on(state)
        elif state.phase in (BlockPhase.FAILED, BlockPhase.DEAD):
            yield from self._clean_up(state)

    def problem(self, explored: Explored) -> str | None:
        state = ReferringBlock(*explored)
        for look, version in ((state.head, state.version), *((t.snapshot, t.planned) for t in state.open)):
            if self._does[version].reads and _is_orphan(_view(state, look, (None, None))):
                return "a child has no parent, and the foreign key is PUBLIC"
        return None

    def is_free(self, explored: Explored) -> bool:
        return ReferringBlock(*explored).phase is BlockPhase.OVER

    def is_own_step(self, label: Label) -> bool:
        return not label[0].startswith(("T ", "the block writes", "the block's process"))

    def tell(self, trace: list[tuple[Explored, Label, Explored]]) -> list[str]:
        return [label[0] for _, label, _ in trace]

    # Other sessions.

    def _others(self, state: ReferringBlock) -> Steps:
        if len(state.open) < self._scope.nodes:
            begun = OtherSession(state.head, state.version, False)
            yield self._to(f"T begins ({self._states[state.version]})", state, open=(*state.open, begun))
        for slot, transaction in enumerate(state.open):
            if slot and transaction == state.open[slot - 1]:
                continue
            rest = state._replace(open=(*state.open[:slot], *state.open[slot + 1 :]))
            for which in (PARENT, CHILD):
                if which == CHILD or not self._scope.unseen or self._does[transaction.planned].reads:
                    yield from self._write(rest, transaction, which)

    def _write(self, state: ReferringBlock, transaction: OtherSession, which: int) -> Steps:
        """An existing row is deleted, a missing one is inserted."""
        snapshot, planned, _ = transaction
        used, look = (state.version, state.head) if planned < state.lowest else (planned, snapshot)
        events, others = state.rows[which], state.rows[1 - which]
        if events and events[-1][0] > snapshot:
            # The row was changed meanwhile.
            return
        there, seq = 1 - value_at(events, snapshot, 0), state.head + 1
        does, now = self._does[used], self._does[state.version]
        left = which == PARENT or bool(there and does.writes)
        values = [0, 0]
        values[which], values[1 - which] = there, value_at(others, look, 0)
        depends = (which == CHILD) == bool(there)
        breaks = depends and does.checks is not Checking.NONE and _is_orphan(tuple(values))
        met = depends and left and any(event[2] for event in others if event[0] > look)
        if (breaks or met) and does.checks is Checking.REFUSED:
            return
        is_silent = met and not breaks and Switch.SILENT_REFERENCES in self._switches
        records = (breaks or met) and now.checks is Checking.RECORDED and not is_silent
        yield self._to(
            self._say(transaction, used, which, there) + (" and records the violation" if records else ""),
            state,
            rows=_with(state.rows, which, (*events, (seq, there, int(left)))),
            head=seq,
            recorded=max(int(records), state.recorded),
            buffer=_meet(state.buffer, which, there, left),
        )

    def _say(self, transaction: OtherSession, used: int, which: int, there: int) -> str:
        rebased = f", rebased to {self._states[used]}" if used != transaction.planned else ""
        does = "inserts" if there else "deletes"
        return f"T (planned {self._states[transaction.planned]}{rebased}) commits: it {does} {_NAMES[which]}"

    # The block.

    def _is_valid(self, state: ReferringBlock) -> bool:
        """Whether the statement is done, so that the block checks its own rows."""
        return state.position == len(self._code) - 1

    def _go_on(self, state: ReferringBlock) -> Steps:
        if state.position == 0 or self._is_valid(state):
            yield from self._statements(state)
            yield from self._commit(state)
        if not self._is_valid(state):
            yield from self._advance(state)
        if self._scope.writes:
            yield self._to("the block is rolled back", state, phase=BlockPhase.FAILED)
            yield self._to("the block's process is killed", state, phase=BlockPhase.DEAD)

    def _statements(self, state: ReferringBlock) -> Steps:
        """Whatever the isolation level, references are looked up in the newest rows."""
        for which, own in enumerate(state.buffer if self._scope.writes else ()):
            there = 1 - (own.there if own is not None else value_at(state.rows[which], state.head, 0))
            written = OwnRow(there, own is not None and own.is_overtaken, False)
            buffer = _with(state.buffer, which, written)
            if self._is_valid(state) and _is_orphan(_view(state, state.head, buffer)):
                continue
            does = "inserts" if there else "deletes"
            yield self._to(f"the block writes: it {does} {_NAMES[which]}", state, buffer=buffer)

    def _advance(self, state: ReferringBlock) -> Steps:
        instruction, seq = self._code[state.position], state.head + 1
        following = state._replace(position=state.position + 1)
        match instruction.act:
            case Act.PUBLISH:
                name = self._states[instruction.version]
                published = following._replace(version=instruction.version, head=seq)
                yield self._to(f"a child transaction publishes {name}", published)
            case Act.RAISE:
                # Own rows are checked as of the raise.
                buffer = tuple(own and own._replace(is_met=False) for own in state.buffer)
                raised = following._replace(lowest=state.version, buffer=buffer, recorded=0)
                yield self._to("a child transaction raises min_version; R is the sequence", raised, head=seq, at=seq)
            case Act.VALIDATE if _is_orphan(_view(state, state.at, state.buffer)):
                yield self._to("the validation finds an orphan: the block fails", state, phase=BlockPhase.FAILED)
            case Act.VALIDATE:
                yield self._to("the validation of the rows at R, under the block's own, finds nothing", following)
            case _:
                raise AssertionError(instruction.act)

    def _commit(self, state: ReferringBlock) -> Steps:
        adds, seq, own = self._is_valid(state), state.head + 1, [own for own in state.buffer if own is not None]
        is_met = any(row.is_met for row in own) and Switch.OWN_REFERENCES_UNCHECKED not in self._switches
        is_recorded = state.recorded == _RECORDED and Switch.IGNORED_RECORD not in self._switches
        is_orphan = is_recorded and _is_orphan(_view(state, state.head, state.buffer))
        if any(row.is_overtaken for row in own) or (adds and (is_met or is_orphan)):
            yield self._to("the block COMMITs: refused (40001)", state, phase=BlockPhase.FAILED)
            return
        if adds and is_recorded:
            forgets = Switch.RECORD_AFTER_LOOK in self._switches
            looked = state._replace(recorded=_IGNORED if forgets else 0)
            yield self._to("the block's COMMIT looks again, at the head under its own rows: no orphan", looked)
            return
        rows = state.rows
        for which, row in enumerate(state.buffer):
            if row is not None:
                left = int(which == PARENT or (adds and row.there))
                rows = _with(rows, which, (*rows[which], (seq, row.there, left)))
        state = state._replace(rows=rows, head=seq, phase=BlockPhase.OVER)
        if not adds:
            yield self._to("the block COMMITs its rows", state)
            return
        last = self._code[-1]
        lowest = last.version if last.tables and Switch.NO_PUBLICATION_FENCE not in self._switches else state.lowest
        yield self._to("the block COMMITs: rows and PUBLIC", state, version=last.version, lowest=lowest)

    def _clean_up(self, state: ReferringBlock) -> Steps:
        who = "any node, after the owner's end," if state.phase is BlockPhase.DEAD else "the owner"
        version, head = (self._gone, state.head + 1) if state.version else (0, state.head)
        yield self._to(f"{who} publishes ABSENT", state, version=version, head=head, phase=BlockPhase.OVER)

    # Canonical states.

    def _to(self, text: str, state: ReferringBlock, **changes: Any) -> tuple[Label, ReferringBlock]:
        return (text,), self._normal(state._replace(**changes))

    def _normal(self, state: ReferringBlock) -> ReferringBlock:
        """Sequence numbers become ranks among the points that are still referenced."""
        if state.phase is not BlockPhase.OPEN:
            state = state._replace(buffer=(None, None), recorded=0, position=0, at=None)
        elif not any(i.act is Act.VALIDATE for i in self._code[state.position :]):
            state = state._replace(at=None)
        looks = {state.head, *(t.snapshot for t in state.open), *(() if state.at is None else (state.at,))}
        rank = {point: number for number, point in enumerate(sorted(looks))}
        return state._replace(
            rows=tuple(_squeezed(events, sorted(looks)) for events in state.rows),
            head=rank[state.head],
            at=None if state.at is None else rank[state.at],
            open=tuple(sorted(t._replace(snapshot=rank[t.snapshot]) for t in state.open)),
        )


def _squeezed(events: tuple[Any, ...], points: list[int]) -> tuple[Any, ...]:
    """Between two points the last value counts, and a key was left if any of the commits left it. Below the first
    point no key is compared any more."""
    found: dict[int, tuple[int, int]] = {}
    for seq, there, left in events:
        number = next(n for n, point in enumerate(points) if seq <= point)
        found[number] = (there, int(number > 0 and (left or found.get(number, (0, 0))[1])))
    return tuple((number, *found[number]) for number in sorted(found))


def _view(state: ReferringBlock, look: int | None, buffer: tuple[OwnRow | None, ...]) -> tuple[int, ...]:
    at = state.head if look is None else look
    return tuple(own.there if own is not None else value_at(state.rows[n], at, 0) for n, own in enumerate(buffer))


def _is_orphan(values: tuple[int, ...]) -> bool:
    return bool(values[CHILD] and not values[PARENT])


def _meet(buffer: tuple[OwnRow | None, ...], which: int, there: int, left: bool) -> tuple[OwnRow | None, ...]:
    """The rows of the block after another session has written one of the two."""
    own, other = buffer[which], buffer[1 - which]
    if own is not None:
        buffer = _with(buffer, which, own._replace(is_overtaken=True))
    # An own child and a deleted parent, or the other way round.
    opposed = other is not None and other.there == (which == PARENT) and there == (which == CHILD)
    if other is not None and left and opposed:
        buffer = _with(buffer, 1 - which, other._replace(is_met=True))
    return buffer


def _with(items: tuple[Any, ...], place: int, item: Any) -> tuple[Any, ...]:
    return (*items[:place], item, *items[place + 1 :])
