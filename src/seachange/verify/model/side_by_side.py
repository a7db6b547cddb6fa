"""Two changes of one table as one program of two jobs, if the planner lets them run side by side.

The second change is planned when the first has begun, and each has a program of its own. A version of both is a pair of
their versions: a publication replaces only what its own change has changed, whatever the other has published.

**Invariant:** in every history both numbers of a pair only rise, and so does `first * stride + second`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from seachange.model.change.elements import Element, descriptor_of
from seachange.model.states import State
from seachange.planner.exclusion import ExclusionDecision, are_disjoint, classify, decide
from seachange.planner.known_schema import apply_ops
from seachange.planner.plan import Change, plan_statements
from seachange.planner.rules.release import CURRENT, Release
from seachange.verify.model.program import (
    Instruction,
    Parse,
    Program,
    compile_program,
    outcome_of,
    set_up,
    write_program,
)
from seachange.verify.model.switches import Switch, Switches

_FIRST_ID = 100


def compile_side_by_side(
    parse: Parse, setup: str, changes: Sequence[str], release: Release = CURRENT, switches: Switches = frozenset()
) -> Program:
    """The second change is made while the first is under way, or after it, as the table of exclusions says."""
    ids = iter(range(_FIRST_ID, 100 * _FIRST_ID))
    catalog = set_up(parse, setup, ids)
    first, second = map(parse, changes)
    one = plan_statements(catalog, first, ids)
    begun = apply_ops(catalog, one.ops(one.stages[0]))
    known = outcome_of(catalog, one) if Switch.PLANNED_FROM_OTHER in switches else begun
    other = plan_statements(known, second, ids)
    if Switch.NO_EXCLUSION not in switches and not may_overlap(one.change, other.change):
        return compile_program(parse, setup, changes, release, switches=switches)
    return _merge(*(write_program(catalog, [plan], release, switches) for plan in (one, other)))


def may_overlap(running: Change, new: Change) -> bool:
    """Whether the new change proceeds while the other is under way, for each descriptor that both touch."""
    independent = are_disjoint(running, new)
    kinds = [
        (classify(running, id_), classify(new, id_)) for id_ in {descriptor_of(t.element) for t in running.targets}
    ]
    return all(
        decide(one, other, independent=independent).answer is ExclusionDecision.PROCEED
        for one, other in kinds
        if one is not None and other is not None
    )


def _merge(one: Program, other: Program) -> Program:
    before = other.versions[0]
    versions = [_both(first, second, before) for first in one.versions for second in other.versions]
    offset = len(one.instructions)
    instructions = [*one.instructions, *(_moved(i, offset) for i in other.instructions)]
    return Program(versions, instructions, (0, offset), (len(other.versions), 1))


def _both(
    first: dict[Element, State], second: dict[Element, State], before: dict[Element, State]
) -> dict[Element, State]:
    changed = {element for element in {*before, *second} if before.get(element) != second.get(element)}
    kept = {element: state for element, state in first.items() if element not in changed}
    return kept | {element: state for element, state in second.items() if element in changed}


def _moved(instruction: Instruction, offset: int) -> Instruction:
    back = None if instruction.back is None else instruction.back + offset
    return replace(instruction, after=instruction.after + offset, back=back, job=1)


class Versions:
    """Numbers of the versions of a program that its jobs publish."""

    def __init__(self, program: Program, switches: Switches) -> None:
        self._count, self._strides = len(program.versions), program.strides
        self._forgets = Switch.FORGOTTEN_PUBLICATION in switches

    def published(self, version: int, instruction: Instruction) -> int:
        """What a PUBLISH makes of the newest version."""
        if not self._strides:
            return instruction.version
        stride = self._strides[0]
        numbers = list(divmod(version % self._count, stride))
        if self._forgets:
            # What the other job has published is lost; the number is still a new one.
            numbers, version = [0, 0], self._count
        numbers[instruction.job] = instruction.version
        return version - version % self._count + numbers[0] * stride + numbers[1]
