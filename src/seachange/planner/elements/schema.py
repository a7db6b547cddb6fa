"""Databases and schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.targets import Status
from seachange.model.object_kind import ObjectKind
from seachange.model.schema import objects
from seachange.model.schema.objects import Descriptor
from seachange.model.states import State
from seachange.planner.elements.rule import Adding, Dropping, Rule, RuleOrder
from seachange.planner.elements.spec import ElementNaming, ElementSpec, ObjectForm, Parts, Topic
from seachange.planner.lifecycles.seachange import SIMPLE


def _no_parts(descriptor: Descriptor) -> Parts:
    return {}


def _put_database(before: objects.Database | None, parts: Mapping[Element, State]) -> dict[str, Any]:
    return {"settings": before.settings if before is not None else ()}


def _put_schema(before: objects.Schema | None, parts: Mapping[Element, State]) -> dict[str, Any]:
    return {}


SCHEMA = Topic(
    specs=(
        ElementSpec(
            elements.DatabaseElement,
            SIMPLE,
            "database",
            ElementNaming.OWN,
            form=ObjectForm(ObjectKind.DATABASE, objects.Database, _no_parts, _put_database),
        ),
        ElementSpec(
            elements.SchemaElement,
            SIMPLE,
            "schema",
            ElementNaming.OWN,
            form=ObjectForm(ObjectKind.SCHEMA, objects.Schema, _no_parts, _put_schema),
        ),
    ),
    rules=(
        Rule(
            name="a database exists before what is in it",
            reason="a name is looked up through its database",
            first=Adding((elements.NamespaceElement,), Status.PUBLIC),
            order=RuleOrder.BEFORE,
            then=Adding((elements.NamespaceElement,), Status.PUBLIC),
            join=(("database_named", "database_used"),),
        ),
        Rule(
            name="a schema exists before what is in it",
            reason="a name is looked up through its schema",
            first=Adding((elements.NamespaceElement,), Status.PUBLIC),
            order=RuleOrder.BEFORE,
            then=Adding((elements.NamespaceElement,), Status.PUBLIC),
            join=(("schema_named", "schema_used"),),
        ),
        Rule(
            name="a schema goes after what is in it",
            reason="an object without a schema cannot be named",
            first=Dropping((elements.NamespaceElement,)),
            order=RuleOrder.BEFORE,
            then=Dropping((elements.NamespaceElement,)),
            join=(("schema_used", "schema_named"),),
        ),
        Rule(
            name="a database goes after what is in it",
            reason="an object without a database cannot be reached",
            first=Dropping((elements.NamespaceElement,)),
            order=RuleOrder.BEFORE,
            then=Dropping((elements.NamespaceElement,)),
            join=(("database_used", "database_named"),),
        ),
    ),
)
