"""Which traces of a model are replayed: walks that together take every kind of step at every stage of a change.

**Invariant:** a walk depends on nothing but the model: the same one in every run.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from seachange.cli.verify import parse_ddl
from seachange.verify.model.explore import Label, Refusal, State
from seachange.verify.model.mutants import Mutant, switches_of
from seachange.verify.model.program import Act, Program, compile_program
from seachange.verify.model.scenario import (
    ClassicFocus,
    LayoutFocus,
    Protocol,
    ReferenceFocus,
    RowFocus,
    Scenario,
    release_of,
)
from seachange.verify.model.words import name_transactions

# So long a walk may grow before it is led to its end, and so many states are looked at for the next step worth taking.
LENGTH_MAX = 60
STATES_MAX = 20_000


@dataclass(frozen=True, slots=True)
class Step:
    """`refusal`: the model refuses the write; `who` takes the step, if a transaction does."""

    before: State
    label: Label
    after: State
    refusal: Refusal | None = None
    who: str = ""


Walk = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Subject:
    """A model, and where its states keep what all models have."""

    scenario: Scenario
    program: Program
    model: Any
    transactions_at: int
    position_at: int
    version_at: int
    # Without a safeguard.
    is_broken: bool

    def position(self, state: State) -> int:
        position = state[self.position_at]
        return int(position[0] if isinstance(position, tuple) else position)

    @property
    def nodes(self) -> int:
        """So many transactions are open at a time."""
        assert not isinstance(self.scenario.focus, ClassicFocus)
        return self.scenario.focus.scope.nodes

    def version(self, state: State) -> int:
        return int(state[self.version_at])


# By focus: the places of open transactions, of the job's position and of the newest version.
PLACES: dict[type, tuple[int, int, int]] = {RowFocus: (8, 3, 4), ReferenceFocus: (6, 2, 3), LayoutFocus: (4, 1, 2)}


def subject_of(scenario: Scenario, mutants: tuple[Mutant, ...] = ()) -> Subject:
    switches = switches_of(mutants)
    release = release_of(Protocol.SEACHANGE, mutants)
    program = compile_program(parse_ddl, scenario.setup, scenario.changes, release, scenario.has_rows, switches)
    model = scenario.focus.build(program, switches)
    return Subject(scenario, program, model, *PLACES[type(scenario.focus)], bool(mutants))


class Walker:
    """`fine` tells steps apart by the versions that a writer knows, too."""

    def __init__(self, subject: Subject, fine: bool = False) -> None:
        self._subject = subject
        self._fine = fine
        self._covered: set[Hashable] = set()
        self._known: dict[State, list[Step]] = {}

    @property
    def covered(self) -> int:
        return len(self._covered)

    def walks(self) -> Iterator[Walk]:
        while True:
            steps: list[Step] = []
            state = self._subject.model.initial
            while len(steps) < LENGTH_MAX and (found := self._nearest(state)) is not None:
                self._covered.update(map(self._kind, found))
                steps += found
                state = steps[-1].after
            if not steps:
                return
            end = self._end(state)
            self._covered.update(map(self._kind, end))
            yield name_steps(self._subject, [*steps, *end])

    def encode(self, walk: Walk) -> str:
        """The walk as text: which of the steps that are possible is taken each time."""
        plain = [replace(step, who="") for step in walk]
        return " ".join(str(self._steps(step.before).index(step)) for step in plain)

    def decode(self, text: str) -> Walk:
        steps: list[Step] = []
        state = self._subject.model.initial
        for number in map(int, text.split()):
            steps.append(self._steps(state)[number])
            state = steps[-1].after
        return name_steps(self._subject, steps)

    def _kind(self, step: Step) -> Hashable:
        label, position = step.label, self._subject.position(step.before)
        if label[0] not in ("commit", "write"):
            return label[0], position
        planned, used = label[-2:]
        if self._fine:
            return _what(label), step.refusal, planned, used, position
        return step.refusal is None, planned != used, position

    def _nearest(self, start: State) -> list[Step] | None:
        """A short way to a step that no walk has taken: at this stage of the job, if there is one, else further on."""
        position = self._subject.position(start)
        for allowed in (lambda step: self._subject.position(step.after) == position, _goes_on, lambda step: True):
            if (found := self._search(start, allowed)) is not None:
                return found
        return None

    def _search(self, start: State, allowed: Callable[[Step], bool]) -> list[Step] | None:
        parents: dict[State, Step | None] = {start: None}
        layer = [start]
        while layer and len(parents) < STATES_MAX:
            following: list[State] = []
            for state in layer:
                for step in filter(allowed, self._steps(state)):
                    if self._kind(step) not in self._covered:
                        return [*_path(parents, state), step]
                    if step.after not in parents:
                        parents[step.after] = step
                        following.append(step.after)
            layer = following
        return None

    def _steps(self, state: State) -> list[Step]:
        if state not in self._known:
            model = self._subject.model
            steps = [Step(state, label, after) for label, after in model.successors(state)]
            if not self._subject.is_broken:
                steps += [Step(state, label, after, refusal) for label, refusal, after in model.refusals(state)]
            self._known[state] = steps
        return self._known[state]

    def _end(self, state: State) -> list[Step]:
        """To where the job is over and nothing is open: the job goes on as far as it can, then transactions end."""
        steps: list[Step] = []
        while True:
            ranked = [(_ENDING.index(s.label[0]), s) for s in self._steps(state) if s.label[0] in _ENDING]
            if not ranked:
                assert self._subject.program.instructions[self._subject.position(state)].act is Act.END, state
                return steps
            steps.append(min(ranked, key=lambda each: each[0])[1])
            state = steps[-1].after


_ENDING = (
    "turned away",
    "swap",
    "not swapped",
    "job",
    "failed",
    "recorded",
    "looked again",
    "register",
    "stale",
    "commit",
    "write",
)


_TURNS = ("cancel", "failed", "recorded")


def _goes_on(step: Step) -> bool:
    return step.label[0] not in _TURNS


def _what(label: Label) -> Hashable:
    """What a write does: of rows, whether there is one before and after."""
    return (label[3] < 0, label[4] < 0) if label[0] == "commit" else label[2:-2]


def _path(parents: dict[State, Step | None], state: State) -> list[Step]:
    path: list[Step] = []
    while (step := parents[state]) is not None:
        path.append(step)
        state = step.before
    return path[::-1]


def name_steps(subject: Subject, steps: list[Step]) -> Walk:
    trace = [(step.before, step.label, step.after) for step in steps]
    names = name_transactions(trace, subject.transactions_at)
    return tuple(replace(step, who=who) for step, who in zip(steps, names, strict=True))


def counter_example(subject: Subject) -> Walk:
    """The shortest trace to a state in which something is wrong."""
    model = subject.model
    parents: dict[State, Step | None] = {model.initial: None}
    layer = [model.initial]
    while layer:
        following: list[State] = []
        for state in layer:
            if model.problem(state) is not None:
                return name_steps(subject, _path(parents, state))
            for label, after in model.successors(state):
                if after not in parents:
                    parents[after] = Step(state, label, after)
                    following.append(after)
        layer = following
    raise AssertionError(f"nothing goes wrong in {subject.scenario.name}")
