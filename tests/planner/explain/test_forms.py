"""Every form explains every plan that the golden files hold."""

import re

import pytest

from seachange.model.statements.session_statements import DdlExplanation
from seachange.planner.explain.form import explain_plan
from tests.planner.explain.plans import golden_plans

PLANS = list(golden_plans())
# An id of which no name was found, as `#7`.
_UNNAMED = re.compile(r"(?<!&)#\d+(?!;)\b")


@pytest.mark.parametrize("form", list(DdlExplanation), ids=lambda form: form.value)
def test_all_plans(form):
    assert len(PLANS) > 80
    for name, plan, catalog in PLANS:
        lines = explain_plan(plan, catalog, form)
        assert lines, name
        for line in lines:
            assert "\n" not in line, name
            if form is not DdlExplanation.PICTURE:
                assert not _UNNAMED.search(line), (name, line)


def test_stages_tell_every_transition():
    for name, plan, catalog in PLANS:
        told = [line for line in explain_plan(plan, catalog, DdlExplanation.STAGES) if " -> " in line]
        assert len(told) == sum(len(stage.transitions) for stage in plan.stages), name


def test_dependencies_tell_every_edge_and_why():
    for name, plan, catalog in PLANS:
        text = "\n".join(explain_plan(plan, catalog, DdlExplanation.DEPENDENCIES))
        assert f"Nodes: {len(plan.graph.nodes)}\n" in text, name
        assert f"Dependency edges: {len(plan.graph.dependencies)}, by" in text, name
        for dependency in plan.graph.dependencies:
            assert f"{dependency.rule.name}, because {dependency.rule.reason}; " in text, name


def test_verbose_names_every_rule():
    for name, plan, catalog in PLANS:
        text = "\n".join(explain_plan(plan, catalog, DdlExplanation.VERBOSE))
        for dependency in plan.graph.dependencies:
            assert f": {dependency.rule.name}\n" in text, name


def test_shape_always_tells_both_numbers():
    for name, plan, catalog in PLANS:
        lines = explain_plan(plan, catalog, DdlExplanation.COST)
        if plan.stages:
            assert lines[1].startswith("Bytes moved: "), name
            assert lines[2].startswith("Versions waited for: "), name
