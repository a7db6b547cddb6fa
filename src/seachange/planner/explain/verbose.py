"""EXPLAIN (DDL, VERBOSE): the stages with the rules that made each transition wait, and the ops with all they say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any

from seachange.model.change.elements import element_name
from seachange.model.change.ops import Op
from seachange.planner.elements.rule import RuleOrder
from seachange.planner.explain.names import Names
from seachange.planner.explain.outline import StageView
from seachange.planner.explain.stages import StagesText
from seachange.planner.explain.words import status_name
from seachange.planner.known_schema import KnownSchema
from seachange.planner.plan import ChangePlan
from seachange.planner.stages import Transition

_ORDERS: dict[RuleOrder, str] = {
    RuleOrder.BEFORE: "not before",
    RuleOrder.WITH: "in the stage in which",
    RuleOrder.EARLIER: "in a later stage than that in which",
}


def explain_verbose(plan: ChangePlan, catalog: KnownSchema) -> list[str]:
    return _VerboseText(plan, catalog).lines()


class _VerboseText(StagesText):
    def reasons(self, transition: Transition) -> Iterator[str]:
        graph = self.plan.graph
        for number in transition.nodes:
            if graph.nodes[number].step.fenced:
                yield f"fenced: every writer knows {status_name(graph.nodes[number].origin)} before"
            if not graph.nodes[number].step.revertible:
                yield "not revertible: nothing is left that can fail"
            for dependency in graph.required[number]:
                first = graph.nodes[dependency.first]
                label = self.names.label(graph.targets[first.target].element)
                order = _ORDERS[dependency.rule.order]
                yield f"{order} {label} becomes {status_name(first.status)}: {dependency.rule.name}"

    def ops(self, view: StageView) -> list[str]:
        return [*super().ops(view), *(spell(op, self.names) for op in self.plan.ops(view.stage))]


def spell(op: Op, names: Names) -> str:
    """An op with all its arguments; ids are followed by the names that they stand for."""
    return _spell(op, names, {})


def _spell(value: Any, names: Names, around: dict[str, Any]) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        known = around | {f.name: getattr(value, f.name) for f in fields(value)}
        parts = [f"{f.name}={_field(f.name, getattr(value, f.name), names, known)}" for f in fields(value)]
        return f"{element_name(type(value))}({', '.join(parts)})"
    if isinstance(value, StrEnum):
        return value.value
    return repr(value)


def _field(name: str, value: Any, names: Names, known: dict[str, Any]) -> str:
    if isinstance(value, tuple):
        singular = _SINGULAR.get(name, name)
        return "(" + ", ".join(_field(singular, item, names, known) for item in value) + ")"
    if isinstance(value, int) and not isinstance(value, bool):
        label = _label(name, value, names, known)
        return f"{value} {label}" if label is not None else repr(value)
    return _spell(value, names, known)


_SINGULAR: dict[str, str] = {
    "key": "column_id",
    "include": "column_id",
    "descending": "column_id",
    "nulls_swapped": "column_id",
    "columns": "column_id",
    "column_ids": "column_id",
    "rebuilt_ids": "column_id",
    "index_ids": "index_id",
    "sequence_ids": "descriptor_id",
    "relation_ids": "descriptor_id",
}
_DESCRIPTORS = frozenset({"descriptor_id", "table_id", "sequence_id", "type_id", "view_id", "parent_id"})
_INDEXES = frozenset({"index_id", "source_id", "replaces_id", "proof_id"})


def _label(name: str, value: int, names: Names, known: dict[str, Any]) -> str | None:
    table_id = known.get("table_id")
    if name in _DESCRIPTORS:
        return names.object(value)  # type: ignore[arg-type]
    if table_id is None:
        return None
    if name in ("column_id", "in_place_of"):
        return names.column(table_id, value)  # type: ignore[arg-type]
    if name in _INDEXES:
        return names.index(table_id, value)  # type: ignore[arg-type]
    if name == "parent_index_id":
        return names.index(known["parent_id"], value)  # type: ignore[arg-type]
    if name == "constraint_id":
        return names.constraint(table_id, value)  # type: ignore[arg-type]
    return None
