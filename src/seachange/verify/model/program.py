"""A change as a program: the stages of its plan, and the rollback from each of them, as instructions of a job.

The planner's output is used unchanged. A program has *versions* (the state of every element, as of one publication) and
instructions; the state that a version gives to an element is all that the models know of a schema.

**Invariant:** along every path through a program the numbers of its versions rise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from seachange.model.change import elements
from seachange.model.change.elements import AnyIndex, Element
from seachange.model.change.ops import CollectIndexes, Op, OpType
from seachange.model.change.targets import GOAL_STATUS, STATE_OF, Status
from seachange.model.ids import DescriptorId, IndexId, TableId
from seachange.model.statements import DdlStatement
from seachange.model.states import State
from seachange.planner.graph import build_graph
from seachange.planner.known_schema import KnownSchema, PastChange, TableSize, apply_ops
from seachange.planner.object_parts import decompose
from seachange.planner.plan import ChangePlan, plan_revert, plan_statements
from seachange.planner.rules.release import CURRENT, Release
from seachange.planner.stages import Phase, PlanningError, Stage, build_stages, progress_after, unfenced_at_first
from seachange.verify.model.switches import Switch, Switches

# Parses the statements of a text.
Parse = Callable[[str], Sequence[DdlStatement]]

_INDEXES = (elements.PrimaryIndex, elements.SecondaryIndex, elements.UniqueIndex)
_FIRST_ID = 100


class Act(StrEnum):
    # Raises min_version of the tables; R is the sequence of the raise.
    RAISE = "raise"
    # R is the head: for a stage that reads rows without a raise before it.
    SNAPSHOT = "snapshot"
    PUBLISH = "publish"
    BACKFILL = "backfill"
    VALIDATE = "validate"
    # Writes back values that rows had.
    RESTORE = "restore"
    COLLECT = "collect"
    END = "end"


_ACTS = {
    OpType.MUTATION: Act.PUBLISH,
    OpType.BACKFILL: Act.BACKFILL,
    OpType.VALIDATION: Act.VALIDATE,
    OpType.RESTORATION: Act.RESTORE,
    OpType.COLLECTION: Act.COLLECT,
}
_READS = (Act.BACKFILL, Act.VALIDATE)


@dataclass(frozen=True, slots=True)
class Instruction:
    """`version` is the one that the job has published so far or, of a PUBLISH, publishes. `tables` are those whose
    min_version it raises. A PUBLISH may find that a table must be `empty` and is not, and then waits; `begun` are
    indexes that have no entries when it is done. `back` is where a failure or a cancel goes on, if it can. `job` is
    the number of the job whose instruction it is."""

    act: Act
    version: int
    after: int
    ops: tuple[Op, ...] = ()
    tables: tuple[DescriptorId, ...] = ()
    empty: bool = False
    begun: tuple[IndexId, ...] = ()
    back: int | None = None
    job: int = 0


@dataclass(slots=True)
class Program:
    """Every path ends at an END. `starts` are the first instructions of its jobs; of two jobs, a version is numbered by
    the versions of both (`side_by_side.py`), and `strides` are the distances between those of each."""

    versions: list[dict[Element, State]]
    instructions: list[Instruction] = field(default_factory=list)
    starts: tuple[int, ...] = (0,)
    strides: tuple[int, ...] = ()

    @property
    def elements(self) -> list[Element]:
        """Every element of every version, in a fixed order."""
        found: dict[Element, None] = {}
        for version in self.versions:
            found.update(dict.fromkeys(version))
        return sorted(found, key=repr)

    def state(self, version: int, element: Element) -> State:
        states = self.versions[version]
        table = elements.TableElement(getattr(element, "table_id", TableId(-1)))
        if table in self.versions[0] and table not in states:
            # Its parts were dropped with it.
            return State.ABSENT
        return states.get(element, State.ABSENT)

    def comes_back(self, index: AnyIndex) -> bool:
        """Whether it is an index of a table that is not there at first, and then is with its rows."""
        return index.built and elements.TableElement(index.table_id) not in self.versions[0]

    @property
    def returning(self) -> set[TableId]:
        return {e.table_id for e in self.elements if isinstance(e, elements.PrimaryIndex) and self.comes_back(e)}

    def alone(self, instruction: Instruction) -> int:
        """The version of an instruction, if no other job has published anything."""
        return instruction.version * (self.strides[instruction.job] if self.strides else 1)

    def path(self, position: int) -> Iterator[tuple[int, Instruction]]:
        """The instructions from there to the end, if nothing is reverted."""
        while True:
            instruction = self.instructions[position]
            yield position, instruction
            if instruction.act is Act.END:
                return
            position = instruction.after

    def reads_snapshot(self, position: int) -> bool:
        """Whether R is read before it is set again."""
        for _, instruction in self.path(position):
            if instruction.act in _READS:
                return True
            if instruction.act in (Act.RAISE, Act.SNAPSHOT):
                return False
        return False

    def collected(self) -> list[frozenset[IndexId]]:
        """The indexes whose data is deleted, by position."""
        found: list[set[IndexId]] = [set() for _ in self.instructions]
        for start in range(len(self.instructions)):
            gone: set[IndexId] = set()
            for position, instruction in self.path(start):
                found[position] |= gone
                for op in instruction.ops:
                    if isinstance(op, CollectIndexes):
                        gone |= set(op.index_ids)
        return [frozenset(f) for f in found]


def compile_program(
    parse: Parse,
    setup: str,
    changes: Sequence[str],
    release: Release = CURRENT,
    has_rows: bool = True,
    switches: Switches = frozenset(),
    in_block: bool = False,
) -> Program:
    """`changes` are made one after the other, each as soon as the one before has ended, to the result of `setup`; by
    jobs, or `in_block` by a transaction block."""
    ids = iter(range(_FIRST_ID, 100 * _FIRST_ID))
    catalog = set_up(parse, setup, ids)
    planned: list[ChangePlan] = []
    before = catalog
    for text in changes:
        sizes = {} if has_rows else {id_: TableSize() for id_ in before.descriptors}
        planned.append(plan_statements(replace(before, sizes=sizes), parse(text), ids, in_block=in_block))
        before = outcome_of(before, planned[-1])
    return write_program(catalog, planned, release, switches)


def set_up(parse: Parse, setup: str, ids: Iterator[int]) -> KnownSchema:
    """The changes have the numbers of their statements, from 1 on."""
    catalog = KnownSchema()
    for number, statement in enumerate(parse(setup), 1):
        after = outcome_of(catalog, plan_statements(catalog, [statement], ids))
        before, now = catalog.descriptors, after.descriptors
        changed = sorted(id_ for id_ in before.keys() | now.keys() if before.get(id_) != now.get(id_))
        versions = tuple((before.get(id_), now.get(id_)) for id_ in changed)
        catalog = replace(after, history=(*catalog.history, PastChange(number, type(statement).__name__, versions)))
    return catalog


def write_program(catalog: KnownSchema, planned: Sequence[ChangePlan], release: Release, switches: Switches) -> Program:
    """The program of one job that makes these changes, one after the other. The outcome of a change is the same by all
    rules."""
    writer = _Writer(Program([_states(catalog)]))
    plans: list[tuple[ChangePlan, list[int]]] = []
    for original in planned:
        plan = _by_release(original, release, switches)
        plans.append((plan, [writer.write(plan, stage) for stage in plan.stages]))
    writer.end()
    ends = [starts[0] for _, starts in plans[1:]]
    program = writer.program
    ends.append(len(program.instructions) - 1)
    for (plan, starts), end in zip(plans, ends, strict=True):
        _write_ways_back(program, plan, starts, end, release)
    return program


def _by_release(plan: ChangePlan, release: Release, switches: Switches) -> ChangePlan:
    if Switch.NO_PUBLICATION_FENCE in switches:
        plan = replace(plan, change=replace(plan.change, fenced=frozenset()))
    if release is CURRENT and Switch.TRUSTED_START not in switches:
        return plan
    in_block = plan.change.in_block
    for target in plan.change.targets:
        statuses = (release.in_block if in_block else release.lifecycles)[type(target.element)].statuses
        if target.adds and not {target.start, GOAL_STATUS[target.goal]} <= {*statuses, Status.ABSENT}:
            raise PlanningError(f"{target.element} cannot come to {target.goal}")
    graph = build_graph(plan.change.targets, release, plan.change.skips, in_block)
    unfenced = () if Switch.TRUSTED_START in switches else unfenced_at_first(graph.targets)
    first = Phase.STATEMENT if in_block else Phase.PRE_COMMIT
    return replace(plan, graph=graph, stages=build_stages(graph, first, unfenced))


def outcome_of(catalog: KnownSchema, plan: ChangePlan) -> KnownSchema:
    for stage in plan.stages:
        catalog = apply_ops(catalog, plan.ops(stage))
    return catalog


def _states(catalog: KnownSchema) -> dict[Element, State]:
    states: dict[Element, State] = {}
    for descriptor in catalog.descriptors.values():
        states.update(decompose(descriptor))
    return states


class _Writer:
    """Writes one stage after the other; `_version` is the version after the last one."""

    def __init__(self, program: Program, version: int = 0) -> None:
        self.program = program
        self._version = version
        # Whether R is from a raise of the current change.
        self._raised = False
        self._change: object = None

    def write(self, plan: ChangePlan, stage: Stage) -> int:
        """The position of the first instruction of the stage."""
        start = len(self.program.instructions)
        if self._change is not plan:
            self._change, self._raised = plan, False
        act = _ACTS[stage.type]
        if stage.raises:
            self._add(Instruction(Act.RAISE, self._version, 0, tables=stage.raises))
            self._raised = True
        elif act in _READS and not self._raised:
            self._add(Instruction(Act.SNAPSHOT, self._version, 0))
        if act is Act.PUBLISH:
            self._publish(plan, stage)
        else:
            self._add(Instruction(act, self._version, 0, ops=_ops(plan, stage)))
        return start

    def _publish(self, plan: ChangePlan, stage: Stage) -> None:
        states = dict(self.program.versions[self._version])
        begun: list[IndexId] = []
        final = False
        for transition in stage.transitions:
            element = plan.graph.targets[transition.target].element
            states.pop(element, None)
            if transition.status is not Status.ABSENT:
                states[element] = STATE_OF[transition.status]
            at_once = (transition.origin, transition.status) == (Status.ABSENT, Status.PUBLIC)
            # The entries of an index that comes back with its table are there.
            if isinstance(element, _INDEXES) and at_once and not self.program.comes_back(element):
                begun.append(element.index_id)
            final |= any(not plan.graph.nodes[n].step.revertible for n in transition.nodes)
        self._version = len(self.program.versions)
        self.program.versions.append(states)
        change = plan.change
        self._add(
            Instruction(
                Act.PUBLISH,
                self._version,
                0,
                tables=tuple(sorted(change.fenced)) if final else (),
                empty=bool(change.empty) and final,
                begun=tuple(begun),
            )
        )

    def end(self) -> None:
        self._add(Instruction(Act.END, self._version, 0))

    def _add(self, instruction: Instruction) -> None:
        here = len(self.program.instructions)
        self.program.instructions.append(replace(instruction, after=here + 1))


def _ops(plan: ChangePlan, stage: Stage) -> tuple[Op, ...]:
    moved = [plan.graph.targets[t.target].element for t in stage.transitions]
    if stage.type is OpType.BACKFILL and not all(isinstance(element, _INDEXES) for element in moved):
        # In place: only in the classic protocol, which also fills columns. No executor implements it.
        return ()
    return plan.ops(stage)


def _write_ways_back(program: Program, plan: ChangePlan, starts: Sequence[int], end: int, release: Release) -> None:
    """The rollbacks, one after each stage that has one. Equal ones are written once."""
    written: dict[tuple[object, ...], int] = {}
    bounds = [*starts, end]
    for done, stage in enumerate(plan.stages):
        if not _is_reversible(plan, plan.stages[:done]):
            break
        if not done and stage.type is OpType.MUTATION:
            # Nothing has been done yet, and this cannot fail.
            continue
        back = plan_revert(plan.change, progress_after(plan.graph, plan.stages[:done]), release)
        version = program.instructions[starts[done]].version
        if program.instructions[starts[done]].act is Act.PUBLISH:
            version -= 1
        start = _write_way_back(program, back, version, written)
        for position in range(starts[done], bounds[done + 1]):
            program.instructions[position] = replace(program.instructions[position], back=start)


def _write_way_back(program: Program, plan: ChangePlan, version: int, written: dict[tuple[object, ...], int]) -> int:
    trial = _Writer(Program([program.versions[version]]))
    for stage in plan.stages:
        trial.write(plan, stage)
    trial.end()
    key = tuple(
        (i.act, i.ops, i.tables, tuple(sorted(map(repr, trial.program.versions[i.version].items()))))
        for i in trial.program.instructions
    )
    if key not in written:
        written[key] = offset = len(program.instructions)
        first = len(program.versions) - 1
        program.versions += trial.program.versions[1:]
        for instruction in trial.program.instructions:
            number = instruction.version + first if instruction.version else version
            program.instructions.append(replace(instruction, version=number, after=instruction.after + offset))
    return written[key]


def _is_reversible(plan: ChangePlan, done: Sequence[Stage]) -> bool:
    return all(plan.graph.nodes[n].step.revertible for stage in done for t in stage.transitions for n in t.nodes)
