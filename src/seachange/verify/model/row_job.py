"""Effects of a job's instructions on the rows and indexes of one table."""

from __future__ import annotations

from typing import Any

from seachange.model.change.ops import BackfillIndexes, CollectIndexes, Validate
from seachange.verify.model.entries import NONE, Entries, Generation
from seachange.verify.model.explore import Label, State
from seachange.verify.model.program import Act, Instruction
from seachange.verify.model.ranks import value_at
from seachange.verify.model.row_state import (
    AT,
    CELLS,
    FOLDING,
    GENERATIONS,
    HEAD,
    LIVE,
    LOWEST,
    OPEN,
    POSITION,
    RECORDED,
    ROW,
    VERSION,
    Canon,
    Scope,
)
from seachange.verify.model.shape import ROWS, IndexKind, ModelShape
from seachange.verify.model.switches import Switch, Switches


class RowJob:
    def __init__(self, shape: ModelShape, scope: Scope, entries: Entries, canon: Canon, switches: Switches) -> None:
        self._shape, self._scope, self._entries, self._canon = shape, scope, entries, canon
        self._looks_in_new = Switch.KEYLESS_ENTRIES in switches
        self._table, self._kinds, self._views = shape.table_id, shape.kinds, shape.views * 2
        self._keys = len(scope.rows)
        self._bad = scope.bad_value

    def step(self, state: State, instruction: Instruction, position: int, out: list[tuple[Label, State]]) -> None:
        head = state[HEAD]
        label = ("job", position)
        match instruction.act:
            case Act.RAISE:
                changes: dict[int, Any] = {POSITION: instruction.after, HEAD: head + 1}
                if self._table in instruction.tables:
                    changes |= {LOWEST: state[VERSION], AT: head + 1}
                out.append((label, self._canon.changed(state, changes)))
            case Act.SNAPSHOT:
                out.append((label, self._canon.changed(state, {POSITION: instruction.after, AT: head})))
            case Act.PUBLISH:
                self._publish(state, instruction, label, out)
            case Act.BACKFILL:
                generations = self._backfill(state, instruction)
                if generations is not None:
                    out.append(
                        (label, self._canon.changed(state, {GENERATIONS: generations, POSITION: instruction.after}))
                    )
                elif instruction.back is not None:
                    out.append((("failed", position), self._canon.changed(state, {POSITION: instruction.back})))
            case Act.VALIDATE:
                if self._is_valid(state, instruction):
                    out.append((label, self._canon.changed(state, {POSITION: instruction.after})))
                elif instruction.back is not None:
                    out.append((("failed", position), self._canon.changed(state, {POSITION: instruction.back})))
            case Act.COLLECT:
                self._collect(state, instruction, label, out)
            case Act.END:
                pass

    def _publish(self, state: State, instruction: Instruction, label: Label, out: list[tuple[Label, State]]) -> None:
        rows, generations, version, recorded, head = (
            state[ROW],
            state[GENERATIONS],
            state[VERSION],
            state[RECORDED],
            state[HEAD],
        )
        view = self._views[instruction.version]
        if instruction.empty and any(value_at(events, head, NONE) != NONE for events in rows):
            return
        if recorded and view.promises and self._views[version].records:
            # The row without a value may have been deleted again.
            stays = self._has_bad_row(state, instruction)
            changes: dict[int, Any] = {POSITION: instruction.back, RECORDED: 0} if stays else {RECORDED: 0}
            label = ("recorded" if stays else "looked again", state[POSITION])
            out.append((label, self._canon.changed(state, changes)))
            return
        sequence = head + 1
        begun = [n for i in instruction.begun if (n := self._shape.number(i)) is not None]
        nothing = (NONE,) * self._keys
        generations = tuple(
            ((sequence, sequence, self._entries.content(n, nothing)),) if n in begun else g
            for n, g in enumerate(generations)
        )
        changes = {
            GENERATIONS: generations,
            POSITION: instruction.after,
            VERSION: instruction.version,
            HEAD: sequence,
        }
        if self._table in instruction.tables:
            changes[LOWEST] = instruction.version
        if any(self._kinds[n] <= IndexKind.PRIMARY_BY_VALUE for n in begun):
            gone = (sequence, NONE)
            changes[ROW] = tuple((*e, gone) if value_at(e, head, NONE) != NONE else e for e in rows)
        if not view.records:
            changes[RECORDED] = 0
        out.append((label, self._canon.changed(state, changes)))

    def _has_bad_row(self, state: State, instruction: Instruction) -> bool:
        """As of the head, by the current index: the one under construction may have lost the row."""
        seen = self._views[instruction.version if self._looks_in_new else state[VERSION]].primary
        now = self._entries.rows_of(seen, state[ROW], state[CELLS], state[GENERATIONS], state[HEAD])
        return self._bad in now

    def _backfill(self, state: State, instruction: Instruction) -> tuple[tuple[Generation, ...], ...] | None:
        cells, generations, version, at = state[CELLS], list(state[GENERATIONS]), state[VERSION], state[AT]
        for op in instruction.ops:
            assert isinstance(op, BackfillIndexes)
            if op.table_id != self._table:
                continue
            source = self._shape.number(op.source_id)
            if source is None:
                source = ROWS
            if source == ROWS:
                now = self._entries.rows_of(ROWS, state[ROW], cells, generations, at)
            else:
                now = self._entries.as_rows(
                    source, self._entries.read(cells[source], generations[source], at, by_base=True)
                )
            if self._bad in now and self._bad != NONE and self._views[version].records:
                return None
            for index_id in op.index_ids:
                if (number := self._shape.number(index_id)) is not None:
                    generations[number] = tuple(
                        sorted((*generations[number], (at, at, self._entries.content(number, now))))
                    )
        return tuple(generations)

    def _is_valid(self, state: State, instruction: Instruction) -> bool:
        cells, generations, version, at = state[CELLS], state[GENERATIONS], state[VERSION], state[AT]
        for op in instruction.ops:
            assert isinstance(op, Validate)
            if op.element in self._shape.rules:
                now = self._entries.rows_of(self._views[version].primary, state[ROW], cells, generations, at)
                if self._bad != NONE and self._bad in now:
                    return False
            elif op.element in self._shape.indexes:
                number = self._shape.indexes.index(op.element)
                found = self._entries.read(cells[number], generations[number], at, by_base=True)
                for value in range(self._scope.values):
                    if sum(found[value * self._keys + key] != NONE for key in range(self._keys)) > 1:
                        return False
        return True

    def _collect(self, state: State, instruction: Instruction, label: Label, out: list[tuple[Label, State]]) -> None:
        gone = {
            n
            for op in instruction.ops
            if isinstance(op, CollectIndexes)
            for i in op.index_ids
            if (n := self._shape.number(i)) is not None
        }
        for _, planned, flag in state[OPEN]:
            if flag == LIVE and gone & set(self._views[planned].reads):
                return
        changes: dict[int, Any] = {
            CELLS: tuple(((),) * self._entries.size(n) if n in gone else c for n, c in enumerate(state[CELLS])),
            GENERATIONS: tuple(() if n in gone else g for n, g in enumerate(state[GENERATIONS])),
            POSITION: instruction.after,
        }
        if state[FOLDING] and state[FOLDING][0] in gone:
            changes[FOLDING] = ()
        out.append((label, self._canon.changed(state, changes)))
