"""CREATE VIEW, and what the views there are hold in place.

A view keeps the text of its query, and by id the relations and columns that the text names: an expansion shows
the text these columns only, so that a column added later does not turn up in a `*`, and under the names that they had,
so that they may be renamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from seachange import errors
from seachange.model.change import elements
from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.model.object_kind import VIEWS, ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.temporary import is_temporary
from seachange.model.statements import CreateView
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.lookup import refuse_taken
from seachange.planner.object_names import FoundObject

_READABLE = VIEWS | {ObjectKind.TABLE}


def create_view(draft: Draft, statement: CreateView) -> None:
    for column in statement.columns:
        if statement.columns.count(column) > 1:
            raise errors.DuplicateColumn(name=column)
    query = resolve_query(draft, statement)
    schema = draft.schema_of(statement.name)
    old = draft.find(statement.name) if statement.or_replace else None
    if old is not None:
        _replace_view(draft, old, query, statement.name)
        return
    refuse_taken(draft, ObjectKind.VIEW, schema, statement.name.name)
    id_ = DescriptorId(next(draft.ids))
    draft.add(elements.ViewElement(id_))
    draft.add(elements.NamespaceElement(id_, ObjectKind.VIEW, draft.database, schema, statement.name.name))
    draft.add(replace(query, view_id=id_))


def _replace_view(draft: Draft, found: FoundObject, query: elements.ViewQuery, name: RelationName) -> None:
    if found.kind is not ObjectKind.VIEW:
        raise errors.WrongObjectType(name=name, kind=ObjectKind.VIEW)
    old = draft.only(elements.ViewQuery, view_id=found.id)
    assert old is not None
    if old.columns and query.columns and query.columns[: len(old.columns)] != old.columns:
        raise errors.InvalidTableDefinition(name=name, detail="columns of a view keep their names and order")
    if _reads(draft, query, found.id):
        raise errors.InvalidObjectDefinition(detail=f'view "{name}" would read itself')
    draft.replace(old, replace(query, view_id=found.id))


def _reads(draft: Draft, query: elements.ViewQuery, id_: DescriptorId) -> bool:
    """Whether the query reads relation `id_`, directly or through other views."""
    pending, seen = list(query.relation_ids), set(query.relation_ids)
    while pending:
        relation = pending.pop()
        if relation == id_:
            return True
        draft.load(relation)
        for inner in draft.select(elements.ViewQuery, view_id=relation):
            pending += [r for r in inner.relation_ids if r not in seen]
            seen.update(inner.relation_ids)
    return False


def resolve_query(draft: Draft, statement: CreateView) -> elements.ViewQuery:
    """The query of a view that has no id yet. It is checked before the schema of the view."""
    relations = {name: _relation(draft, name) for name in statement.relations}
    used: dict[tuple[TableId, ColumnId], None] = {}
    for relation, column in statement.used:
        if relation is None:
            for each in relations.values():
                used.update(dict.fromkeys(_columns(draft, each, column)))
        else:
            found = list(_columns(draft, relations[relation], column))
            if column is not None and not found and not _is_view(draft, relations[relation]):
                raise errors.UndefinedColumn(name=column, relation=relation)
            used.update(dict.fromkeys(found))
    drawn_from = {name: _sequence(draft, name) for name in statement.sequences}
    if not is_temporary(draft.schema_of(statement.name)):
        _refuse_temporary(draft, relations)
    ids = tuple(dict.fromkeys([*relations.values(), *drawn_from.values()]))
    names = tuple((name.schema or "", name.name, id_) for name, id_ in (*relations.items(), *drawn_from.items()))
    columns = tuple(draft.column_name(*use) for use in used)
    return elements.ViewQuery(DescriptorId(0), statement.query, statement.columns, ids, tuple(used), names, columns)


def _relation(draft: Draft, name: RelationName) -> DescriptorId:
    known = name.schema is None or draft.has_schema(name.schema)
    found = draft.find(name) if known else None
    if found is None:
        raise errors.UndefinedTable(name=name)
    if found.kind is ObjectKind.SEQUENCE:
        raise errors.FeatureNotSupported(feature="a view of a sequence", instead="Views read tables and other views.")
    if found.kind not in _READABLE:
        raise errors.WrongObjectType(name=name, kind="table or view")
    return found.id


def _refuse_temporary(draft: Draft, relations: Mapping[RelationName, DescriptorId]) -> None:
    for name, id_ in relations.items():
        if is_temporary(draft.schema_named(id_)):
            detail = f"a view that is not temporary cannot read temporary relation {name}"
            raise errors.InvalidTableDefinition(name=name, detail=detail)


def _sequence(draft: Draft, name: RelationName) -> DescriptorId:
    found = draft.find(name)
    if found is None:
        raise errors.UndefinedTable(name=name)
    if found.kind is not ObjectKind.SEQUENCE:
        raise errors.WrongObjectType(name=name, kind="sequence")
    return found.id


def _is_view(draft: Draft, id_: DescriptorId) -> bool:
    return bool(draft.select(elements.ViewElement, view_id=id_))


def _columns(draft: Draft, id_: DescriptorId, name: str | None) -> Iterator[tuple[TableId, ColumnId]]:
    """The column of that name; all of them for a star. Those of a view are its own affair."""
    for label in draft.select(elements.ColumnName, table_id=id_):
        host = draft.column_element(id_, label.column_id)
        is_hidden = isinstance(host, elements.ColumnElement) and host.hidden
        if not is_hidden and name in (None, label.name):
            yield (id_, label.column_id)


def refuse_if_read(draft: Draft, id_: DescriptorId, doing: str, column_id: ColumnId | None = None) -> None:
    """Of what a view reads, the type stays the same: to change it the view has to be made again."""
    draft.load_connected(id_)
    if column_id is None:
        views = draft.select(elements.ViewQuery, relation_ids=id_)
    else:
        views = draft.select(elements.ViewQuery, column_uses=(id_, column_id))
    for view in views:
        raise errors.FeatureNotSupported(
            feature=f"{doing}, which view {draft.name_of(view.view_id)} reads,",
            instead="Drop the view, and create it again after the change.",
        )
