"""ADD, DROP, RENAME and VALIDATE CONSTRAINT; CHECK constraints."""

from __future__ import annotations

from collections.abc import Container

from seachange import errors
from seachange.model import statements
from seachange.model.change import elements
from seachange.model.change.targets import Goal
from seachange.model.ids import TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.states import State
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.drops import drop_check, drop_foreign_key, drop_index
from seachange.planner.builders.expression import bind_expression
from seachange.planner.builders.foreign_key import add_foreign_key, refuse_unseen_key
from seachange.planner.builders.index import build_key
from seachange.planner.builders.primary_key import add_primary_key, drop_primary_key
from seachange.planner.names import choose_name


def add_constraint(draft: Draft, table_id: TableId, action: statements.AddConstraint) -> None:
    match action.constraint:
        case statements.KeyDefinition() as key:
            add_key(draft, table_id, key)
        case rule:
            add_rule(draft, table_id, rule)


def add_key(draft: Draft, table_id: TableId, key: statements.KeyDefinition) -> None:
    # Another key of that name is an index, and found as a relation.
    if key.name is not None and draft.select(elements.ConstraintName, table_id=table_id, name=key.name):
        raise errors.DuplicateObject(kind="constraint", name=key.name)
    if key.using_index is not None:
        _take_over_index(draft, table_id, key)
    elif key.primary:
        add_primary_key(draft, table_id, key)
    else:
        build_key(draft, table_id, key)


def _take_over_index(draft: Draft, table_id: TableId, key: statements.KeyDefinition) -> None:
    assert key.using_index is not None
    found = draft.find(RelationName(draft.schema_named(table_id), key.using_index))
    if found is None or found.kind is not ObjectKind.INDEX or found.id != table_id:
        raise errors.UndefinedObject(kind="index", name=key.using_index)
    index = next(i for i in draft.indexes(table_id) if i.index_id == found.index_id)
    if draft.select(elements.KeyConstraint, table_id=table_id, index_id=index.index_id):
        detail = f'index "{key.using_index}" is already associated with a constraint'
        raise errors.NotInPrerequisiteState(detail=detail)
    if not isinstance(index, elements.UniqueIndex) or not _is_plain(draft, index):
        raise errors.WrongObjectType(name=key.using_index, kind="unique index of ascending columns over all rows")
    if key.primary:
        columns = tuple(draft.column_name(table_id, c) for c in index.key)
        add_primary_key(
            draft, table_id, statements.KeyDefinition(columns, key.name or key.using_index, primary=True), index
        )
        return
    draft.add(elements.KeyConstraint(table_id, index.index_id))
    if key.name is not None and key.name != key.using_index:
        _check_index_name_is_free(draft, table_id, key.name)
        draft.replace(draft.index_name(index), elements.IndexName(table_id, index.index_id, key.name))


def _is_plain(draft: Draft, index: elements.UniqueIndex) -> bool:
    computed = [draft.only(elements.ColumnGenerated, table_id=index.table_id, column_id=c) for c in index.key]
    virtual = any(generated is not None and generated.virtual for generated in computed)
    return index.where is None and not index.descending and not index.nulls_swapped and not virtual


def add_rule(draft: Draft, table_id: TableId, rule: statements.RuleDefinition) -> None:
    if rule.name is not None and rule.name in constraint_names(draft, table_id):
        raise errors.DuplicateObject(kind="constraint", name=rule.name)
    match rule:
        case statements.CheckDefinition():
            _add_check(draft, table_id, rule)
        case statements.ForeignKeyDefinition():
            add_foreign_key(draft, table_id, rule, constraint_names(draft, table_id))


def _add_check(draft: Draft, table_id: TableId, rule: statements.CheckDefinition) -> None:
    bound = bind_expression(draft, table_id, rule.pieces, rule.columns)
    names = list(dict.fromkeys(rule.columns))
    taken = constraint_names(draft, table_id)
    name = rule.name or choose_name(draft.name_of(table_id), names if len(names) == 1 else [], "check", taken)
    id_ = draft.take_constraint_id(table_id)
    check = elements.CheckConstraint(table_id, id_, bound.text, bound.columns, rule.not_valid)
    draft.add(check, Goal.ENFORCED if rule.not_valid else Goal.PUBLIC)
    draft.add(elements.ConstraintName(table_id, id_, name))


