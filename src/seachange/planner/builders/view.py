"""CREATE VIEW, and what the views there are hold in place.

A view keeps the text of its query, and by id the relations and columns that the text names: whoever expands it shows
the text these columns only, so that a column added later does not turn up in a `*`. What the text names must keep its
name while the view is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from seachange import errors
from seachange.model import elements
from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.model.object_statements import CreateView, ObjectKind
from seachange.model.relation import RelationName
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.lookup import refuse_taken

_READABLE = frozenset({ObjectKind.TABLE, ObjectKind.VIEW})


def create_view(draft: Draft, statement: CreateView) -> None:
    schema = draft.schema_of(statement.name)
    name = statement.name.name
    for column in statement.columns:
        if statement.columns.count(column) > 1:
            raise errors.DuplicateColumn(name=column)
    old = draft.find(statement.name) if statement.or_replace else None
    if old is not None:
        _replace_view(draft, old.kind, old.id, statement)
        return
    refuse_taken(draft, ObjectKind.VIEW, schema, name)
    id_ = DescriptorId(next(draft.ids))
    query = _resolve(draft, id_, statement)
    draft.add(elements.View(id_))
    draft.add(elements.Namespace(id_, ObjectKind.VIEW, draft.database, schema, name))
    draft.add(query)


def _replace_view(draft: Draft, kind: ObjectKind, id_: DescriptorId, statement: CreateView) -> None:
    if kind is not ObjectKind.VIEW:
        raise errors.WrongObjectType(name=statement.name, kind=ObjectKind.VIEW)
    old = draft.only(elements.ViewQuery, view_id=id_)
    assert old is not None
    new = _resolve(draft, id_, statement)
    if old.columns and new.columns and new.columns[: len(old.columns)] != old.columns:
        raise errors.InvalidTableDefinition(name=statement.name, detail="columns of a view keep their names and order")
    if _reads(draft, new, id_):
        raise errors.InvalidObjectDefinition(detail=f'view "{statement.name}" would read itself')
    draft.replace(old, new)


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


def _resolve(draft: Draft, id_: DescriptorId, statement: CreateView) -> elements.ViewQuery:
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
    return elements.ViewQuery(
        id_, statement.query, statement.columns, tuple(dict.fromkeys(relations.values())), tuple(used)
    )


def _relation(draft: Draft, name: RelationName) -> DescriptorId:
    known = name.schema is None or draft.has_schema(name.schema)
    found = draft.find(name) if known else None
    if found is None:
        raise errors.UndefinedTable(name=name)
    if found.kind not in _READABLE:
        raise errors.WrongObjectType(name=name, kind="table or view")
    return found.id


def _is_view(draft: Draft, id_: DescriptorId) -> bool:
    return bool(draft.select(elements.View, view_id=id_))


def _columns(draft: Draft, id_: DescriptorId, name: str | None) -> Iterator[tuple[TableId, ColumnId]]:
    """The column of that name; all of them for a star. Those of a view are its own affair."""
    for label in draft.select(elements.ColumnName, table_id=id_):
        host = draft.column_element(id_, label.column_id)
        is_hidden = isinstance(host, elements.Column) and host.hidden
        if not is_hidden and name in (None, label.name):
            yield (id_, label.column_id)


def refuse_if_read(draft: Draft, id_: DescriptorId, doing: str, column_id: ColumnId | None = None) -> None:
    """The text of a view names what it reads: to change the name the view has to be made again."""
    draft.load_all()
    if column_id is None:
        views = draft.select(elements.ViewQuery, relation_ids=id_)
    else:
        views = draft.select(elements.ViewQuery, column_uses=(id_, column_id))
    for view in views:
        raise errors.FeatureNotSupported(
            feature=f"{doing}, which view {draft.name_of(view.view_id)} reads,",
            instead="Drop the view and create it again after the change, in the same transaction.",
        )
