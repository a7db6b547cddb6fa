"""Which form of an explanation is whose."""

from __future__ import annotations

from collections.abc import Callable

from seachange.model.statements import DdlExplanation
from seachange.planner.catalog import Catalog
from seachange.planner.explain.dependencies import explain_dependencies
from seachange.planner.explain.picture import explain_picture
from seachange.planner.explain.shape import explain_shape
from seachange.planner.explain.stages import explain_stages
from seachange.planner.explain.verbose import explain_verbose
from seachange.planner.plan import Plan

_FORMS: dict[DdlExplanation, Callable[[Plan, Catalog], list[str]]] = {
    DdlExplanation.STAGES: explain_stages,
    DdlExplanation.VERBOSE: explain_verbose,
    DdlExplanation.DEPENDENCIES: explain_dependencies,
    DdlExplanation.PICTURE: explain_picture,
    DdlExplanation.SHAPE: explain_shape,
}
_THEN = "Then, by the same job; until this is published, both can be taken back:"


def explain_plan(plan: Plan, catalog: Catalog, form: DdlExplanation) -> list[str]:
    """The lines of an explanation. `catalog` is the one that the plan was made for."""
    lines = _FORMS[form](plan, catalog)
    if plan.then is None or plan.between is None:
        return lines
    comment = "// " if form is DdlExplanation.PICTURE else ""
    return [*lines, comment + _THEN, *explain_plan(plan.then, plan.between, form)]
