"""A column whose type, or expression, was changed has the earlier one again: another column takes its place.

Its values are what DOWN says, else the value that was kept, of a row whose new value is still the one that was computed
from it, else a cast.

**Invariant:** a row of which no value of the earlier type is known fails the change, and is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.targets import Goal
from seachange.model.ids import ColumnId, TableId
from seachange.model.schema.constraint import column_reference
from seachange.model.schema.descriptor import Table
from seachange.model.schema.expression import Expression
from seachange.model.statements import AlterColumnType
from seachange.planner.builders.column_type import alter_column_type, recompute_column, replace_column
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.expression import rebind
from seachange.planner.builders.foreign_key import settle_references
from seachange.planner.builders.identity import retype_identity
from seachange.planner.builders.reversal import Parts, Reversal
from seachange.values.types import INTEGERS, TEXT, Kind, SqlType, assignable, widens

# A cast to text and back gives the same value.
_SAME_AS_TEXT = frozenset({Kind.BOOLEAN, Kind.DATE, Kind.UUID, *INTEGERS})
_TEXTS = frozenset({Kind.TEXT, Kind.VARCHAR})


@dataclass(frozen=True, slots=True)
class TypeBack:
    """`new` is the column of now, `old` the one that it has replaced: the same one if it was only widened. `as_of` is
    when rows had values of the old one."""

    table_id: TableId
    old: ColumnId
    new: ColumnId
    name: str
    type: SqlType
    as_of: int
    up: Expression | None = None
    generated: Expression | None = None
    # The change was a revert: no one has said how it goes back.
    is_revert: bool = False


def types_back(reversal: Reversal) -> list[TypeBack]:
    """The columns that have another type or expression after the revert, in the order of their ids."""
    gone, back = _Columns(reversal.gone), _Columns(reversal.back)
    found = []
    for (table_id, column_id), type_ in back.types.items():
        if (table_id, column_id) in gone.types and (table_id, column_id) not in back.hosts:
            name = back.names.get((table_id, column_id), "")
            found.append(TypeBack(table_id, column_id, column_id, name, type_.type, reversal.went_with[type_].id - 1))
            continue
        name = back.names.get((table_id, column_id), "")
        new = next((c for (t, c), n in gone.names.items() if t == table_id and n == name), None)
        host = gone.hosts.get((table_id, new)) if new is not None else None
        if host is None or (table_id, column_id) not in back.hosts or new is None:
            continue
        # Of a column that was converted since and back, the latter is what it is computed by now.
        own = host.up if host.up is not None else host.origin
        up = reversal.computed.get((reversal.went_with[type_].id, (table_id, new)), own)
        generated = back.generated.get((table_id, column_id))
        if up is not None or (generated is not None and (table_id, new) in gone.generated):
            change = reversal.went_with[type_]
            back_again = TypeBack(
                table_id, column_id, new, name, type_.type, change.id - 1, up, generated, change.is_revert
            )
            found.append(back_again)
    for (table_id, column_id), expression in back.generated.items():
        if (table_id, column_id) not in back.hosts and (table_id, column_id) not in gone.generated:
            # DROP EXPRESSION: the values may be others by now.
            found.append(TypeBack(table_id, column_id, column_id, "", TEXT, 0, generated=expression))
    return sorted(found, key=lambda each: each.new)


class _Columns:
    def __init__(self, parts: Parts) -> None:
        self.hosts = {e.column_place: e for e in parts if isinstance(e, elements.ColumnElement) and not e.hidden}
        self.types = {(e.table_id, e.column_id): e for e in parts if isinstance(e, elements.ColumnType)}
        self.names = {(e.table_id, e.column_id): e.name for e in parts if isinstance(e, elements.ColumnName)}
        kept = (e for e in parts if isinstance(e, elements.ColumnGenerated) and not e.virtual)
        self.generated = {(e.table_id, e.column_id): e.expression for e in kept}


def belongs_to(element: Element, backs: Sequence[TypeBack]) -> bool:
    """Whether it is a part of a column that goes for another one."""
    places = {(each.table_id, each.new) for each in backs} | {(each.table_id, each.old) for each in backs}
    kinds = elements.AnyColumn | elements.ColumnPart | elements.ColumnNotNull | elements.ColumnDown
    return isinstance(element, kinds) and (element.table_id, element.column_id) in places


def bring_type_back(draft: Draft, back: TypeBack, reversal: Reversal) -> ColumnId:
    """Gives the id of the column that takes the place."""
    table_id, now = back.table_id, draft.column_type(back.table_id, back.new).type
    if back.generated is not None:
        new_id = replace_column(draft, table_id, back.new, now if back.old == back.new else back.type, None)
        generated = draft.only(elements.ColumnGenerated, table_id=table_id, column_id=new_id)
        draft.replace(generated, elements.ColumnGenerated(table_id, new_id, back.generated))
        return new_id
    if back.old == back.new:
        return _narrow(draft, back)
    retype_identity(draft, table_id, back.new, back.type)
    fallback = _down(draft, back) or _cast(back, now)
    is_plain = back.up is not None and _is_plain_cast(back, now)
    is_key = back.new in draft.primary(table_id).key
    is_declared = _down(draft, back) is not None and not back.is_revert
    if is_declared or is_plain or is_key or back.up is None or draft.has_no_rows(table_id):
        conversion = fallback
    else:
        conversion = _kept_or(draft, back, fallback)
    followers = draft.select(elements.ColumnGenerated, table_id=table_id, column_ids=back.new)
    new_id = replace_column(draft, table_id, back.new, back.type, conversion, distinct=is_plain, up=fallback)
    for generated in followers:
        if not generated.virtual:
            recompute_column(draft, generated, back.new, new_id)
    _add_down(draft, back, new_id)
    settle_references(draft, table_id)
    return new_id


def _add_down(draft: Draft, back: TypeBack, new_id: ColumnId) -> None:
    """Programs that know the column of now, and a revert of this revert, compute it as the change has."""
    there = {e.column_id for e in draft.select(elements.ColumnName, table_id=back.table_id)}
    if back.up is not None and there.issuperset(set(back.up.columns) - {back.old}) and not back.type.enum:
        down = rebind(back.up, back.old, new_id)
        if not draft.select(elements.ColumnDown, table_id=back.table_id, column_id=back.new):
            draft.add(elements.ColumnDown(back.table_id, back.new, down))


def _narrow(draft: Draft, back: TypeBack) -> ColumnId:
    """Of a column that was widened, every value that rows had fits."""
    table_id = back.table_id
    name = draft.column_name(table_id, back.new)
    alter_column_type(draft, table_id, AlterColumnType(name, back.type))
    settle_references(draft, table_id)
    return draft.column(table_id, name)


def _is_plain_cast(back: TypeBack, now: SqlType) -> bool:
    """Whether the cast back gives each value that rows had, and different ones for different values."""
    own = column_reference(back.old)
    casts = {
        f"CAST({own} AS {now.duckdb})",
        f"(CAST({own} AS {now.duckdb}))",
        own,
        f"({own})",
        f"SEACHANGE_TEXT({own})",
    }
    assert back.up is not None
    as_text = back.type.kind in _SAME_AS_TEXT and now == TEXT
    return back.up.text in casts and (as_text or widens(back.type, now))


def _down(draft: Draft, back: TypeBack) -> Expression | None:
    """What the change has said, over columns that are still there."""
    table = draft.catalog.descriptors.get(back.table_id)
    retired = table.retired_by_id.get(back.old) if isinstance(table, Table) else None
    if retired is None or retired.down is None:
        return None
    there = {e.column_id for e in draft.select(elements.ColumnName, table_id=back.table_id)}
    return retired.down if there.issuperset(retired.down.columns) else None


def _cast(back: TypeBack, now: SqlType) -> Expression:
    own = column_reference(back.new)
    target = back.type.duckdb
    if now.enum or back.type.enum or not (assignable(now, back.type) or now.kind in _TEXTS or back.type.kind in _TEXTS):
        said = f"no value of type {back.type} is known: the row was written since the change"
        return Expression(f"CAST(CAST(SEACHANGE_COMPLAIN('{said}') AS VARCHAR) AS {target})", (back.new,))
    return Expression(f"CAST({own} AS {target})", (back.new,))


def _kept_or(draft: Draft, back: TypeBack, fallback: Expression) -> Expression:
    """The column is there again, hidden, for the duration of the change. A row whose value was computed from what it
    had then has that; no row that came since has a value of it."""
    assert back.up is not None
    table_id, kept = back.table_id, column_reference(back.old)
    there = {e.column_id for e in draft.select(elements.ColumnName, table_id=table_id)}
    if not there.issuperset(set(back.up.columns) - {back.old}):
        return fallback
    for element in (
        elements.RestoredColumn(table_id, back.old, back.as_of),
        elements.ColumnName(table_id, back.old, back.name),
        elements.ColumnType(table_id, back.old, back.type),
    ):
        draft.add(element, Goal.TRANSIENT)
    text = (
        f"CASE WHEN {kept} IS NOT NULL AND ({back.up.text}) IS NOT DISTINCT FROM {column_reference(back.new)} "
        f"THEN {kept} ELSE {fallback.text} END"
    )
    return Expression(text, tuple(dict.fromkeys((back.old, *back.up.columns, *fallback.columns))))
