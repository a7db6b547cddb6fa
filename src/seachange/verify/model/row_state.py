"""The states of the model of rows, and their canonical form.

**Invariant:** two states have one canonical form only if no step can ever distinguish them: what is dropped is read by
no transaction, no step of the job and no compaction.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from seachange.model.change.ops import BackfillIndexes
from seachange.model.ids import IndexId
from seachange.verify.model.entries import NONE, Generation
from seachange.verify.model.explore import Events, State, rank_events
from seachange.verify.model.program import Act, Program
from seachange.verify.model.shape import IndexKind, ModelShape, RowsVersion
from seachange.verify.model.switches import Switch, Switches

# The places of a state. Cells are the deltas of each entry of each index: (sequence, stored or NONE, whether its key
# was left); position and R are those of each job; open transactions are (snapshot, version planned with, one of the
# flags below); a compaction under way is (index, sequence up to which it folds, base that it has seen).
ROW, CELLS, GENERATIONS, POSITION, VERSION, LOWEST, AT, RECORDED, OPEN, FOLDING, HEAD, ZOMBIE = range(12)
LIVE, EXPIRED, UNREGISTERED = range(3)

_CLEANING = frozenset({Act.RAISE, Act.COLLECT, Act.END})

# Replaces stored content where only the key counts.
UNREAD = -2
_EXACT = frozenset({Switch.NO_LOWER_BOUND, Switch.COMPACT_WITHOUT_BASE, Switch.BLIND_INGEST})


@dataclass(frozen=True, slots=True)
class Scope:
    """`rows` are the values at the start, by key; values are 0, 1, ...; `bad`: the last one breaks the rules. `pauses`:
    nodes are stopped past the end of their epoch; `workers`: a worker of the job is stopped and resumes."""

    rows: tuple[int, ...] = (0,)
    values: int = 2
    bad: bool = False
    nodes: int = 2
    compaction: bool = False
    pauses: bool = False
    workers: bool = False

    @property
    def bad_value(self) -> int:
        return self.values - 1 if self.bad else NONE


class Canon:
    def __init__(self, program: Program, shape: ModelShape, keeps_dead: bool, switches: Switches) -> None:
        self._kinds, self._views = shape.kinds, shape.views * 2
        self._keeps_dead = keeps_dead
        # Without these safeguards, deltas below a base are still read.
        self._is_exact = bool(switches & _EXACT)
        self._reads_r = [program.reads_snapshot(p) for p in range(len(program.instructions))]
        # By number of index: the job that builds it, if one does.
        self._jobs = [_builder_of(program, index.index_id) for index in shape.indexes]
        self._collected = [tuple(n for i in ids if (n := shape.number(i)) is not None) for ids in program.collected()]
        self._over = _is_over(program, shape.views)

    def changed(self, state: State, changes: dict[int, Any]) -> State:
        parts = list(state)
        for place, value in changes.items():
            parts[place] = value
        return self.normal(*parts)

    def normal(
        self,
        rows: tuple[Events, ...],
        cells: tuple[tuple[Events, ...], ...],
        generations: tuple[tuple[Generation, ...], ...],
        positions: tuple[int, ...],
        version: int,
        lowest: int,
        at: tuple[int, ...],
        recorded: int,
        transactions: tuple[tuple[int, int, int], ...],
        compaction: tuple[int, ...],
        head: int,
        zombie: int,
    ) -> State:
        at = tuple(r if self._reads_r[p] else NONE for p, r in zip(positions, at, strict=True))
        looks = {head, *(t[0] for t in transactions)}
        pipeline = {sequence for sequence in (*at, compaction[1] if compaction else NONE) if sequence != NONE}
        if any(len(held) > 1 for held in generations):
            generations = tuple(_needed(held, looks, pipeline) for held in generations)
        points = sorted(looks | pipeline | {q for held in generations for g in held for q in g[:2]})
        lowest_rank = bisect_left(points, min(looks | pipeline))
        dead = self._dead(positions, version, transactions)
        # Where an index has no generation, what its backfill does not read is below its future base.
        bases = [
            held[0][0] if held else at[job] if at[job] != NONE else head
            for held, job in zip(generations, self._jobs, strict=True)
        ]
        return (
            tuple(_ranked_row(events, points, lowest_rank) for events in rows),
            self._ranked_cells(cells, points, bases, min(looks), positions, dead),
            tuple(() if n in dead else _ranked_generations(held, points) for n, held in enumerate(generations)),
            positions,
            version,
            lowest,
            tuple(bisect_left(points, r) if r != NONE else NONE for r in at),
            recorded,
            tuple(sorted((bisect_left(points, t[0]), t[1], t[2]) for t in transactions)),
            _ranked_compaction(compaction, points) if compaction else (),
            bisect_left(points, head),
            zombie,
        )

    def _ranked_cells(
        self,
        cells: tuple[tuple[Events, ...], ...],
        points: Sequence[int],
        bases: Sequence[int],
        oldest: int,
        positions: tuple[int, ...],
        dead: tuple[int, ...],
    ) -> tuple[tuple[Events, ...], ...]:
        ranked: list[tuple[Events, ...]] = []
        collected = self.collected(positions)
        for number, entries in enumerate(cells):
            if number in dead:
                ranked.append(((),) * len(entries))
                continue
            base = NONE if self._is_exact or number in collected else bases[number]
            floor = base if self._kinds[number] is IndexKind.PLAIN else min(base, oldest)
            ranked.append(tuple(_ranked_cell(e, points, floor, base) if e else () for e in entries))
        return tuple(ranked)

    def collected(self, positions: Iterable[int]) -> tuple[int, ...]:
        """Indexes whose data has been deleted."""
        return tuple(n for position in positions for n in self._collected[position])

    def is_over(self, positions: Iterable[int]) -> bool:
        return all(self._over[position] for position in positions)

    def _dead(
        self, positions: tuple[int, ...], version: int, transactions: Iterable[tuple[int, int, int]]
    ) -> tuple[int, ...]:
        """Indexes that no transaction reads, now or later, and whose data is still to be collected."""
        if self._keeps_dead or not self.is_over(positions) or self.collected(positions):
            return ()
        readers = {n for t in transactions for n in self._views[t[1]].reads} | set(self._views[version].reads)
        known = set(self._views[version].writes)
        for transaction in transactions:
            known |= set(self._views[transaction[1]].writes)
        return tuple(n for n in range(len(self._kinds)) if n not in readers and n not in known)


def _builder_of(program: Program, index_id: IndexId) -> int:
    built = (
        i.job
        for i in program.instructions
        for op in i.ops
        if isinstance(op, BackfillIndexes) and index_id in op.index_ids
    )
    return next(built, 0)


def _ranked_row(events: Events, points: Sequence[int], lowest: int) -> Events:
    out = rank_events(events, points, lowest)
    if out and out[0][0] <= lowest:
        # Visible to all transactions, so it does not matter since when; a row that was never visible does not count.
        out = out[1:] if out[0][1] == NONE else ((0, out[0][1]), *out[1:])
    return out


def _ranked_cell(events: Events, points: Sequence[int], floor: int, base: int) -> Events:
    """Events at or below the floor are dropped; between it and the base only the key counts."""
    out: list[tuple[Any, ...]] = []
    for sequence, stored, left in events:
        if sequence > floor:
            rank = bisect_left(points, sequence)
            event = (rank, stored if sequence > base else UNREAD, left)
            if out and out[-1][0] == rank:
                out[-1] = event
            else:
                out.append(event)
    return tuple(out)


def _ranked_generations(held: tuple[Generation, ...], points: Sequence[int]) -> tuple[Generation, ...]:
    return tuple((bisect_left(points, g[0]), bisect_left(points, g[1]), g[2]) for g in held)


def _ranked_compaction(compaction: tuple[int, ...], points: Sequence[int]) -> tuple[int, ...]:
    index, upto, base = compaction
    return index, bisect_left(points, upto), bisect_left(points, base) if base != NONE else NONE


def _needed(held: tuple[Generation, ...], looks: set[int], pipeline: set[int]) -> tuple[Generation, ...]:
    if len(held) < 2:
        return held
    chosen = {held[-1]}
    chosen.update(g for s in looks for g in [g for g in held if g[1] <= s][-1:])
    chosen.update(g for s in pipeline for g in [g for g in held if g[0] <= s][-1:])
    return tuple(g for g in held if g in chosen)


def _is_over(program: Program, views: Sequence[RowsVersion]) -> list[bool]:
    """By position: whether there is nothing left to do but to collect what is gone, and nothing has come that was not
    there at first. A transaction that begins now does not see the change, and writes above everything that is still
    read."""
    over = []
    for position, here in enumerate(program.instructions):
        left = {i.act for _, i in program.path(position)}
        view = views[program.alone(here)]
        nothing_new = {*view.writes} <= {*views[0].reads} and (views[0].refuses or not view.refuses)
        over.append(Act.COLLECT in left and left <= _CLEANING and nothing_new)
    return over
