"""REVERT CHANGE: a published change is taken out of the definitions of now.

**Invariant:** nothing is reverted in part: what cannot be brought back is refused (0A000) before anything is published,
and so is a change that later ones depend on, unless CASCADE reverts these too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NoReturn

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.change.targets import Goal
from seachange.model.ids import ColumnId, ConstraintId, IndexId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.expression import Expression
from seachange.model.schema.past_key import past_key
from seachange.model.statements import DropEnumValue, RevertChange
from seachange.model.states import State
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.drops import drop_object, drop_table
from seachange.planner.builders.enum_type import drop_enum_value
from seachange.planner.builders.expression import bind_expression
from seachange.planner.builders.lookup import refuse_taken
from seachange.planner.builders.rebuild import rebuild_primary
from seachange.planner.builders.reversal import Parts, Reversal, revert
from seachange.planner.builders.revert_key import bring_key_back, is_of_key
from seachange.planner.builders.revert_type import belongs_to, bring_type_back, types_back
from seachange.planner.builders.row_id import find_row_id
from seachange.planner.builders.substitution import Place, Substitution
from seachange.planner.builders.undrop import bring_back_table
from seachange.planner.elements.registry import DROP_ORDER
from seachange.planner.known_schema import PastChange

_DATABASE = ("a created or dropped database", "DROP DATABASE drops one; a backup has the data of a dropped one.")
# What takes a job, which reads the rows of a table that has to be there before.
_BUILT = (
    elements.SecondaryIndex,
    elements.UniqueIndex,
    elements.CheckConstraint,
    elements.ForeignKeyElement,
    elements.ColumnNotNull,
)
_OTHER_KEY = ("a column of a table that has another primary key since", "Revert the change of the key first.")
_OTHER_COLUMNS = ("rows of a table whose columns have changed since", "Revert these changes first, one by one.")
_ONLY_ROWS = ("rows that came back", "DELETE or TRUNCATE takes them away again.")
_PASSED = (
    "a column that has been converted and changed or dropped since",
    "Revert the later changes first, one by one.",
)
_ENUM_PARTS = (elements.EnumValue, elements.EnumLabel)
_TWO_PARTS = ("a statement of which a part was published before the rest", "Revert the parts by statements.")


def _reversal(draft: Draft, statement: RevertChange) -> Reversal:
    history = [change for change in draft.catalog.history if change.id >= statement.change_id]
    if not history or history[0].id != statement.change_id:
        raise errors.UndefinedObject(kind="change", name=str(statement.change_id))
    return revert(draft.parts(), history, statement.cascade)


def table_to_number(draft: Draft, statement: RevertChange) -> RelationName | None:
    """The table that had no primary key before the change: its rows are numbered before anything else."""
    reversal = _reversal(draft, statement)
    hidden = {e.column_place for e in reversal.back if isinstance(e, elements.ColumnElement) and e.hidden}
    for index in [e for e in reversal.back if isinstance(e, elements.PrimaryIndex)]:
        table_id = index.table_id
        is_hidden = all((table_id, column_id) in hidden for column_id in index.key)
        if is_hidden and table_id in draft.catalog.descriptors and find_row_id(draft, table_id) is None:
            entry = draft.entry(table_id)
            return RelationName(entry.schema, entry.name)
    return None


def needs_tables_first(draft: Draft, statement: RevertChange) -> bool:
    """Whether something is to be built or validated over the rows of tables, or others, that come back."""
    reversal = _reversal(draft, statement)
    tables = _tables(reversal.back)
    built = [e for e in reversal.back if isinstance(e, _BUILT) and e.table_id not in tables]
    keys = (e for e in reversal.back if isinstance(e, elements.ForeignKeyElement) and e.table_id in tables)
    return bool(tables) and (bool(built) or any(True for _ in keys))


def revert_change(draft: Draft, statement: RevertChange) -> None:
    reversal = _reversal(draft, statement)
    if statement.tables_only:
        for table in [kept for kept in draft.catalog.dropped if isinstance(kept, Table)]:
            if table.id in _tables(reversal.back):
                bring_back_table(draft, table)
        draft.notices.clear()
        return
    if reversal.dependents:
        raise _refuse_dependents(statement.change_id, reversal.dependents)
    if not reversal.is_whole:
        raise errors.NotInPrerequisiteState(
            detail=f"what change {statement.change_id} did has been changed since, by nothing that the history has"
        )
    for change in reversal.changes:
        if change.is_unknown:
            _refuse(change, _TWO_PARTS)
        if change.id != statement.change_id:
            draft.notices.append(f"change {change.id} is reverted too: {change.statement}")
    _check_supported(reversal)
    _refill(draft, reversal)
    backs = types_back(reversal)
    same = Substitution({(b.table_id, b.old): b.new for b in backs}, whole=_tables(reversal.back))
    same.find_counterparts(reversal.back, reversal.gone)
    kept = {same.of(element): state for element, state in reversal.back.items()}
    gone = {e: s for e, s in reversal.gone.items() if kept.get(e) is not s and not belongs_to(e, backs)}
    _take_away(draft, {e: s for e, s in gone.items() if not is_of_key(draft, e)})
    since = _values_since(draft, reversal, statement)
    _drop_values(draft, reversal)
    now = Substitution(whole=same.whole)
    for back in backs:
        now.columns[back.table_id, back.old] = bring_type_back(draft, back, reversal)
    _put_back(draft, reversal, now, since)


def _refill(draft: Draft, reversal: Reversal) -> None:
    for change in reversed(reversal.changes):
        draft.refilled |= {id_: change.id - 1 for id_ in change.emptied if id_ in draft.catalog.descriptors}
    for change in reversal.changes:
        for before, _ in change.versions:
            now = draft.catalog.descriptors.get(before.id) if before is not None else None
            if not isinstance(before, Table) or not isinstance(now, Table) or before.id not in draft.refilled:
                continue
            if not {c.id for c in (*before.visible_columns, *_key_of(now))} <= now.column_by_id.keys():
                _refuse(change, _OTHER_COLUMNS)
            if not {c.id for c in _key_of(now)} <= before.column_by_id.keys():
                _refuse(change, _OTHER_COLUMNS)
    if draft.refilled and (reversal.gone or reversal.back) and len(reversal.changes) > 1:
        _refuse(reversal.changes[-1], _OTHER_COLUMNS)
    for change in [change for change in reversal.changes if change.refills]:
        _refuse(change, _ONLY_ROWS)


def _key_of(table: Table) -> list[Column]:
    """None for rows that are known by their numbers."""
    key = [table.column_by_id[column_id] for column_id in table.primary.key]
    return [column for column in key if not column.is_row_id]


def _tables(parts: Parts) -> set[TableId]:
    return {e.table_id for e in parts if isinstance(e, elements.TableElement)}


def _refuse_dependents(change_id: int, dependents: Collection[PastChange]) -> errors.Error:
    lines = "\n".join(f"change {each.id} ({each.statement}) depends on change {change_id}" for each in dependents)
    return errors.DependentChanges(change=change_id, dependents=lines)


def _refuse(change: PastChange, reason: tuple[str, str]) -> NoReturn:
    what, instead = reason
    raise errors.FeatureNotSupported(feature=f"reverting change {change.id}: {what}", instead=instead)


def _check_supported(reversal: Reversal) -> None:
    """Of an object that goes or comes as a whole, the parts do not matter."""
    first = reversal.changes[-1]
    for element in (*reversal.gone, *reversal.back):
        if isinstance(element, elements.DatabaseElement):
            _refuse(first, _DATABASE)
    tables = _tables(reversal.gone) | _tables(reversal.back)
    hosts = {e.column_place for e in reversal.back if isinstance(e, elements.ColumnElement)}
    for before, change in reversal.passed.values():
        # What rows had in between would be lost.
        if before in hosts and before[0] not in tables:
            _refuse(change, _PASSED)


def _take_away(draft: Draft, gone: Parts) -> None:
    order = {kind: number for number, kind in enumerate(DROP_ORDER)}
    for whole in [e for e in gone if isinstance(e, elements.AnyObject)]:
        if isinstance(whole, elements.TableElement):
            drop_table(draft, whole.table_id)
        else:
            drop_object(draft, descriptor_of(whole))
    there, tables = draft.parts(), _tables(gone)
    for element in sorted(gone, key=lambda e: order[type(e)]):
        # The values of an enum type go last, when it is known that no row has them.
        if element in there and descriptor_of(element) not in tables and not isinstance(element, _ENUM_PARTS):
            draft.drop(element)


def _drop_values(draft: Draft, reversal: Reversal) -> None:
    for label in [e for e in reversal.gone if isinstance(e, elements.EnumLabel)]:
        if draft.select(elements.EnumValue, type_id=label.type_id, value_id=label.value_id):
            entry = draft.entry(label.type_id)
            drop_enum_value(draft, DropEnumValue(RelationName(entry.schema, entry.name), label.label))


def _put_back(draft: Draft, reversal: Reversal, now: Substitution, since: Mapping[Place, Expression]) -> None:
    for table in [kept for kept in draft.catalog.dropped if isinstance(kept, Table) and kept.id in now.whole]:
        bring_back_table(draft, table)
    converted = set(now.columns)
    # Keys are made of columns.
    columns = {e: s for e, s in reversal.back.items() if isinstance(e, elements.ColumnTopic)}
    _add_missing(draft, {e: s for e, s in columns.items() if not _is_hidden_key(e, reversal)}, reversal, now, since)
    for index in [e for e in reversal.back if isinstance(e, elements.PrimaryIndex) and e.table_id not in now.whole]:
        bring_key_back(draft, index, reversal, now)
    now.find_counterparts(reversal.back, draft.parts())
    same = set(now.constraints)
    _take_fresh_ids(draft, reversal.back, now)
    rest = {e: s for e, s in reversal.back.items() if e not in columns}
    _add_missing(draft, rest, reversal, now, since, same)
    _drop_new_parts(draft, reversal, now, converted)


def _is_hidden_key(element: elements.ColumnTopic, reversal: Reversal) -> bool:
    """Whether it is a part of the hidden column that numbered the rows: they have other numbers now."""
    place = (element.table_id, element.column_id)
    keys = (
        (e.table_id, column_id) for e in reversal.back if isinstance(e, elements.PrimaryIndex) for column_id in e.key
    )
    hidden = (e.column_place for e in reversal.back if isinstance(e, elements.ColumnElement) and e.hidden)
    return place in set(keys) and place in set(hidden)


def _add_missing(
    draft: Draft,
    parts: Parts,
    reversal: Reversal,
    now: Substitution,
    since: Mapping[Place, Expression],
    same: Collection[tuple[TableId, ConstraintId]] = (),
) -> None:
    converted = _converted_now(now)
    for element, state in parts.items():
        found = now.of(element)
        if draft.parts().get(found) is state or _is_there(element, now, same):
            continue
        if isinstance(element, elements.IndexName):
            refuse_taken(draft, ObjectKind.INDEX, draft.schema_named(element.table_id), element.name)
        goal = Goal.ENFORCED if state is State.ENFORCED else Goal.PUBLIC
        if isinstance(found, elements.ColumnElement) and not found.hidden:
            _add_column(draft, found, reversal, now, since)
            continue
        if isinstance(found, elements.ColumnPart) and (found.table_id, found.column_id) in converted:
            for other in draft.select(type(found), table_id=found.table_id, column_id=found.column_id):
                draft.drop(other)
        draft.add(found, goal)


def _is_there(
    element: Element,
    now: Substitution,
    same: Collection[tuple[TableId, ConstraintId]],
) -> bool:
    """Whether it is back under another id, or with its table."""
    match element:
        case elements.ColumnElement():
            return element.column_place in now.columns or element.table_id in now.whole
        case elements.ColumnDown():
            return True
        case elements.ForeignKeyElement() | elements.CheckConstraint() | elements.ConstraintName():
            return (element.table_id, element.constraint_id) in same or element.table_id in now.whole
        case elements.ForeignKeyParent():
            return (element.table_id, element.constraint_id) in same or element.table_id in now.whole
        case _:
            return descriptor_of(element) in now.whole


def _converted_now(now: Substitution) -> set[Place]:
    return {(table_id, new) for (table_id, _), new in now.columns.items()}


# What a converted column takes along from the one that it replaces.
_TAKEN_ALONG = (
    elements.ColumnDefault
    | elements.ColumnNotNull
    | elements.ColumnIdentity
    | elements.ColumnCompression
    | elements.ColumnStatistics
    | elements.ColumnGenerated
)


def _drop_new_parts(draft: Draft, reversal: Reversal, now: Substitution, converted: Collection[Place]) -> None:
    """What came with the change to a column that has been converted back."""
    back = [e for e in reversal.back if isinstance(e, _TAKEN_ALONG)]
    for table_id, old in converted:
        kept = {type(e) for e in back if (e.table_id, e.column_id) == (table_id, old)}
        came = {type(e) for e in reversal.gone if isinstance(e, _TAKEN_ALONG) and e.table_id == table_id}
        for kind in came - kept:
            for part in draft.select(kind, table_id=table_id, column_id=now.columns[table_id, old]):
                draft.drop(part)


def _take_fresh_ids(draft: Draft, back: Parts, now: Substitution) -> None:
    """Ids of indexes and constraints are not used again: what comes back is built and validated again."""
    for element in back:
        if getattr(element, "table_id", None) in now.whole:
            continue
        match element:
            case elements.SecondaryIndex(index_id=id_) | elements.UniqueIndex(index_id=id_) if id_ not in now.indexes:
                now.indexes[id_] = IndexId(next(draft.ids))
            case elements.CheckConstraint() | elements.ForeignKeyElement():
                place = (element.table_id, element.constraint_id)
                if place not in now.constraints:
                    now.constraints[place] = draft.take_constraint_id(element.table_id)
            case _:
                pass


def _add_column(
    draft: Draft,
    column: elements.ColumnElement,
    reversal: Reversal,
    now: Substitution,
    since: Mapping[Place, Expression],
) -> None:
    """Under its id, by which rows have its value that were not written since."""
    table_id, column_id = column.column_place
    stored = (e for e in reversal.back if isinstance(e, elements.ColumnGenerated) and not e.virtual)
    if any((e.table_id, e.column_id) == column.column_place for e in stored):
        draft.add(elements.ColumnElement(table_id, column_id))
        rebuild_primary(draft, table_id, column_id)
        return
    change = reversal.columns_went_with[column.column_place]
    then = next(before for before, _ in change.versions if before is not None and before.id == table_id)
    key = draft.catalog.descriptors[table_id]
    assert isinstance(then, Table)
    assert isinstance(key, Table)
    if not change.is_double and past_key(key, then) is None:
        _refuse(change, _OTHER_KEY)
    up = since.get(column.column_place, column.up)
    behind = _find_place(draft, column, then, reversal, now)
    draft.add(elements.RestoredColumn(table_id, column_id, change.id - 1, up, behind))


def _find_place(
    draft: Draft, column: elements.ColumnElement, then: Table, reversal: Reversal, now: Substitution
) -> ColumnId:
    """The column behind which it stood, or the one that has taken the place of that since."""
    table_id = column.table_id
    by_name = {each.name: each.column_id for each in draft.select(elements.ColumnName, table_id=table_id)}
    there = set(by_name.values())
    there |= {e.column_id for e in reversal.back if isinstance(e, elements.ColumnElement) and e.table_id == table_id}
    order = [c.id for c in then.columns]
    for other in reversed(then.columns[: order.index(column.column_id)]):
        following = (other.id, now.columns.get((table_id, other.id)), by_name.get(other.name))
        found = next((id_ for id_ in following if id_ in there), None)
        if found is not None:
            return found
    return ColumnId(0)


def _values_since(draft: Draft, reversal: Reversal, statement: RevertChange) -> dict[Place, Expression]:
    """The expressions of SET, by the columns that come back."""
    coming = {(e.table_id, e.name): e for e in reversal.back if isinstance(e, elements.ColumnName)}
    found: dict[Place, Expression] = {}
    for value in statement.values:
        table_id = draft.table(value.table)
        column = coming.get((table_id, value.column))
        if column is None:
            where = f"{value.table} before change {statement.change_id}"
            raise errors.UndefinedColumn(name=value.column, relation=where)
        bound = bind_expression(draft, table_id, value.value.pieces, value.value.columns)
        found[table_id, column.column_id] = bound
    return found
