"""Databases, schemas, sequences, types and views taken apart and put together again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.object_kind import ObjectKind
from seachange.model.schema import objects
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor
from seachange.model.states import State
from seachange.planner.access_parts import compose_access, decompose_access
from seachange.planner.table_parts import Parts, compose_table, decompose_table

E = TypeVar("E")


_KINDS: dict[type[Descriptor], ObjectKind] = {
    Table: ObjectKind.TABLE,
    objects.Sequence: ObjectKind.SEQUENCE,
    objects.EnumType: ObjectKind.TYPE,
    objects.View: ObjectKind.VIEW,
}


def namespace_of(descriptor: Descriptor) -> elements.NamespaceElement:
    """The entry under which an object is found."""
    match descriptor:
        case objects.Database():
            return elements.NamespaceElement(descriptor.id, ObjectKind.DATABASE, "", "", descriptor.name)
        case objects.Schema():
            return elements.NamespaceElement(descriptor.id, ObjectKind.SCHEMA, descriptor.database, "", descriptor.name)
        case objects.Role():
            raise errors.Bug(detail=f"role {descriptor.name} has no place among what is planned")
        case _:
            kind = _KINDS[type(descriptor)]
            return elements.NamespaceElement(
                descriptor.id, kind, descriptor.database, descriptor.schema, descriptor.name
            )


def decompose(descriptor: Descriptor) -> Parts:
    own: list[Element] = []
    match descriptor:
        case Table():
            return decompose_table(descriptor)
        case objects.Role():
            # Raises.
            namespace_of(descriptor)
        case objects.Database(id=id_):
            own = [elements.DatabaseElement(id_)]
        case objects.Schema(id=id_):
            own = [elements.SchemaElement(id_)]
        case objects.Sequence(id=id_):
            own = [elements.SequenceElement(id_), *_sequence(descriptor)]
        case objects.EnumType(id=id_):
            own = [elements.EnumTypeElement(id_)]
            for value in descriptor.values:
                own.append(elements.EnumValue(id_, value.id, value.rank, value.held))
                own.append(elements.EnumLabel(id_, value.id, value.label))
        case objects.View(id=id_):
            query = elements.ViewQuery(
                id_,
                descriptor.query,
                descriptor.columns,
                descriptor.relation_ids,
                descriptor.column_uses,
                descriptor.names,
                descriptor.column_names,
                descriptor.types,
            )
            own = [elements.ViewElement(id_), query]
    own.insert(1, namespace_of(descriptor))
    return dict.fromkeys(own, State.PUBLIC) | decompose_access(descriptor.id, descriptor.access)


def _sequence(sequence: objects.Sequence) -> list[Element]:
    found: list[Element] = [
        elements.SequenceSettings(
            sequence.id,
            sequence.type,
            sequence.increment,
            sequence.minimum,
            sequence.maximum,
            sequence.start,
            sequence.cache,
            sequence.cycle,
        )
    ]
    if sequence.owner is not None:
        found.append(elements.SequenceOwnerElement(sequence.id, *sequence.owner))
    if sequence.restart is not None:
        found.append(elements.SequenceStart(sequence.id, sequence.restart, sequence.run))
    return found


# Together again.


def compose(before: Descriptor | None, parts: Mapping[Element, State]) -> Descriptor | None:
    """The next version of an object; None if it is gone."""
    for element in parts:
        if isinstance(element, elements.TableElement):
            assert before is None or isinstance(before, Table)
            return compose_table(before, parts)
        build = _BUILD.get(type(element))
        if build is not None:
            version = before.version + 1 if before is not None else 1
            made = build(element, version, parts)
            if isinstance(made, objects.EnumType) and isinstance(before, objects.EnumType):
                made = replace(made, next_value_id=max(made.next_value_id, before.next_value_id))
            if isinstance(made, objects.Database) and isinstance(before, objects.Database):
                made = replace(made, settings=before.settings)
            return made
    return None


def _only(kind: type[E], parts: Mapping[Element, State]) -> E:
    (found,) = [element for element in parts if isinstance(element, kind)]
    return found


def _first(kind: type[E], parts: Mapping[Element, State]) -> E | None:
    return next((element for element in parts if isinstance(element, kind)), None)


def _database(element: elements.DatabaseElement, version: int, parts: Mapping[Element, State]) -> Descriptor:
    name = _only(elements.NamespaceElement, parts).name
    return objects.Database(element.descriptor_id, version, name, compose_access(parts))


def _schema(element: elements.SchemaElement, version: int, parts: Mapping[Element, State]) -> Descriptor:
    entry = _only(elements.NamespaceElement, parts)
    return objects.Schema(element.descriptor_id, version, entry.name, entry.database, compose_access(parts))


def _compose_sequence(element: elements.SequenceElement, version: int, parts: Mapping[Element, State]) -> Descriptor:
    entry = _only(elements.NamespaceElement, parts)
    settings = _only(elements.SequenceSettings, parts)
    owner = _first(elements.SequenceOwnerElement, parts)
    start = _first(elements.SequenceStart, parts)
    return objects.Sequence(
        element.sequence_id,
        version,
        entry.schema,
        entry.name,
        settings.type,
        settings.increment,
        settings.minimum,
        settings.maximum,
        settings.start,
        settings.cache,
        settings.cycle,
        (owner.table_id, owner.column_id) if owner is not None else None,
        start.start if start is not None else None,
        start.run if start is not None else 0,
        entry.database,
        compose_access(parts),
    )


def _enum(element: elements.EnumTypeElement, version: int, parts: Mapping[Element, State]) -> Descriptor:
    entry = _only(elements.NamespaceElement, parts)
    labels = {e.value_id: e.label for e in parts if isinstance(e, elements.EnumLabel)}
    values = [_value(e, labels[e.value_id]) for e in parts if isinstance(e, elements.EnumValue)]
    values.sort(key=lambda value: value.rank)
    following = max((value.id for value in values), default=0) + 1
    return objects.EnumType(
        element.type_id,
        version,
        entry.schema,
        entry.name,
        tuple(values),
        following,
        entry.database,
        compose_access(parts),
    )


def _value(element: elements.EnumValue, label: str) -> objects.Value:
    stored = element.stored if element.stored != label else ""
    return objects.Value(element.value_id, element.rank, label, stored)


def _view(element: elements.ViewElement, version: int, parts: Mapping[Element, State]) -> Descriptor:
    entry = _only(elements.NamespaceElement, parts)
    query = _only(elements.ViewQuery, parts)
    return objects.View(
        element.view_id,
        version,
        entry.schema,
        entry.name,
        query.query,
        query.columns,
        query.relation_ids,
        query.column_uses,
        query.names,
        query.column_names,
        entry.database,
        compose_access(parts),
        query.types,
    )


_BUILD: dict[type[Element], Callable[[Any, int, Mapping[Element, State]], Descriptor]] = {
    elements.DatabaseElement: _database,
    elements.SchemaElement: _schema,
    elements.SequenceElement: _compose_sequence,
    elements.EnumTypeElement: _enum,
    elements.ViewElement: _view,
}