class _ConstraintNames:
    """Those of a table, looked up one by one: a statement may add a thousand constraints."""

    def __init__(self, draft: Draft, table_id: TableId) -> None:
        self._draft = draft
        self._table_id = table_id

    def __contains__(self, name: object) -> bool:
        return _find(self._draft, self._table_id, str(name)) is not None


def constraint_names(draft: Draft, table_id: TableId) -> Container[str]:
    return _ConstraintNames(draft, table_id)


def _find(draft: Draft, table_id: TableId, name: str) -> elements.Constraint | elements.KeyConstraint | None:
    for label in draft.select(elements.ConstraintName, table_id=table_id, name=name):
        place = {"table_id": table_id, "constraint_id": label.constraint_id}
        check = draft.only(elements.CheckConstraint, **place)
        return check or draft.only(elements.ForeignKeyElement, **place)
    for index in draft.select(elements.IndexName, table_id=table_id, name=name):
        return draft.only(elements.KeyConstraint, table_id=table_id, index_id=index.index_id)
    return None


def existing_constraint(draft: Draft, table_id: TableId, name: str) -> elements.Constraint | elements.KeyConstraint:
    found = _find(draft, table_id, name)
    if found is None:
        raise errors.UndefinedObject(kind="constraint", name=name)
    return found


def drop_constraint(draft: Draft, table_id: TableId, action: statements.DropConstraint) -> None:
    found = _find(draft, table_id, action.name)
    match found:
        case None:
            if not action.if_exists:
                raise errors.UndefinedObject(kind="constraint", name=action.name)
            draft.notices.append(
                f'constraint "{action.name}" of relation "{draft.name_of(table_id)}" does not exist, skipping'
            )
        case elements.CheckConstraint():
            drop_check(draft, found)
        case elements.ForeignKeyElement():
            drop_foreign_key(draft, found)
        case elements.KeyConstraint():
            index = next(i for i in draft.indexes(table_id) if i.index_id == found.index_id)
            what = f"constraint {action.name} on table {draft.name_of(table_id)}"
            if isinstance(index, elements.PrimaryIndex):
                drop_primary_key(draft, table_id, action.cascade, what)
                return
            drop_index(draft, index, action.cascade, what)


def rename_constraint(draft: Draft, table_id: TableId, action: statements.RenameConstraint) -> None:
    found = existing_constraint(draft, table_id, action.name)
    if action.new_name in constraint_names(draft, table_id):
        raise errors.DuplicateObject(kind="constraint", name=action.new_name)
    match found:
        case elements.KeyConstraint(index_id=index_id):
            _check_index_name_is_free(draft, table_id, action.new_name)
            old = elements.IndexName(table_id, index_id, action.name)
            draft.replace(old, elements.IndexName(table_id, index_id, action.new_name))
        case _:
            id_ = found.constraint_id
            label = elements.ConstraintName(table_id, id_, action.name)
            draft.replace(label, elements.ConstraintName(table_id, id_, action.new_name))


def _check_index_name_is_free(draft: Draft, table_id: TableId, name: str) -> None:
    if name in draft.relations_in(draft.schema_named(table_id)):
        raise errors.DuplicateTable(name=name)


def validate_constraint(draft: Draft, table_id: TableId, action: statements.ValidateConstraint) -> None:
    found = existing_constraint(draft, table_id, action.name)
    if isinstance(found, elements.KeyConstraint):
        raise errors.WrongObjectType(name=action.name, kind="foreign key or check constraint")
    if draft.state(found) is State.ENFORCED:
        draft.promote(found)
        if isinstance(found, elements.ForeignKeyElement):
            if found not in draft.implied:
                refuse_unseen_key(draft, table_id, draft.index_by_id(found.parent_id, found.parent_index_id))
            draft.promote(elements.ForeignKeyParent(found.parent_id, table_id, found.constraint_id))
