"""Objects by kind and name, and the errors of names that lead nowhere."""

from __future__ import annotations

from collections.abc import Callable

from seachange import errors
from seachange.model.change import elements
from seachange.model.ids import DescriptorId
from seachange.model.object_kind import VIEWS, ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.access import EVERYBODYS, PUBLIC_ROLE
from seachange.model.schema.objects import DEFAULT_DATABASE, DEFAULT_SCHEMA
from seachange.planner.builders.draft import Draft
from seachange.planner.object_names import FoundObject

# Objects that are in no schema.
SPACES = frozenset({ObjectKind.SCHEMA, ObjectKind.DATABASE})
# What exists in every catalog, and has a descriptor only once there is something to say of it.
ALWAYS: dict[ObjectKind, str] = {ObjectKind.SCHEMA: DEFAULT_SCHEMA, ObjectKind.DATABASE: DEFAULT_DATABASE}

Kinds = frozenset[ObjectKind]


def missing(kind: ObjectKind, name: object) -> errors.Error:
    found = _MISSING.get(kind)
    return found(name=name) if found is not None else errors.UndefinedObject(kind=kind, name=name)


_MISSING: dict[ObjectKind, Callable[..., errors.Error]] = {
    ObjectKind.TABLE: errors.UndefinedTable,
    ObjectKind.VIEW: errors.UndefinedTable,
    ObjectKind.MATERIALIZED_VIEW: errors.UndefinedTable,
    ObjectKind.SEQUENCE: errors.UndefinedTable,
    ObjectKind.INDEX: errors.UndefinedTable,
    ObjectKind.SCHEMA: errors.InvalidSchemaName,
    ObjectKind.DATABASE: errors.InvalidDatabaseName,
}


def find_object(
    draft: Draft, kind: ObjectKind, name: RelationName, if_exists: bool = False, accepts: Kinds = frozenset()
) -> FoundObject | None:
    """The object of that name and kind, or of one of the kinds that are accepted as well. None, with a notice: there is
    none, and there need not be one."""
    found = _find(draft, kind, name, if_exists)
    if found is None:
        if not if_exists:
            raise missing(kind, name)
        draft.notices.append(f'{kind} "{name}" does not exist, skipping')
        return None
    if found.kind is not kind and found.kind not in accepts:
        raise errors.WrongObjectType(name=name, kind=kind)
    return found


def existing(draft: Draft, kind: ObjectKind, name: RelationName, accepts: Kinds = frozenset()) -> FoundObject:
    found = find_object(draft, kind, name, accepts=accepts)
    assert found is not None
    return found


def _find(draft: Draft, kind: ObjectKind, name: RelationName, if_exists: bool) -> FoundObject | None:
    if kind in SPACES:
        return find_space(draft, kind, name.name)
    if if_exists and name.schema is not None and not draft.has_schema(name.schema):
        return None
    return find_type(draft, name) if kind is ObjectKind.TYPE else draft.find(name)


def find_type(draft: Draft, name: RelationName) -> FoundObject | None:
    """A user-defined type. The rows of a table or view are of a type of its name, which is found as what it
    is the type of."""
    for schema in draft.schemas_of(name):
        found = draft.directory.find_type(schema, name.name)
        if found is not None:
            draft.load(found.id)
            return found
    relation = draft.find(name)
    return relation if relation is not None and relation.kind in _WITH_ROW_TYPE else None


_WITH_ROW_TYPE = VIEWS | {ObjectKind.TABLE}


def find_space(draft: Draft, kind: ObjectKind, name: str) -> FoundObject | None:
    """A schema or database. The one that is always there gets its descriptor now."""
    found = draft.directory.find_space(kind, name)
    if found is None and name == ALWAYS[kind]:
        id_ = add_space(draft, kind, name)
        if kind is ObjectKind.SCHEMA:
            # Unlike others, everybody may use it from the start.
            draft.add(elements.Privileges(id_, PUBLIC_ROLE, ("USAGE",)))
        found = draft.directory.find_space(kind, name)
    if found is not None:
        draft.load(found.id)
    return found


def add_space(draft: Draft, kind: ObjectKind, name: str) -> DescriptorId:
    id_ = DescriptorId(next(draft.ids))
    if kind is ObjectKind.SCHEMA:
        draft.add(elements.SchemaElement(id_))
        draft.add(elements.NamespaceElement(id_, kind, draft.database, "", name))
    else:
        draft.add(elements.DatabaseElement(id_))
        draft.add(elements.NamespaceElement(id_, kind, "", "", name))
    if kind in EVERYBODYS:
        draft.add(elements.Privileges(id_, PUBLIC_ROLE, EVERYBODYS[kind]))
    return id_


def refuse_taken(draft: Draft, kind: ObjectKind, schema: str, name: str) -> None:
    """`schema` is where an object of that kind shall be found under that name. A table or view takes the name of a type
    too, that of its rows."""
    relation = draft.directory.find(schema, name)
    if relation is not None and kind is not ObjectKind.TYPE:
        raise errors.DuplicateTable(name=name)
    is_row_type = relation is not None and relation.kind in _WITH_ROW_TYPE
    is_type = draft.directory.find_type(schema, name) is not None
    if (is_row_type or is_type) and (kind is ObjectKind.TYPE or kind in _WITH_ROW_TYPE):
        raise errors.DuplicateObject(kind="type", name=name)
