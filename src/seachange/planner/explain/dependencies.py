"""EXPLAIN (DDL, DEPS): the graph behind the stages, with the rule that made each edge."""

from __future__ import annotations

from itertools import pairwise

from seachange.planner.elements.rule import Rule, RuleOrder
from seachange.planner.explain.names import Names
from seachange.planner.explain.outline import indent, view_stages
from seachange.planner.explain.words import count_of, status_name
from seachange.planner.graph import Dependency
from seachange.planner.known_schema import KnownSchema
from seachange.planner.plan import ChangePlan

_ORDERS: dict[RuleOrder, str] = {
    RuleOrder.BEFORE: "before, or in the same stage",
    RuleOrder.WITH: "in the same stage",
    RuleOrder.EARLIER: "in an earlier stage",
}


def explain_dependencies(plan: ChangePlan, catalog: KnownSchema) -> list[str]:
    names = Names(plan, catalog)
    return [*_nodes(plan, catalog, names), *_op_edges(plan), *_dependency_edges(plan, names)]


def _node(number: int) -> str:
    return f"n{number + 1}"


def _nodes(plan: ChangePlan, catalog: KnownSchema, names: Names) -> list[str]:
    """Each status that an element arrives at, and the stage in which it does."""
    places = {n: view.title for view in view_stages(plan, catalog) for t in view.stage.transitions for n in t.nodes}
    lines = [f"Nodes: {len(plan.graph.nodes)}"]
    for number, node in enumerate(plan.graph.nodes):
        label = names.label(plan.graph.targets[node.target].element)
        lines += indent([f"{_node(number)}: {label} is {status_name(node.status)}; {places[number]}"])
    return lines


def _op_edges(plan: ChangePlan) -> list[str]:
    """The steps of each element, one after the other."""
    edges = [(one, other) for path in plan.graph.paths for one, other in pairwise(path)]
    lines = [f"Op edges: {len(edges)}"]
    for one, other in edges:
        step = plan.graph.nodes[other].step
        notes = [step.op.value, *(["fenced"] if step.fenced else []), *([] if step.revertible else ["not revertible"])]
        lines += indent([f"{_node(one)} -> {_node(other)}: {', '.join(notes)}"])
    return lines


def _dependency_edges(plan: ChangePlan, names: Names) -> list[str]:
    by_rule: dict[str, tuple[Rule, list[Dependency]]] = {}
    for dependency in plan.graph.dependencies:
        by_rule.setdefault(dependency.rule.name, (dependency.rule, []))[1].append(dependency)
    total = len(plan.graph.dependencies)
    lines = [f"Dependency edges: {total}, by {count_of(len(by_rule), 'rule')}"]
    for rule, edges in by_rule.values():
        lines += indent([f"{rule.name}, because {rule.reason}; {_ORDERS[rule.order]}:"])
        lines += indent([_edge(edge, plan, names) for edge in edges], 2)
    return lines


def _edge(edge: Dependency, plan: ChangePlan, names: Names) -> str:
    ends = []
    for number in (edge.first, edge.then):
        node = plan.graph.nodes[number]
        label = names.label(plan.graph.targets[node.target].element)
        ends.append(f"{_node(number)} {label} {status_name(node.status)}")
    return " -> ".join(ends)
