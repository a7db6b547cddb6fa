"""Sequences, and what draws from them."""

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
from seachange.planner.elements.spec import (
    ElementNaming,
    ElementSpec,
    ObjectForm,
    Parts,
    Topic,
    common_fields,
    copy_fields,
    first,
    only,
)
from seachange.planner.lifecycles.seachange import SIMPLE


def _take(sequence: objects.Sequence) -> Parts:
    parts: Parts = {copy_fields(sequence, elements.SequenceSettings, sequence_id=sequence.id): State.PUBLIC}
    if sequence.owner is not None:
        parts[elements.SequenceOwnerElement(sequence.id, *sequence.owner)] = State.PUBLIC
    if sequence.restart is not None:
        parts[elements.SequenceStart(sequence.id, sequence.restart, sequence.run)] = State.PUBLIC
    return parts


def _put(before: objects.Sequence | None, parts: Mapping[Element, State]) -> dict[str, Any]:
    owner = first(elements.SequenceOwnerElement, parts)
    start = first(elements.SequenceStart, parts)
    return {
        **common_fields(only(elements.SequenceSettings, parts), objects.Sequence),
        "owner": (owner.table_id, owner.column_id) if owner is not None else None,
        "restart": start.start if start is not None else None,
        "run": start.run if start is not None else 0,
    }


SEQUENCE = Topic(
    specs=(
        ElementSpec(elements.SequenceOwnerElement, SIMPLE, "owning column of sequence"),
        ElementSpec(elements.SequenceStart, SIMPLE, "start of sequence"),
        ElementSpec(elements.SequenceSettings, SIMPLE, "settings of sequence"),
        ElementSpec(
            elements.SequenceElement,
            SIMPLE,
            "sequence",
            ElementNaming.OWN,
            form=ObjectForm(ObjectKind.SEQUENCE, objects.Sequence, _take, _put),
        ),
    ),
    rules=(
        Rule(
            name="a sequence exists before a column draws from it",
            reason="the first writer that knows the column calls for a value",
            first=Adding((elements.SequenceElement,), Status.PUBLIC),
            order=RuleOrder.BEFORE,
            then=Adding((elements.ColumnIdentity,), Status.PUBLIC),
            join=("sequence_id",),
        ),
        Rule(
            name="a sequence exists before a default draws from it",
            reason="the first writer that knows the default calls for a value",
            first=Adding((elements.SequenceElement,), Status.PUBLIC),
            order=RuleOrder.BEFORE,
            then=Adding((elements.ColumnDefault,), Status.PUBLIC),
            join=(("sequence_id", "sequence_ids"),),
        ),
        Rule(
            name="a sequence goes after the identity that draws from it",
            reason="a writer that still draws would fail",
            first=Dropping((elements.ColumnIdentity,)),
            order=RuleOrder.BEFORE,
            then=Dropping((elements.SequenceElement,)),
            join=("sequence_id",),
        ),
        Rule(
            name="a sequence goes after the defaults that draw from it",
            reason="a writer that still draws would fail",
            first=Dropping((elements.ColumnDefault,)),
            order=RuleOrder.BEFORE,
            then=Dropping((elements.SequenceElement,)),
            join=(("sequence_ids", "sequence_id"),),
        ),
    ),
)
