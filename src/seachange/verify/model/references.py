"""The model of a foreign key: one parent, one child that refers to it, and a job that adds, moves or drops the key.

A parent's writer leaves its key in every index that its version maintains; a child's writer leaves a share of it in the
index that each foreign key which its version maintains refers to. Keys and shares in one index conflict, in whichever
order they come; keys in different indexes do not. That the indexes hold what they should is the business of the model
of rows.

**Invariant:** for every open transaction and for the head: if its version shows the foreign key, a child that is there
has its parent. No commit overwrites a row that was written since its snapshot.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from seachange.model.change import elements
from seachange.model.states import BEHAVIOUR, Checking
from seachange.model.states import State as SchemaState
from seachange.verify.model.explore import Label, Refusal, State, rank_events, value_at
from seachange.verify.model.program import Act, Instruction, Program
from seachange.verify.model.switches import Switch, Switches
from seachange.verify.model.words import Speaker, Trace, say_common, say_rebase, tell_steps

PARENT, CHILD = 0, 1
_FLAW = "flaw"


@dataclass(frozen=True, slots=True)
class ReferencesVersion:
    """One version. Sets of indexes are bits: those in which a parent's writer leaves its key, and those in which a
    child's leaves a share."""

    keys: int
    shares: int
    child_checks: bool
    parent_checks: bool
    promises: bool
    # Whether statements can name the referencing column.
    refers: bool
    # The tables that a write of the parent, and of the child, depends on.
    depends: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ReferenceScope:
    parent: bool = True
    child: bool = False
    nodes: int = 2


class ReferenceModel:
    def __init__(self, program: Program, scope: ReferenceScope, switches: Switches) -> None:
        self._scope, self._switches = scope, switches
        self._speaker = Speaker(program)
        self._code = program.instructions
        keys = [e for e in program.elements if isinstance(e, elements.ForeignKeyElement)]
        self.tables = (keys[0].parent_id, keys[0].table_id)
        self._views = tuple(_view(program, n, keys) for n in range(len(program.versions)))
        self._reads_r = [program.reads_snapshot(p) for p in range(len(self._code))]

    # States are (parent, child, position, version, (min_version of each table), R, transactions, head); the events of a
    # row are (sequence, whether it is there, keys or shares left).

    @property
    def initial(self) -> State:
        rows = [((0, 1, 0),) if there else () for there in (self._scope.parent, self._scope.child)]
        return self._normal(rows[PARENT], rows[CHILD], 0, 0, (0, 0), -1, (), 0)

    def successors(self, state: State) -> Iterable[tuple[Label, State]]:
        version, transactions, head = state[3], state[6], state[7]
        out: list[tuple[Label, State]] = []
        if len(transactions) < self._scope.nodes:
            out.append((("begin", version, 0), self._with(state, {6: (*transactions, (head, version))})))
        for slot, transaction in enumerate(transactions):
            if not slot or transaction != transactions[slot - 1]:
                written = (self._write(state, slot, which) for which in (PARENT, CHILD))
                out += [(label, after) for label, after in written if isinstance(after, tuple)]
        self._work(state, out)
        return out

    def problem(self, state: State) -> str | None:
        if state[0] == _FLAW:
            return str(state[1])
        parent, child = state[0], state[1]
        for snapshot, version in ((state[7], state[3]), *state[6]):
            if self._views[version].promises and value_at(child, snapshot, 0) and not value_at(parent, snapshot, 0):
                return "a child has no parent, and the foreign key is PUBLIC"
        return None

    def refusals(self, state: State) -> Iterator[tuple[Label, Refusal, State]]:
        """The writes of open transactions that are rejected, and the state afterwards."""
        for slot in range(len(state[6])):
            without = self._with(state, {6: state[6][:slot] + state[6][slot + 1 :]})
            for which in (PARENT, CHILD):
                label, after = self._write(state, slot, which)
                if isinstance(after, Refusal):
                    yield label, after, without

    def _write(self, state: State, slot: int, which: int) -> tuple[Label, State | Refusal]:
        """The outcome of writing a row: an existing one is deleted, a missing one is inserted."""
        version, lowest, transactions, head = state[3], state[4], state[6], state[7]
        snapshot, planned = transactions[slot]
        own = self._views[planned]
        used, look = planned, snapshot
        if any(planned < lowest[d] for d in own.depends[which]) and Switch.NO_FENCE not in self._switches:
            if Switch.NO_DRAIN_NO_REBASE in self._switches:
                return ("refused", slot), (_FLAW, "a live transaction was refused because of the change")
            used, look = version, head
        view = self._views[used]
        events, others = state[which], state[1 - which]
        there = value_at(events, snapshot, 0)
        label = ("write", slot, which, 1 - there, planned, used)
        if used != planned and value_at(events, look, 0) != there:
            return label, Refusal.MOVED
        if which == PARENT:
            # A rebased commit keeps the keys by which its first plan would have conflicted.
            left, conflicting = view.keys, view.keys | own.keys
            refused = there and view.parent_checks and value_at(others, look, 0)
            conflicts = _newest_left(events, snapshot) & conflicting or _newest_left(others, snapshot) & conflicting
        else:
            if not there and not (own.refers and view.refers):
                return label, Refusal.GONE
            # A rebased write looks up its parent again, and depends on nothing from before that.
            left, conflicting = (0, 0) if there else (view.shares, own.shares)
            refused = not there and view.child_checks and not value_at(others, look, 0)
            conflicts = bool(events and events[-1][0] > snapshot) or _newest_left(others, snapshot) & conflicting
        if refused or conflicts:
            return label, Refusal.REFERENCE if refused else Refusal.CONFLICT
        if events and events[-1][0] > snapshot:
            return label, (_FLAW, "a commit overwrites a row that was written since its snapshot: that write is lost")
        rest = transactions[:slot] + transactions[slot + 1 :]
        changed = (*events, (head + 1, 1 - there, left))
        return label, self._with(state, {which: changed, 6: rest, 7: head + 1})

    def _work(self, state: State, out: list[tuple[Label, State]]) -> None:
        parent, child, position, version, lowest, at, _, head = state
        instruction = self._code[position]
        label = ("job", position)
        if instruction.back is not None:
            out.append((("cancel",), self._with(state, {2: instruction.back})))
        match instruction.act:
            case Act.RAISE:
                raised = self._raised(lowest, instruction, version)
                out.append((label, self._with(state, {2: instruction.after, 4: raised, 5: head + 1, 7: head + 1})))
            case Act.SNAPSHOT:
                out.append((label, self._with(state, {2: instruction.after, 5: head})))
            case Act.PUBLISH:
                raised = self._raised(lowest, instruction, instruction.version)
                changes = {2: instruction.after, 3: instruction.version, 4: raised, 7: head + 1}
                out.append((label, self._with(state, changes)))
            case Act.VALIDATE:
                if value_at(parent, at, 0) or not value_at(child, at, 0):
                    out.append((label, self._with(state, {2: instruction.after})))
                elif instruction.back is not None:
                    out.append((("failed", position), self._with(state, {2: instruction.back})))
            case Act.BACKFILL | Act.COLLECT | Act.RESTORE:
                out.append((label, self._with(state, {2: instruction.after})))
            case Act.END:
                pass

    def _raised(self, lowest: tuple[int, int], instruction: Instruction, version: int) -> tuple[int, ...]:
        pairs = zip(self.tables, lowest, strict=True)
        return tuple(version if table in instruction.tables else old for table, old in pairs)

    def _with(self, state: State, changes: dict[int, Any]) -> State:
        parts = list(state)
        for place, value in changes.items():
            parts[place] = value
        return self._normal(*parts)

    def _normal(
        self, parent: Any, child: Any, position: int, version: int, lowest: Any, at: int, transactions: Any, head: int
    ) -> State:
        if not self._reads_r[position]:
            at = -1
        looks = {head, *(t[0] for t in transactions)}
        if at >= 0:
            looks.add(at)
        points = sorted(looks)
        return (
            rank_events(parent, points, 0),
            rank_events(child, points, 0),
            position,
            version,
            lowest,
            bisect_left(points, at) if at >= 0 else -1,
            tuple(sorted((bisect_left(points, t[0]), t[1]) for t in transactions)),
            bisect_left(points, head),
        )

    def tell(self, trace: Trace) -> list[str]:
        return tell_steps(trace, 6, self._say)

    def _say(self, label: Label, who: str) -> str:
        if label[0] != "write":
            return say_common(self._speaker, label, who)
        _, _, which, there, planned, used = label
        row = "the parent" if which == PARENT else "a child that refers to it"
        return f"{who} commits: it {'inserts' if there else 'deletes'} {row}{say_rebase(planned, used)}"


