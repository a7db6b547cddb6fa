"""Enum types, their values and labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.targets import Status
from seachange.model.object_kind import ObjectKind
from seachange.model.schema import objects
from seachange.model.states import State
from seachange.planner.elements.rule import Adding, Dropping, Rule, RuleOrder
from seachange.planner.elements.spec import ElementNaming, ElementSpec, ObjectForm, Parts, Topic
from seachange.planner.lifecycles.seachange import SIMPLE


def _take(type_: objects.EnumType) -> Parts:
    parts: Parts = {}
    for value in type_.values:
        parts[elements.EnumValue(type_.id, value.id, value.rank, value.held)] = State.PUBLIC
        parts[elements.EnumLabel(type_.id, value.id, value.label)] = State.PUBLIC
    return parts


def _put(before: objects.EnumType | None, parts: Mapping[Element, State]) -> dict[str, Any]:
    labels = {e.value_id: e.label for e in parts if isinstance(e, elements.EnumLabel)}
    values = [_value(e, labels[e.value_id]) for e in parts if isinstance(e, elements.EnumValue)]
    values.sort(key=lambda value: value.rank)
    following = max((value.id for value in values), default=0) + 1
    next_value_id = max(following, before.next_value_id if before is not None else 0)
    return {"values": tuple(values), "next_value_id": next_value_id}


def _value(element: elements.EnumValue, label: str) -> objects.Value:
    stored = element.stored if element.stored != label else ""
    return objects.Value(element.value_id, element.rank, label, stored)


ENUM_TYPE = Topic(
    specs=(
        ElementSpec(elements.EnumLabel, SIMPLE, "label"),
        ElementSpec(elements.EnumValue, SIMPLE, "value", ElementNaming.OWN),
        ElementSpec(
            elements.EnumTypeElement,
            SIMPLE,
            "type",
            ElementNaming.OWN,
            form=ObjectForm(ObjectKind.TYPE, objects.EnumType, _take, _put),
        ),
    ),
    rules=(
        Rule(
            name="an enum value comes with its label",
            reason="a value without one could not be written",
            first=Adding((elements.EnumValue,), Status.PUBLIC),
            order=RuleOrder.WITH,
            then=Adding((elements.EnumLabel,), Status.PUBLIC),
            join=("type_id", "value_id"),
        ),
        Rule(
            name="an enum value goes with its label",
            reason="a label without a value would name nothing",
            first=Dropping((elements.EnumLabel,)),
            order=RuleOrder.WITH,
            then=Dropping((elements.EnumValue,)),
            join=("type_id", "value_id"),
        ),
        Rule(
            name="a type exists before a column is of it",
            reason="its values must be known to all writers",
            first=Adding((elements.EnumTypeElement,), Status.PUBLIC),
            order=RuleOrder.BEFORE,
            then=Adding((elements.ColumnType,), Status.PUBLIC),
            join=("type_id",),
        ),
        Rule(
            name="a type goes after the columns of it",
            reason="their values would mean nothing",
            first=Dropping((elements.ColumnType,)),
            order=RuleOrder.BEFORE,
            then=Dropping((elements.EnumTypeElement,)),
            join=("type_id",),
        ),
    ),
)
