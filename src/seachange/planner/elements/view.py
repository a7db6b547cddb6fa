"""Views, and what they read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.targets import Status
from seachange.model.object_kind import ObjectKind
from seachange.model.schema import objects
from seachange.model.states import State
from seachange.planner.elements.rule import COLUMNS, Adding, Dropping, Rule, RuleOrder
from seachange.planner.elements.spec import (
    ElementNaming,
    ElementSpec,
    ObjectForm,
    Parts,
    Topic,
    common_fields,
    copy_fields,
    only,
)
from seachange.planner.lifecycles.seachange import SIMPLE


def _take(view: objects.View) -> Parts:
    return {copy_fields(view, elements.ViewQuery, view_id=view.id): State.PUBLIC}


def _put(before: objects.View | None, parts: Mapping[Element, State]) -> dict[str, Any]:
    return common_fields(only(elements.ViewQuery, parts), objects.View)


VIEW = Topic(
    specs=(
        ElementSpec(elements.ViewQuery, SIMPLE, "query of view", known_outside=True),
        ElementSpec(elements.ViewRows, SIMPLE, "rows of materialized view", since=2),
        ElementSpec(
            elements.ViewElement,
            SIMPLE,
            "view",
            ElementNaming.OWN,
            form=ObjectForm(ObjectKind.VIEW, objects.View, _take, _put),
        ),
    ),
    rules=(
        Rule(
            name="a table exists before a view reads it",
            reason="the query must be valid in every version",
            first=Adding((elements.TableElement,), Status.PUBLIC),
            order=RuleOrder.BEFORE,
            then=Adding((elements.ViewQuery,), Status.PUBLIC),
            join=(("table_id", "relation_ids"),),
        ),
        Rule(
            name="a view exists before another reads it",
            reason="the query must be valid in every version",
            first=Adding((elements.ViewElement,), Status.PUBLIC),
            order=RuleOrder.BEFORE,
            then=Adding((elements.ViewQuery,), Status.PUBLIC),
            join=(("view_id", "relation_ids"),),
        ),
        Rule(
            name="a view goes with the table that it reads",
            reason="the query must be valid in every version",
            first=Dropping((elements.ViewQuery,)),
            order=RuleOrder.WITH,
            then=Dropping((elements.TableElement,)),
            join=(("relation_ids", "table_id"),),
        ),
        Rule(
            name="a materialized view goes with its query",
            reason="without it, it would be a table that can be written to",
            first=Dropping((elements.ViewQuery,)),
            order=RuleOrder.WITH,
            then=Dropping((elements.TableElement,)),
            join=(("view_id", "table_id"),),
        ),
        Rule(
            name="a view goes with the view that it reads",
            reason="the query must be valid in every version",
            first=Dropping((elements.ViewQuery,)),
            order=RuleOrder.WITH,
            then=Dropping((elements.ViewElement,)),
            join=(("relation_ids", "view_id"),),
        ),
        Rule(
            name="a view goes with the columns that it reads",
            reason="the query must be valid in every version",
            first=Dropping((elements.ViewQuery,)),
            order=RuleOrder.WITH,
            then=Dropping(COLUMNS),
            join=(("column_uses", "column_place"),),
        ),
    ),
)
