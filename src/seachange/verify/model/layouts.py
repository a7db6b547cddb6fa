"""The model of one column: rows in layouts with and without it, rewrites, and a job that adds, changes or drops it.

One row. Each of its versions is stored with the column or without, and carries beside it what the column must read as:
what was set, or the value frozen when the column was added.

**Invariant:** for every open transaction and for the head: if its version shows the column, it reads as it must; and it
has a value, if the version says that it always has one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from seachange.model.change import elements
from seachange.model.ids import ColumnId, TableId
from seachange.model.states import BEHAVIOUR
from seachange.verify.model.explore import Label, Refusal, State, rank_events
from seachange.verify.model.program import Act, Program
from seachange.verify.model.switches import Switch, Switches
from seachange.verify.model.words import Speaker, Trace, say_rewrite, tell_steps

NULL, SET, MISSING = "NULL", "'set'", "missing"


@dataclass(frozen=True, slots=True)
class LayoutVersion:
    knows: bool
    reads: bool
    default: str
    required: bool


@dataclass(frozen=True, slots=True)
class LayoutScope:
    nodes: int = 2
    rewrites: bool = True


class LayoutModel:
    def __init__(
        self, program: Program, column: str | tuple[TableId, ColumnId], scope: LayoutScope, switches: Switches
    ) -> None:
        self._scope, self._switches = scope, switches
        self._speaker = Speaker(program)
        self._code = program.instructions
        if isinstance(column, str):
            names = [e for e in program.elements if isinstance(e, elements.ColumnName) and e.name == column]
            column = names[0].table_id, names[0].column_id
        self.column = next(
            e for e in program.elements if isinstance(e, elements.ColumnElement) and e.column_place == column
        )
        self._frozen = self.column.frozen or NULL
        self._views = tuple(_view(program, n, self.column) for n in range(len(program.versions)))
        table = elements.TableElement(self.column.table_id)
        self._is_there = tuple(table in version for version in program.versions)
        self._returns = self.column.table_id in program.returning
        self._forth = max(instruction.version for _, instruction in program.path(0))

    # States are (row, position, version, min_version, transactions, rewrite, head); the events of the row are
    # (sequence, whether it is there, what is stored, what the column must read as).

    @property
    def initial(self) -> State:
        if self._is_there[0]:
            first = (0, 1, SET, SET) if self._views[0].knows else (0, 1, MISSING, self._frozen)
        elif self._returns:
            first = (0, 1, MISSING if Switch.FORGOTTEN_LAYOUTS in self._switches else SET, SET)
        else:
            first = (0, 0, MISSING, NULL)
        return self._normal((first,), 0, 0, 0, (), (), 0)

    def successors(self, state: State) -> Iterable[tuple[Label, State]]:
        version, lowest, transactions, head = state[2], state[3], state[4], state[6]
        out: list[tuple[Label, State]] = []
        if len(transactions) < self._scope.nodes and self._is_there[version]:
            stale = Switch.CACHED_SCHEMA in self._switches and version <= self._forth
            for planned in range(lowest, version + 1) if stale else (version,):
                begun = (*transactions, (head, planned))
                out.append((("begin", planned, 0), self._with(state, {4: begun})))
        for slot, transaction in enumerate(transactions):
            if not slot or transaction != transactions[slot - 1]:
                self._write(state, slot, out)
        self._work(state, out)
        if self._scope.rewrites and self._is_there[version]:
            self._rewrite(state, out)
        return out

    def problem(self, state: State) -> str | None:
        for snapshot, version in ((state[6], state[2]), *state[4]):
            view = self._views[version]
            _, there, stored, meant = seen_at(state[0], snapshot)
            if view.reads and there:
                read = self._value(stored)
                if read != meant:
                    return f"the column reads as {read}, and must read as {meant}"
                if view.required and read == NULL:
                    return "a row has no value for a column that must have one"
        return None

    def _value(self, stored: str) -> str:
        return self._frozen if stored == MISSING else stored

    def refusals(self, state: State) -> Iterator[tuple[Label, Refusal, State]]:
        """The writes that open transactions may try in vain, and the state when they have."""
        row, version, lowest, transactions = state[0], state[2], state[3], state[4]
        for slot, (snapshot, planned) in enumerate(transactions):
            if row[-1][0] > snapshot:
                used = version if planned < lowest else planned
                without = self._with(state, {4: transactions[:slot] + transactions[slot + 1 :]})
                for what, _ in self._versions(self._views[planned], *seen_at(row, snapshot)[1:]):
                    yield ("write", slot, what, planned, used), Refusal.CONFLICT, without

    def _write(self, state: State, slot: int, out: list[tuple[Label, State]]) -> None:
        row, version, lowest, transactions, head = state[0], state[2], state[3], state[4], state[6]
        snapshot, planned = transactions[slot]
        if row[-1][0] > snapshot:
            # It conflicts by key.
            return
        used = version if planned < lowest else planned
        view = self._views[used]
        rest = transactions[:slot] + transactions[slot + 1 :]
        _, there, stored, meant = seen_at(row, snapshot)
        for what, event in self._versions(view, there, stored, meant):
            changes = {0: (*row, (head + 1, *event)), 4: rest, 6: head + 1}
            out.append((("write", slot, what, planned, used), self._with(state, changes)))

    def _versions(
        self, view: LayoutVersion, there: int, stored: str, meant: str
    ) -> Iterable[tuple[str, tuple[int, str, str]]]:
        """The changes that a writer can make to the row: their description, and the stored result."""
        if there:
            yield "deletes the row", (0, MISSING, NULL)
            if view.knows:
                yield "updates another column of the row", (1, self._value(stored), meant)
            else:
                yield "updates another column of the row", (1, MISSING, meant)
            if view.reads:
                yield f"sets the column to {SET}", (1, SET, SET)
        elif not view.knows:
            yield "inserts the row", (1, MISSING, self._frozen)
        elif view.required and view.default == NULL:
            yield f"inserts the row with {SET} in the column", (1, SET, SET)
        else:
            yield "inserts the row with the column's default", (1, view.default, view.default)

    def _work(self, state: State, out: list[tuple[Label, State]]) -> None:
        position, version, head = state[1], state[2], state[6]
        instruction = self._code[position]
        done = ("job", position), {1: instruction.after}
        if instruction.back is not None:
            out.append((("cancel",), self._with(state, {1: instruction.back})))
        match instruction.act:
            case Act.RAISE:
                out.append((done[0], self._with(state, {**done[1], 3: version, 6: head + 1})))
            case Act.PUBLISH:
                out.append((done[0], self._with(state, {**done[1], 2: instruction.version, 6: head + 1})))
            case Act.VALIDATE | Act.BACKFILL:
                # Of another element, and so it may go either way.
                out.append((done[0], self._with(state, done[1])))
                if instruction.back is not None:
                    out.append((("failed", position), self._with(state, {1: instruction.back})))
            case Act.SNAPSHOT | Act.COLLECT | Act.RESTORE:
                out.append((done[0], self._with(state, done[1])))
            case Act.END:
                pass

    def _rewrite(self, state: State, out: list[tuple[Label, State]]) -> None:
        """It plans with the version at the sequence that it compacts up to, and rewrites the row in its layout."""
        row, version, rewrite, head = state[0], state[2], state[5], state[6]
        if not rewrite:
            out.append((("fold", version), self._with(state, {5: (head, version)})))
            return
        folded, planned = rewrite
        place = max(n for n, event in enumerate(row) if event[0] <= folded)
        sequence, there, stored, meant = row[place]
        if there and stored == MISSING and self._views[planned].knows:
            stored = NULL if Switch.NULL_FILL in self._switches else self._frozen
        changed = (*row[:place], (sequence, there, stored, meant), *row[place + 1 :])
        out.append((("swap", 0), self._with(state, {0: changed, 5: ()})))

    def _with(self, state: State, changes: dict[int, Any]) -> State:
        parts = list(state)
        for place, value in changes.items():
            parts[place] = value
        return self._normal(*parts)

    def _normal(
        self, row: Any, position: int, version: int, lowest: int, transactions: Any, rewrite: Any, head: int
    ) -> State:
        looks = {head, *(t[0] for t in transactions)}
        if rewrite:
            looks.add(rewrite[0])
        points = sorted(looks)
        return (
            rank_events(row, points, 0),
            position,
            version,
            lowest,
            tuple(sorted((bisect_left(points, t[0]), t[1]) for t in transactions)),
            (bisect_left(points, rewrite[0]), rewrite[1]) if rewrite else (),
            bisect_left(points, head),
        )

    def tell(self, trace: Trace) -> list[str]:
        return tell_steps(trace, 4, partial(say_rewrite, self._speaker))


def seen_at(row: Any, snapshot: int) -> tuple[int, int, str, str]:
    found: tuple[int, int, str, str] = row[0]
    for event in row:
        if event[0] > snapshot:
            break
        found = event
    return found


def _view(program: Program, version: int, column: elements.ColumnElement) -> LayoutVersion:
    behaviour = BEHAVIOUR[program.state(version, column)]
    default = next(
        (
            e.expression
            for e in program.versions[version]
            if isinstance(e, elements.ColumnDefault)
            and (e.table_id, e.column_id) == (column.table_id, column.column_id)
        ),
        NULL,
    )
    required = BEHAVIOUR[program.state(version, elements.ColumnNotNull(column.table_id, column.column_id))]
    return LayoutVersion(behaviour.writes, behaviour.reads, default, required.reads)
