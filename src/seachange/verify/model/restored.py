"""The model of a dropped column that comes back: one row, written with and without the column, rewrites of its layout,
and a job that restores the value that the row had.

The row had a value when the column was dropped. What is stored of it since is that value (no one has written the row),
or nothing; and once writers know the column, what they have found or set. Beside it is what the column must read as.

**Invariant:** for every open transaction and for the head: if its version shows the column, it reads as it must; and it
has a value, if the version says that it always has one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from seachange.model.change import elements
from seachange.model.change.ops import RestoreColumns, Validate
from seachange.model.ids import ColumnId, TableId
from seachange.model.states import BEHAVIOUR, Checking
from seachange.verify.model.explore import Label, Refusal, State
from seachange.verify.model.layouts import MISSING, NULL, SET
from seachange.verify.model.program import Act, Instruction, Program
from seachange.verify.model.switches import Switch, Switches
from seachange.verify.model.words import Speaker, Trace, say_rewrite, tell_steps

KEPT = "'kept'"
# A row that came after the column was dropped may be taken for the one that there was under its key, or for a new one.
EITHER = "either"


@dataclass(frozen=True, slots=True)
class RestoreScope:
    nodes: int = 2


class _View(NamedTuple):
    """What a version lets a writer do with the column."""

    knows: bool
    reads: bool
    refuses_null: bool
    required: bool


class _Row(NamedTuple):
    """The newest version of the row, and the sequence of its commit."""

    seq: int
    there: bool
    stored: str
    meant: str


class _Now(NamedTuple):
    """`open` are the snapshots and the versions of transactions, with the row that they have seen; `rewrite` is the
    sequence and the version of one under way, or empty."""

    row: _Row
    position: int
    version: int
    lowest: int
    open: tuple[tuple[int, int, _Row], ...]
    rewrite: tuple[int, ...]
    head: int


class RestoreModel:
    def __init__(
        self, program: Program, column: str | tuple[TableId, ColumnId], scope: RestoreScope, switches: Switches
    ) -> None:
        self._scope, self._switches = scope, switches
        self._speaker = Speaker(program)
        self._code = program.instructions
        restored = [e for e in program.elements if isinstance(e, elements.RestoredColumn)]
        if isinstance(column, str):
            names = [e for e in program.elements if isinstance(e, elements.ColumnName) and e.name == column]
            column = names[0].table_id, names[0].column_id
        self.column = next(e for e in restored if e.column_place == column)
        self._not_null = elements.ColumnNotNull(*self.column.column_place)
        self._views = tuple(self._view(program, number) for number in range(len(program.versions)))

    def _view(self, program: Program, version: int) -> _View:
        column = BEHAVIOUR[program.state(version, self.column)]
        rule = BEHAVIOUR[program.state(version, self._not_null)]
        return _View(column.writes, column.reads, rule.checks is Checking.REFUSED, rule.reads)

    @property
    def initial(self) -> State:
        return _normal(_Now(_Row(0, True, KEPT, KEPT), 0, 0, 0, (), (), 0))

    def successors(self, state: State) -> Iterable[tuple[Label, State]]:
        now, out = _Now(*state), list[tuple[Label, State]]()
        if len(now.open) < self._scope.nodes:
            begun = (*now.open, (now.head, now.version, now.row))
            out.append((("begin", now.version, 0), _normal(now._replace(open=begun))))
        for slot, transaction in enumerate(now.open):
            if not slot or transaction != now.open[slot - 1]:
                out += self._writes(now, slot)
        self._work(now, out)
        self._rewrite(now, out)
        return out

    def problem(self, state: State) -> str | None:
        now = _Now(*state)
        for version, row in ((now.version, now.row), *((planned, row) for _, planned, row in now.open)):
            view = self._views[version]
            if view.reads and row.there:
                read = _value(row.stored)
                if row.meant != EITHER and read != row.meant:
                    return f"the column reads as {read}, and must read as {row.meant}"
                if view.required and read == NULL:
                    return "a row has no value for a column that must have one"
        return None

    def refusals(self, state: State) -> Iterator[tuple[Label, Refusal, State]]:
        """Writes of a row that was written since, and the state when they have been rejected."""
        now = _Now(*state)
        for slot, (snapshot, planned, row) in enumerate(now.open):
            if now.row.seq > snapshot:
                used = now.version if planned < now.lowest else planned
                rest = now.open[:slot] + now.open[slot + 1 :]
                for what, _ in self._versions(self._views[planned], row, NULL):
                    yield ("write", slot, what, planned, used), Refusal.CONFLICT, _normal(now._replace(open=rest))

    def _writes(self, now: _Now, slot: int) -> Iterator[tuple[Label, State]]:
        snapshot, planned, row = now.open[slot]
        if now.row.seq > snapshot:
            # It conflicts by key.
            return
        used = now.version if planned < now.lowest else planned
        view, rest = self._views[used], now.open[:slot] + now.open[slot + 1 :]
        # A row that was planned without the column has the value that the row has by now.
        forgets = Switch.REBASE_FORGETS_VALUES in self._switches and not self._views[planned].knows
        found = NULL if forgets else _value(now.row.stored)
        for what, after in self._versions(view, row, found):
            if view.refuses_null and after.there and after.stored == NULL:
                continue
            written = after._replace(seq=now.head + 1)
            label = ("write", slot, what, planned, used)
            yield label, _normal(now._replace(row=written, open=rest, head=now.head + 1))

    def _versions(self, view: _View, row: _Row, found: str) -> Iterator[tuple[str, _Row]]:
        if not row.there:
            if view.reads:
                yield f"inserts the row with {SET} in the column", _Row(0, True, SET, SET)
            else:
                yield "inserts the row", _Row(0, True, NULL if view.knows else MISSING, EITHER)
            return
        yield "deletes the row", _Row(0, False, MISSING, NULL)
        yield "updates another column of the row", row._replace(stored=found if view.knows else MISSING)
        if view.reads:
            yield f"sets the column to {SET}", _Row(0, True, SET, SET)

    def _work(self, now: _Now, out: list[tuple[Label, State]]) -> None:
        instruction = self._code[now.position]
        label, after = ("job", now.position), now._replace(position=instruction.after)
        if instruction.back is not None:
            out.append((("cancel",), _normal(now._replace(position=instruction.back))))
        match instruction.act:
            case Act.RAISE:
                out.append((label, _normal(after._replace(lowest=now.version, head=now.head + 1))))
            case Act.PUBLISH:
                out.append((label, _normal(after._replace(version=instruction.version, head=now.head + 1))))
            case Act.RESTORE if self._is_restored_by(instruction):
                # The lock on compaction is waited for.
                if not now.rewrite or Switch.RESTORE_BESIDE_REWRITE in self._switches:
                    out.append((label, _normal(self._restore(after))))
            case Act.VALIDATE if any(isinstance(o, Validate) and o.element == self._not_null for o in instruction.ops):
                if now.row.there and _value(now.row.stored) == NULL:
                    assert instruction.back is not None
                    out.append((("failed", now.position), _normal(now._replace(position=instruction.back))))
                else:
                    out.append((label, _normal(after)))
            case Act.VALIDATE | Act.BACKFILL | Act.RESTORE:
                # Of another element, and so it may go either way.
                out.append((label, _normal(after)))
                if instruction.back is not None:
                    out.append((("failed", now.position), _normal(now._replace(position=instruction.back))))
            case Act.SNAPSHOT | Act.COLLECT:
                out.append((label, _normal(after)))
            case Act.END:
                pass

    def _is_restored_by(self, instruction: Instruction) -> bool:
        ops = (op for op in instruction.ops if isinstance(op, RestoreColumns))
        return any(op.table_id == self.column.table_id and self.column.column_id in op.column_ids for op in ops)

    def _restore(self, now: _Now) -> _Now:
        """A row without a value gets the one that it had, if rows can have one."""
        if not self._views[now.version].knows or not now.row.there or _value(now.row.stored) != NULL:
            return now
        meant = KEPT if now.row.meant == EITHER else now.row.meant
        return now._replace(row=_Row(now.head + 1, True, KEPT, meant), head=now.head + 1)

    def _rewrite(self, now: _Now, out: list[tuple[Label, State]]) -> None:
        """It plans with the version at the sequence that it compacts up to, and leaves out the columns that this does
        not know."""
        if not now.rewrite:
            out.append((("fold", now.version), _normal(now._replace(rewrite=(now.head, now.version)))))
            return
        folded, planned = now.rewrite
        row = now.row
        if row.seq <= folded and row.there and not self._views[planned].knows:
            row = row._replace(stored=MISSING)
        # What open transactions have seen they read in the same files.
        seen = tuple((snapshot, own, row if read.seq == now.row.seq else read) for snapshot, own, read in now.open)
        out.append((("swap", 0), _normal(now._replace(row=row, open=seen, rewrite=()))))

    def tell(self, trace: Trace) -> list[str]:
        return tell_steps(trace, 4, partial(say_rewrite, self._speaker))


def _value(stored: str) -> str:
    return NULL if stored == MISSING else stored


def _normal(now: _Now) -> State:
    """With sequences replaced by their ranks among those that matter."""
    looks = {now.head, *(snapshot for snapshot, _, _ in now.open), *now.rewrite[:1]}
    points = sorted(looks)

    def rank(sequence: int) -> int:
        return bisect_left(points, sequence)

    opened = tuple(sorted((rank(seq), planned, row._replace(seq=rank(row.seq))) for seq, planned, row in now.open))
    rewrite = (rank(now.rewrite[0]), now.rewrite[1]) if now.rewrite else ()
    row = now.row._replace(seq=rank(now.row.seq))
    return tuple(now._replace(row=row, open=opened, rewrite=rewrite, head=rank(now.head)))