def _newest_left(events: Any, snapshot: int) -> int:
    """The keys or shares of the newest event, if it is newer than the snapshot."""
    return int(events[-1][2]) if events and events[-1][0] > snapshot else 0


def _view(program: Program, version: int, keys: list[elements.ForeignKeyElement]) -> ReferencesVersion:
    indexes = sorted({key.parent_index_id for key in keys})
    kinds = (elements.PrimaryIndex, elements.UniqueIndex)
    columns = (elements.ColumnElement, elements.ConvertedColumn)
    everything = program.elements
    written = {e.index_id for e in everything if isinstance(e, kinds) and BEHAVIOUR[program.state(version, e)].writes}
    ends = [BEHAVIOUR[program.state(version, key)] for key in keys]
    parents = [BEHAVIOUR[_parent_state(program, version, key)] for key in keys]
    referring = {c for key in keys for c in key.column_ids}
    shares = 0
    for key, end in zip(keys, ends, strict=True):
        if end.writes:
            shares |= 1 << indexes.index(key.parent_index_id)
    return ReferencesVersion(
        keys=sum(1 << n for n, index in enumerate(indexes) if index in written),
        shares=shares,
        child_checks=any(end.checks is Checking.REFUSED for end in ends),
        parent_checks=any(end.checks is Checking.REFUSED for end in parents),
        promises=any(end.reads for end in ends),
        refers=any(
            BEHAVIOUR[program.state(version, e)].reads
            for e in everything
            if isinstance(e, columns) and e.table_id == keys[0].table_id and e.column_id in referring
        ),
        depends=(
            (PARENT, CHILD) if any(end.writes for end in parents) else (PARENT,),
            (PARENT, CHILD) if any(end.writes for end in ends) else (CHILD,),
        ),
    )


def _parent_state(program: Program, version: int, key: elements.ForeignKeyElement) -> SchemaState:
    """A descriptor does not list the foreign keys that reference its table: writers derive them from the other end,
    except while a change concerns both."""
    end = elements.ForeignKeyParent(key.parent_id, key.table_id, key.constraint_id)
    told = any(end in states for states in program.versions)
    return program.state(version, end if told else key)
