"""Effects of a job's instructions on the rows and indexes of one table."""

from __future__ import annotations

from typing import Any

from seachange.model.change.ops import BackfillIndexes, CollectIndexes, Validate
from seachange.verify.model.entries import NONE, Entries, Generation
from seachange.verify.model.explore import Label, State, value_at
from seachange.verify.model.program import Act, Instruction
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
from seachange.verify.model.side_by_side import Versions
from seachange.verify.model.switches import Switch, Switches


class RowJob:
    def __init__(
        self,
        shape: ModelShape,
        scope: Scope,
        entries: Entries,
        canon: Canon,
        versions: Versions,
        switches: Switches,
    ) -> None:
        self._shape, self._scope, self._entries, self._canon, self._versions = shape, scope, entries, canon, versions
        self._shares_r = Switch.SHARED_SNAPSHOT in switches
        self._looks_in_new = Switch.KEYLESS_ENTRIES in switches
        self._table, self._kinds, self._views = shape.table_id, shape.kinds, shape.views * 2
        self._keys = len(scope.rows)
        self._bad = scope.bad_value

    def step(self, state: State, instruction: Instruction, position: int, out: list[tuple[Label, State]]) -> None:
        head = state[HEAD]
        label = ("job", position)
        after = self.moved(state, instruction, instruction.after)
        match instruction.act:
            case Act.RAISE:
                changes: dict[int, Any] = {POSITION: after, HEAD: head + 1}
                if self._table in instruction.tables:
                    changes |= {LOWEST: state[VERSION], AT: self._read_at(state, instruction, head + 1)}
                out.append((label, self._canon.changed(state, changes)))
            case Act.SNAPSHOT:
                out.append(
                    (label, self._canon.changed(state, {POSITION: after, AT: self._read_at(state, instruction, head)}))
                )
            case Act.PUBLISH:
                self._publish(state, instruction, label, out)
            case Act.BACKFILL:
                generations = self._backfill(state, instruction)
                if generations is not None:
                    out.append((label, self._canon.changed(state, {GENERATIONS: generations, POSITION: after})))
                elif instruction.back is not None:
                    back = self.moved(state, instruction, instruction.back)
                    out.append((("failed", position), self._canon.changed(state, {POSITION: back})))
            case Act.VALIDATE:
                if self._is_valid(state, instruction):
                    out.append((label, self._canon.changed(state, {POSITION: after})))
                elif instruction.back is not None:
                    back = self.moved(state, instruction, instruction.back)
                    out.append((("failed", position), self._canon.changed(state, {POSITION: back})))
            case Act.RESTORE:
                # Values of a column that no entry of these indexes has before it is built.
                out.append((label, self._canon.changed(state, {POSITION: after})))
            case Act.COLLECT:
                self._collect(state, instruction, label, out)
            case Act.END:
                pass

    def moved(self, state: State, instruction: Instruction, position: int) -> tuple[int, ...]:
        """The positions of all jobs when the instruction's own has got there."""
        return _replaced(state[POSITION], instruction.job, position)

    def _read_at(self, state: State, instruction: Instruction, sequence: int) -> tuple[int, ...]:
        if self._shares_r:
            sequence = min((r for r in state[AT] if r != NONE), default=sequence)
        return _replaced(state[AT], instruction.job, sequence)

    def _publish(self, state: State, instruction: Instruction, label: Label, out: list[tuple[Label, State]]) -> None:
        rows, generations, version, recorded, head = (
            state[ROW],
            state[GENERATIONS],
            state[VERSION],
            state[RECORDED],
            state[HEAD],
        )
        following = self._versions.published(version, instruction)
        view = self._views[following]
        if instruction.empty and any(value_at(events, head, NONE) != NONE for events in rows):
            return
        if recorded and view.promises and self._views[version].records:
            # The row without a value may have been deleted again.
            stays = self._has_bad_row(state, following)
            changes: dict[int, Any] = {RECORDED: 0}
            if stays:
                assert instruction.back is not None
                changes[POSITION] = self.moved(state, instruction, instruction.back)
            label = ("recorded" if stays else "looked again", label[1])
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
            POSITION: self.moved(state, instruction, instruction.after),
            VERSION: following,
            HEAD: sequence,
        }
        if self._table in instruction.tables:
            changes[LOWEST] = following
        if any(self._kinds[n] <= IndexKind.PRIMARY_BY_VALUE for n in begun):
            gone = (sequence, NONE)
            changes[ROW] = tuple((*e, gone) if value_at(e, head, NONE) != NONE else e for e in rows)
        if not view.records:
            changes[RECORDED] = 0
        out.append((label, self._canon.changed(state, changes)))

    def _has_bad_row(self, state: State, following: int) -> bool:
        """As of the head, by the current index: the one under construction may have lost the row."""
        seen = self._views[following if self._looks_in_new else state[VERSION]].primary
        now = self._entries.rows_of(seen, state[ROW], state[CELLS], state[GENERATIONS], state[HEAD])
        return self._bad in now

    def _backfill(self, state: State, instruction: Instruction) -> tuple[tuple[Generation, ...], ...] | None:
        cells, generations, version, at = (
            state[CELLS],
            list(state[GENERATIONS]),
            state[VERSION],
            state[AT][instruction.job],
        )
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
        cells, generations, version, at = state[CELLS], state[GENERATIONS], state[VERSION], state[AT][instruction.job]
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
            POSITION: self.moved(state, instruction, instruction.after),
        }
        if state[FOLDING] and state[FOLDING][0] in gone:
            changes[FOLDING] = ()
        out.append((label, self._canon.changed(state, changes)))


