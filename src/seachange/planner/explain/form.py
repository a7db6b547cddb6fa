"""Which form of an explanation is whose."""

from __future__ import annotations

from collections.abc import Callable

from seachange.model.statements import DdlExplanation
from seachange.planner.explain.dependencies import explain_dependencies
from seachange.planner.explain.picture import explain_picture
from seachange.planner.explain.shape import explain_shape
from seachange.planner.explain.stages import explain_stages
from seachange.planner.explain.verbose import explain_verbose
from seachange.planner.explain.words import bytes_in_words, count_of
from seachange.planner.known_schema import KnownSchema
from seachange.planner.plan import ChangePlan
from seachange.planner.strategy import Cost, measure_whole

_FORMS: dict[DdlExplanation, Callable[[ChangePlan, KnownSchema], list[str]]] = {
    DdlExplanation.STAGES: explain_stages,
    DdlExplanation.VERBOSE: explain_verbose,
    DdlExplanation.DEPENDENCIES: explain_dependencies,
    DdlExplanation.PICTURE: explain_picture,
    DdlExplanation.COST: explain_shape,
}
_THEN = "Then, by the same job:"


def explain_plan(plan: ChangePlan, catalog: KnownSchema, form: DdlExplanation) -> list[str]:
    """The lines of an explanation. `catalog` is the one that the plan was made for."""
    lines = _FORMS[form](plan, catalog)
    if plan.then is None or plan.between is None:
        return lines
    comment = "// " if form is DdlExplanation.PICTURE else ""
    whole = comment + _whole(measure_whole(plan, catalog))
    return [whole, *lines, comment + _THEN, *explain_plan(plan.then, plan.between, form)]


def _whole(cost: Cost) -> str:
    moved = bytes_in_words(cost.bytes_moved) if cost.bytes_moved is not None else "an unknown number of bytes"
    return (
        f"Two changes by one job, reverted both or none: {count_of(cost.versions, 'version')} published, "
        f"{cost.drains} waited for; {cost.strategy.value}, moves {moved}. First:"
    )
