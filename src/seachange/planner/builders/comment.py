"""COMMENT ON."""

from __future__ import annotations

from seachange import errors
from seachange.model.change import elements
from seachange.model.ids import DescriptorId
from seachange.model.object_kind import VIEWS, ObjectKind
from seachange.model.statements import CommentOn
from seachange.planner.builders.constraint import existing_constraint
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.lookup import existing

Part = tuple[ObjectKind, int]


def comment_on(draft: Draft, statement: CommentOn) -> None:
    """An empty text takes the comment away, as in PostgreSQL."""
    id_, part = _place(draft, statement)
    old = next((c for c in draft.select(elements.Comment, descriptor_id=id_) if c.part == part), None)
    if statement.text:
        draft.replace(old, elements.Comment(id_, statement.text, part))
    elif old is not None:
        draft.drop(old)


def _place(draft: Draft, statement: CommentOn) -> tuple[DescriptorId, Part | None]:
    match statement.kind:
        case ObjectKind.COLUMN:
            assert statement.part is not None
            found = existing(draft, ObjectKind.TABLE, statement.name, VIEWS)
            if found.kind is ObjectKind.VIEW:
                return found.id, (ObjectKind.COLUMN, _place_in_view(draft, found.id, statement.part))
            return found.id, (ObjectKind.COLUMN, draft.column(found.id, statement.part))
        case ObjectKind.CONSTRAINT:
            assert statement.part is not None
            table_id = draft.table(statement.name)
            constraint = existing_constraint(draft, table_id, statement.part)
            # A key and its index are one thing with one name; they share a comment.
            if isinstance(constraint, elements.KeyConstraint):
                return table_id, (ObjectKind.INDEX, constraint.index_id)
            return table_id, (ObjectKind.CONSTRAINT, constraint.constraint_id)
        case ObjectKind.INDEX:
            found = existing(draft, ObjectKind.INDEX, statement.name)
            assert found.index_id is not None
            return found.id, (ObjectKind.INDEX, found.index_id)
        case kind:
            return existing(draft, kind, statement.name).id, None


def _place_in_view(draft: Draft, view_id: DescriptorId, name: str) -> int:
    """Columns of a view have no ids; those that it has stay where they are."""
    query = draft.only(elements.ViewQuery, view_id=view_id)
    assert query is not None
    if name not in query.columns:
        raise errors.UndefinedColumn(name=name, relation=draft.name_of(view_id))
    return query.columns.index(name) + 1
