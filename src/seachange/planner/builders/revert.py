"""REVERT CHANGE: a published change is taken out of the definitions of now.

**Invariant:** nothing is reverted in part: what cannot be brought back is refused (0A000) before anything is published,
and so is a change that later ones depend on, unless CASCADE reverts these too.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NoReturn

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.change.targets import Goal
from seachange.model.ids import ConstraintId, IndexId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.descriptor import Table
from seachange.model.statements import RevertChange
from seachange.model.states import State
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.drops import drop_object, drop_table
from seachange.planner.builders.lookup import refuse_taken
from seachange.planner.builders.reversal import Parts, Reversal, revert, slot_of
from seachange.planner.builders.undrop import bring_back_table
from seachange.planner.elements.registry import DROP_ORDER
from seachange.planner.known_schema import PastChange

_EXPRESSION = ("another expression of a generated column", "Use ALTER COLUMN ... SET EXPRESSION.")
_RESTART = ("a restarted sequence", "ALTER SEQUENCE ... RESTART WITH sets the next value.")
_DATABASE = ("a created or dropped database", "DROP DATABASE drops one; a backup has the data of a dropped one.")
# What a revert does not do: the kind of element, what its change was, and what to do instead. First, what came with the
# change that is reverted, then what went with it.
_NOT_TAKEN_AWAY: dict[type[Element], tuple[str, str]] = {
    elements.ColumnGenerated: _EXPRESSION,
    elements.EnumValue: ("a new value of an enum type", "ALTER TYPE ... DROP VALUE drops one that no row has."),
    elements.SequenceStart: _RESTART,
    elements.DatabaseElement: _DATABASE,
}
_NOT_PUT_BACK: dict[type[Element], tuple[str, str]] = {
    elements.ColumnElement: ("a dropped column", "Add it again; seachange.as_of reads its values from the history."),
    elements.PrimaryIndex: ("a rewritten or emptied table", "seachange.as_of reads its rows from the history."),
    elements.ColumnGenerated: _EXPRESSION,
    elements.SequenceStart: _RESTART,
    elements.DatabaseElement: _DATABASE,
}
_WITH_TABLE = (
    "a dropped table, together with changes of others",
    "UNDROP TABLE brings the table back; change the others.",
)
# What takes a job, which cannot be in the transaction that brings a table back.
_BUILT = (
    elements.SecondaryIndex,
    elements.UniqueIndex,
    elements.CheckConstraint,
    elements.ForeignKeyElement,
    elements.ColumnNotNull,
)
_TYPE = ("another type", "ALTER COLUMN ... TYPE converts the values.")
_VALIDATION = ("a validation", "All rows meet the constraint; it can be dropped.")
_TWO_PARTS = ("a statement of which a part was published before the rest", "Revert the parts by statements.")


def revert_change(draft: Draft, statement: RevertChange) -> None:
    history = [change for change in draft.catalog.history if change.id >= statement.change_id]
    if not history or history[0].id != statement.change_id:
        raise errors.UndefinedObject(kind="change", name=str(statement.change_id))
    reversal = revert(draft.parts(), history, statement.cascade)
    if reversal.dependents:
        raise _refuse_dependents(statement.change_id, reversal.dependents)
    if not reversal.is_whole:
        raise errors.NotInPrerequisiteState(
            detail=f"what change {statement.change_id} did has been changed since, by nothing that the history has"
        )
    for change in reversal.changes:
        if change.is_double:
            _refuse(change, _TWO_PARTS)
        if change.id != statement.change_id:
            draft.notices.append(f"change {change.id} is reverted too: {change.statement}")
    _check_supported(reversal)
    _take_away(draft, reversal)
    _put_back(draft, reversal)


def _refuse_dependents(change_id: int, dependents: Collection[PastChange]) -> errors.Error:
    lines = "\n".join(f"change {each.id} ({each.statement}) depends on change {change_id}" for each in dependents)
    return errors.DependentChanges(change=change_id, dependents=lines)


def _refuse(change: PastChange, reason: tuple[str, str]) -> NoReturn:
    what, instead = reason
    raise errors.FeatureNotSupported(feature=f"reverting change {change.id}: {what}", instead=instead)


def _check_supported(reversal: Reversal) -> None:
    """Of an object that goes or comes as a whole, the parts do not matter."""
    first = reversal.changes[-1]
    tables = {e.table_id for e in reversal.back if isinstance(e, elements.TableElement)}
    if tables and any(isinstance(e, _BUILT) and e.table_id not in tables for e in reversal.back):
        _refuse(first, _WITH_TABLE)
    types = {slot_of(e) for e in reversal.gone if isinstance(e, elements.ColumnType)}
    for parts, refused in ((reversal.gone, _NOT_TAKEN_AWAY), (reversal.back, _NOT_PUT_BACK)):
        whole = {descriptor_of(e) for e in parts if isinstance(e, elements.AnyObject)}
        for element in parts:
            is_part = descriptor_of(element) not in whole and not _is_key(element, parts)
            if type(element) in refused and (is_part or isinstance(element, elements.DatabaseElement)):
                _refuse(first, refused[type(element)])
            if parts is reversal.back and isinstance(element, elements.ColumnType) and slot_of(element) in types:
                _refuse(first, _TYPE)
            if element in reversal.gone and element in reversal.back:
                _refuse(first, _VALIDATION)


def _is_key(element: Element, parts: Parts) -> bool:
    """Whether it is a hidden virtual column, the key of an index that is an expression, or goes with such a column."""
    match element:
        case elements.ColumnGenerated(table_id=table_id, column_id=column_id):
            columns = (e for e in parts if isinstance(e, elements.ColumnElement))
            return any(column.column_place == (table_id, column_id) for column in columns)
        case elements.ColumnElement(hidden=True):
            keys = (e for e in parts if isinstance(e, elements.ColumnGenerated) and e.virtual)
            return any((key.table_id, key.column_id) == element.column_place for key in keys)
        case _:
            return False


def _take_away(draft: Draft, reversal: Reversal) -> None:
    order = {kind: number for number, kind in enumerate(DROP_ORDER)}
    tables = {e.table_id for e in reversal.gone if isinstance(e, elements.TableElement)}
    for whole in [e for e in reversal.gone if isinstance(e, elements.AnyObject)]:
        if isinstance(whole, elements.TableElement):
            drop_table(draft, whole.table_id)
        else:
            drop_object(draft, descriptor_of(whole))
    there = draft.parts()
    for element in sorted(reversal.gone, key=lambda e: order[type(e)]):
        if element in there and descriptor_of(element) not in tables:
            draft.drop(element)


def _put_back(draft: Draft, reversal: Reversal) -> None:
    tables = {e.table_id for e in reversal.back if isinstance(e, elements.TableElement)}
    for table in [kept for kept in draft.catalog.dropped if isinstance(kept, Table) and kept.id in tables]:
        bring_back_table(draft, table)
    fresh = _FreshIds(draft, tables)
    for element in reversal.back:
        if isinstance(element, elements.AnyIndex) and element.table_id not in tables:
            fresh.take_index(element.index_id)
    there = draft.parts()
    for element, state in reversal.back.items():
        if descriptor_of(element) in tables or element in there:
            continue
        if isinstance(element, elements.IndexName):
            refuse_taken(draft, ObjectKind.INDEX, draft.schema_named(element.table_id), element.name)
        goal = Goal.ENFORCED if state is State.ENFORCED else Goal.PUBLIC
        draft.add(fresh.renumber(element), goal)


class _FreshIds:
    """Ids of indexes and constraints are not used twice: what comes back has others, and is built and validated again.
    `whole` are the tables that come back as they were, with the ids that they had."""

    def __init__(self, draft: Draft, whole: Collection[TableId]) -> None:
        self._draft = draft
        self._whole = whole
        self._indexes: dict[IndexId, IndexId] = {}
        self._constraints: dict[tuple[TableId, ConstraintId], ConstraintId] = {}

    def renumber(self, element: Element) -> Element:
        match element:
            case elements.ForeignKeyElement(table_id=table_id, constraint_id=id_, parent_index_id=parent):
                parent = self._indexes.get(parent, parent)
                return replace(element, constraint_id=self._constraint(table_id, id_), parent_index_id=parent)
            case elements.ForeignKeyParent() if element.table_id in self._whole:
                return element
            case elements.CheckConstraint() | elements.ConstraintName() | elements.ForeignKeyParent():
                return replace(element, constraint_id=self._constraint(element.table_id, element.constraint_id))
            case elements.SecondaryIndex() | elements.UniqueIndex() | elements.IndexName():
                return replace(element, index_id=self._indexes[element.index_id])
            case elements.IndexData() | elements.KeyConstraint():
                return replace(element, index_id=self._indexes[element.index_id])
            case elements.Comment(part=(ObjectKind.INDEX as kind, id_)):
                return replace(element, part=(kind, self._indexes.get(IndexId(id_), id_)))
            case elements.Comment(descriptor_id=table_id, part=(ObjectKind.CONSTRAINT as kind, id_)):
                known = self._constraints.get((table_id, ConstraintId(id_)), id_)
                return replace(element, part=(kind, known))
            case _:
                return element

    def take_index(self, index_id: IndexId) -> None:
        self._indexes[index_id] = IndexId(next(self._draft.ids))

    def _constraint(self, table_id: TableId, id_: ConstraintId) -> ConstraintId:
        if (table_id, id_) not in self._constraints:
            self._constraints[table_id, id_] = self._draft.take_constraint_id(table_id)
        return self._constraints[table_id, id_]
