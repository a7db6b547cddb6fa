"""The frame that the forms of an explanation share: phases, numbered stages, versions as they are published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from seachange.model.ids import DescriptorId
from seachange.planner.known_schema import KnownSchema
from seachange.planner.plan import ChangePlan
from seachange.planner.stages import Phase, Stage


@dataclass(frozen=True, slots=True)
class StageView:
    """A stage, its number in its phase, and the versions of all descriptors before and after it."""

    stage: Stage
    number: int
    of: int
    before: dict[DescriptorId, int] = field(compare=False)
    after: dict[DescriptorId, int] = field(compare=False)
    is_no_return: bool = False

    @property
    def title(self) -> str:
        return f"Stage {self.number} of {self.of} in {self.stage.phase.value}"


def view_stages(plan: ChangePlan, catalog: KnownSchema) -> list[StageView]:
    counts = {phase: sum(stage.phase is phase for stage in plan.stages) for phase in Phase}
    numbers = dict.fromkeys(Phase, 0)
    versions = {id_: descriptor.version for id_, descriptor in catalog.descriptors.items()}
    views = []
    turning = point_of_no_return(plan)
    for position, stage in enumerate(plan.stages):
        numbers[stage.phase] += 1
        after = versions | {id_: versions.get(id_, 0) + 1 for id_ in stage.publishes}
        is_turning = position == turning
        views.append(StageView(stage, numbers[stage.phase], counts[stage.phase], versions, after, is_turning))
        versions = after
    return views


def point_of_no_return(plan: ChangePlan) -> int | None:
    """The position of the first stage that cannot be reverted."""
    for position, stage in enumerate(plan.stages):
        if stage.is_publication:
            return position
    return None


def indent(lines: Iterator[str] | list[str], by: int = 1) -> list[str]:
    return ["  " * by + line for line in lines]