def _replaced(values: tuple[int, ...], number: int, value: int) -> tuple[int, ...]:
    return (*values[:number], value, *values[number + 1 :])


# Compaction of an index concurrently with its change, and garbage collection of what it supersedes.
# It reads the index at the head, and later swaps in what it has read if the newest generation is still the one that it
# saw. The superseded generation stays for those who began before the swap; once there are none it is dropped with the
# canonical form of a state.


class Compaction:
    def __init__(self, shape: ModelShape, entries: Entries, canon: Canon, switches: Switches) -> None:
        self._kinds, self._views = shape.kinds, shape.views * 2
        self._entries, self._canon, self._switches = entries, canon, switches

    def step(self, state: State, out: list[tuple[Label, State]]) -> None:
        cells, generations, version, compaction, head = (
            state[CELLS],
            state[GENERATIONS],
            state[VERSION],
            state[FOLDING],
            state[HEAD],
        )
        if not compaction:
            for number in self._views[version].writes:
                held = generations[number]
                if self._kinds[number] <= IndexKind.PRIMARY_BY_VALUE:
                    continue
                if (held or Switch.COMPACT_WITHOUT_BASE in self._switches) and any(cells[number]):
                    base = held[-1][0] if held else NONE
                    if base < head:
                        out.append((("fold", number), self._canon.changed(state, {FOLDING: (number, head, base)})))
        else:
            number, folded, base = compaction
            held = generations[number]
            if (held[-1][0] if held else NONE) == base:
                content = self._entries.read(cells[number], held, folded, by_base=True)
                swapped = (*held, (folded, head + 1, content))
                changes: dict[int, Any] = {
                    GENERATIONS: (*generations[:number], swapped, *generations[number + 1 :]),
                    FOLDING: (),
                    HEAD: head + 1,
                }
                out.append((("swap", number), self._canon.changed(state, changes)))
            else:
                out.append((("not swapped", number), self._canon.changed(state, {FOLDING: ()})))
        if Switch.GC_BY_FOLD in self._switches:
            for number, held in enumerate(generations):
                if len(held) > 1 and all(t[0] >= held[-1][0] for t in state[OPEN]):
                    kept = (*generations[:number], held[-1:], *generations[number + 1 :])
                    out.append((("forget", number), self._canon.changed(state, {GENERATIONS: kept})))
