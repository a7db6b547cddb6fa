"""Breadth-first exploration of every state that a model can reach, so that the first problem found has a shortest
trace.

**Invariant:** the order of successors depends only on the state, so a trace is the same in every run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

State = tuple[Any, ...]
_STATES_BETWEEN = 256
# A step of a trace: its name, and the values that its description needs.
Label = tuple[Any, ...]


class Model(Protocol):
    """States are flat tuples of small integers and tuples, made canonical by the model itself."""

    @property
    def initial(self) -> State: ...

    def successors(self, state: State) -> Iterable[tuple[Label, State]]: ...

    def problem(self, state: State) -> str | None:
        """The problem of a state, in words."""

    def tell(self, trace: list[tuple[State, Label, State]]) -> list[str]:
        """The steps of a trace, in words."""


@runtime_checkable
class EndingModel(Model, Protocol):
    """A model that must also be able to come to an end from every state, by steps of its own."""

    def is_free(self, state: State) -> bool: ...

    def is_own_step(self, label: Label) -> bool: ...


@dataclass(frozen=True, slots=True)
class Exploration:
    """`complete`: every reachable state was visited. A problem comes with the steps that lead to it."""

    states: int
    steps: int
    depth: int
    complete: bool = True
    problem: str | None = None
    trace: tuple[str, ...] = ()


def _never() -> bool:
    return False


def explore(model: Model, states_max: int = 5_000_000, is_over: Callable[[], bool] = _never) -> Exploration:
    """`is_over` is asked now and then whether to give up."""
    initial = model.initial
    parents: dict[State, tuple[State, Label] | None] = {initial: None}
    layer = [initial]
    ending = model if isinstance(model, EndingModel) else None
    # By state: those from which an own step leads to it.
    origins: dict[State, list[State]] = defaultdict(list)
    steps = depth = 0
    while layer:
        following: list[State] = []
        for number, state in enumerate(layer):
            if not number % _STATES_BETWEEN and is_over():
                return Exploration(len(parents), steps, depth, complete=False)
            problem = model.problem(state)
            if problem is not None:
                trace = tuple(model.tell(_path(parents, state)))
                return Exploration(len(parents), steps, depth, False, problem, trace)
            for label, successor in model.successors(state):
                steps += 1
                if ending is not None and ending.is_own_step(label):
                    origins[successor].append(state)
                if successor not in parents:
                    parents[successor] = (state, label)
                    following.append(successor)
        if len(parents) > states_max:
            return Exploration(len(parents), steps, depth, complete=False)
        layer = following
        depth += bool(layer)
    stuck = _find_stuck(ending, parents, origins) if ending is not None else None
    if stuck is not None:
        trace = tuple(model.tell(_path(parents, stuck)))
        return Exploration(len(parents), steps, depth, False, "the table can never become free again", trace)
    return Exploration(len(parents), steps, depth)


def _find_stuck(model: EndingModel, states: Iterable[State], origins: dict[State, list[State]]) -> State | None:
    """The first state from which no end can be reached."""
    every = list(states)
    left = [state for state in every if model.is_free(state)]
    ends = set(left)
    while left:
        for origin in origins.get(left.pop(), ()):
            if origin not in ends:
                ends.add(origin)
                left.append(origin)
    return next((state for state in every if state not in ends), None)


def _path(parents: dict[State, tuple[State, Label] | None], state: State) -> list[tuple[State, Label, State]]:
    path: list[tuple[State, Label, State]] = []
    while (link := parents[state]) is not None:
        path.append((link[0], link[1], state))
        state = link[0]
    return path[::-1]


# Reasons for which a model rejects a write. The engine rejects the same writes; tests/verify/replay lists the errors.


class Refusal(StrEnum):
    CONFLICT = "a row or a key that it writes, or relies on, was written since its snapshot"
    MOVED = "it is derived again, and does not find its row as it was"
    GONE = "the table or the column that it writes to is gone"
    BROKEN = "the row breaks a rule"
    TAKEN = "another row has the key"
    REFERENCE = "a child would have no parent"


# Sequence numbers replaced by ranks, so that histories of any length are finitely many.
# Only the order of an event relative to the points that something still refers to (open snapshots, R, bases of
# generations, the head) can be told apart. Of several events between two points the last one counts, and of those
# before the first point the last.

# (sequence, ...), rising.
Events = tuple[tuple[Any, ...], ...]


def rank_events(events: Events, points: Sequence[int], lowest: int) -> Events:
    """`lowest` is the rank of the first point that is read."""
    out: list[tuple[Any, ...]] = []
    for event in events:
        rank = bisect_left(points, event[0])
        if out and (out[-1][0] == rank or rank <= lowest):
            out[-1] = (rank, *event[1:])
        else:
            out.append((rank, *event[1:]))
    return tuple(out)


def value_at(events: Events, sequence: int, otherwise: int) -> int:
    """The second field of the newest visible event."""
    value = otherwise
    for event in events:
        if event[0] > sequence:
            break
        value = event[1]
    return value
