"""A primary key that a change has replaced is the key again: the rows are written once more, sorted by it."""

from __future__ import annotations

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.primary_key import change_key, drop_primary_key
from seachange.planner.builders.reversal import Reversal
from seachange.planner.builders.row_id import find_row_id
from seachange.planner.builders.substitution import Substitution


def is_of_key(draft: Draft, element: Element) -> bool:
    """Whether it belongs to a primary index, which is never taken away without another, or is its hidden column."""
    match element:
        case elements.PrimaryIndex():
            return True
        case elements.IndexName() | elements.IndexData() | elements.KeyConstraint():
            return bool(draft.select(elements.PrimaryIndex, table_id=element.table_id, index_id=element.index_id))
        case elements.ColumnElement() | elements.ColumnName() | elements.ColumnType() | elements.ColumnNotNull():
            if not draft.select(elements.PrimaryIndex, table_id=element.table_id):
                return False
            host = draft.select(elements.ColumnElement, table_id=element.table_id, column_id=element.column_id)
            is_hidden = any(each.hidden for each in host)
            return is_hidden and element.column_id in draft.primary(element.table_id).key
        case _:
            return False


def bring_key_back(draft: Draft, index: elements.PrimaryIndex, reversal: Reversal, now: Substitution) -> None:
    table_id, current = index.table_id, draft.primary(index.table_id)
    moved = now.of(index)
    assert isinstance(moved, elements.PrimaryIndex)
    hidden = {e.column_id for e in reversal.back if isinstance(e, elements.ColumnElement) and e.hidden}
    if moved.key == current.key:
        pass
    elif hidden.issuperset(index.key):
        drop_primary_key(draft, table_id, False, f"the primary key of table {draft.name_of(table_id)}")
        row_id = find_row_id(draft, table_id)
        assert row_id is not None
        now.columns[table_id, index.key[0]] = row_id
    else:
        names = (e.name for e in reversal.back if isinstance(e, elements.IndexName) and e.index_id == index.index_id)
        was_going = table_id in draft.key_goes
        draft.key_goes.add(table_id)
        change_key(draft, table_id, moved.key, next(names, draft.index_name(current).name), None)
        if not was_going:
            draft.key_goes.discard(table_id)
    now.indexes[index.index_id] = draft.primary(table_id).index_id
