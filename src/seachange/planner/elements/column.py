"""Columns and their parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import partial
from itertools import chain
from operator import is_
from typing import Any

from seachange.model.change import elements
from seachange.model.change.targets import Status
from seachange.model.ids import ColumnId, TableId
from seachange.model.schema.descriptor import Column, Identity, Table
from seachange.model.states import State
from seachange.planner.elements.rule import (
    COLUMN_PARTS,
    COLUMNS,
    CONSTRAINTS,
    INDEXES,
    Adding,
    Dropping,
    Moment,
    Rule,
    RuleOrder,
)
from seachange.planner.elements.spec import ElementNaming, ElementReference, ElementSpec, Host, InColumn, Parts, Topic
from seachange.planner.lifecycles.seachange import COLUMN as COLUMN_LIFECYCLE
from seachange.planner.lifecycles.seachange import CONVERTED_COLUMN, RESTORED_COLUMN, ROW_CONSTRAINT, SIMPLE
from seachange.values.types import Kind, SqlType

# Of a column whose type has not been read yet.
_NO_TYPE = SqlType(Kind.TEXT)


# The parts of one column, each taken out of the descriptor and put into it.


def _take_name(table_id: TableId, column: Column) -> Parts:
    return {elements.ColumnName(table_id, column.id, column.name): State.PUBLIC}


def _put_name(name: elements.ColumnName, state: State) -> dict[str, Any]:
    return {"name": name.name}


def _take_type(table_id: TableId, column: Column) -> Parts:
    return {elements.ColumnType(table_id, column.id, column.type): State.PUBLIC}


def _put_type(type_: elements.ColumnType, state: State) -> dict[str, Any]:
    return {"type": type_.type}


def _take_default(table_id: TableId, column: Column) -> Parts:
    if column.default is None:
        return {}
    return {elements.ColumnDefault(table_id, column.id, column.default, column.default_sequences): State.PUBLIC}


def _put_default(default: elements.ColumnDefault, state: State) -> dict[str, Any]:
    return {"default": default.expression, "default_sequences": default.sequence_ids}


def _take_not_null(table_id: TableId, column: Column) -> Parts:
    return {} if column.nullable else {elements.ColumnNotNull(table_id, column.id): column.not_null}


def _put_not_null(required: elements.ColumnNotNull, state: State) -> dict[str, Any]:
    return {"nullable": False, "not_null": state}


def _take_generated(table_id: TableId, column: Column) -> Parts:
    if column.generated is None:
        return {}
    return {elements.ColumnGenerated(table_id, column.id, column.generated, column.virtual): State.PUBLIC}


def _put_generated(generated: elements.ColumnGenerated, state: State) -> dict[str, Any]:
    return {"generated": generated.expression, "virtual": generated.virtual}


def _take_identity(table_id: TableId, column: Column) -> Parts:
    if column.identity is None:
        return {}
    identity = column.identity
    return {elements.ColumnIdentity(table_id, column.id, identity.sequence_id, identity.always): State.PUBLIC}


def _put_identity(identity: elements.ColumnIdentity, state: State) -> dict[str, Any]:
    return {"identity": Identity(identity.sequence_id, identity.always)}


def _take_setting(kind: type[Any], setting: str, table_id: TableId, column: Column) -> Parts:
    value = getattr(column, setting)
    return {} if value is None else {kind(table_id, column.id, value): State.PUBLIC}


def _put_setting(setting: str, element: Any, state: State) -> dict[str, Any]:
    return {setting: getattr(element, fields(element)[-1].name)}


_HOST = Host(COLUMNS, ("table_id", "column_id"))


def _setting(kind: type[Any], setting: str, noun: str, since: int = 1) -> ElementSpec:
    place = InColumn(partial(_take_setting, kind, setting), partial(_put_setting, setting))
    return ElementSpec(kind, SIMPLE, noun, host=_HOST, in_column=place, setting=setting, since=since)


COLUMN = Topic(
    specs=(
        ElementSpec(
            elements.ColumnNotNull,
            ROW_CONSTRAINT,
            "NOT NULL of column",
            in_column=InColumn(_take_not_null, _put_not_null),
        ),
        _setting(elements.ColumnCompression, "compression", "compression of column"),
        _setting(elements.ColumnStatistics, "statistics_target", "statistics target of column", since=2),
        ElementSpec(
            elements.ColumnDefault,
            SIMPLE,
            "default of column",
            host=_HOST,
            refers=ElementReference("sequence_ids", elements.SequenceElement, "sequence_id"),
            in_column=InColumn(_take_default, _put_default),
        ),
        ElementSpec(
            elements.ColumnGenerated,
            SIMPLE,
            "expression of column",
            host=_HOST,
            in_column=InColumn(_take_generated, _put_generated),
        ),
        ElementSpec(
            elements.ColumnIdentity,
            SIMPLE,
            "identity of column",
            host=_HOST,
            refers=ElementReference("sequence_id", elements.SequenceElement, "sequence_id"),
            in_column=InColumn(_take_identity, _put_identity),
        ),
        ElementSpec(
            elements.ColumnType,
            SIMPLE,
            "type of column",
            host=_HOST,
            refers=ElementReference("type_id", elements.EnumTypeElement, "type_id"),
            in_column=InColumn(_take_type, _put_type),
        ),
        ElementSpec(
            elements.ColumnName,
            SIMPLE,
            "column",
            ElementNaming.NAME,
            host=_HOST,
            in_column=InColumn(_take_name, _put_name),
        ),
        ElementSpec(elements.ColumnDown, SIMPLE, "DOWN of column", since=2),
        ElementSpec(elements.ColumnElement, COLUMN_LIFECYCLE, "column", ElementNaming.OWN),
        ElementSpec(elements.ConvertedColumn, CONVERTED_COLUMN, "column", ElementNaming.OWN),
        ElementSpec(elements.RestoredColumn, RESTORED_COLUMN, "column", ElementNaming.OWN, since=2),
    ),
    rules=(
        Rule(
            name="a column comes with its name, type and default",
            reason="a writer that knows the column must know what to store in it, or it leaves NULLs that nothing "
            "revisits",
            first=Adding(COLUMNS, Moment.FIRST),
            order=RuleOrder.WITH,
            then=Adding(COLUMN_PARTS, Status.PUBLIC),
            join=("table_id", "column_id"),
        ),
        Rule(
            name="a column goes with its name, type and default",
            reason="a descriptor with half a column is not one that a statement can be planned with",
            first=Dropping((*COLUMN_PARTS, elements.ColumnNotNull)),
            order=RuleOrder.WITH,
            then=Dropping(COLUMNS),
            join=("table_id", "column_id"),
        ),
        Rule(
            name="a column is written before an index stores it",
            reason="an entry is made of the row's values",
            first=Adding(COLUMNS, Moment.FIRST),
            order=RuleOrder.BEFORE,
            then=Adding(INDEXES, Status.WRITE_ONLY),
            join=("table_id", ("column_id", "column_ids")),
        ),
        Rule(
            name="a column is written before a constraint looks at it",
            reason="a constraint over a column that writers do not know cannot be met",
            first=Adding(COLUMNS, Moment.FIRST),
            order=RuleOrder.BEFORE,
            then=Adding(CONSTRAINTS, Moment.FIRST),
            join=("table_id", ("column_id", "column_ids")),
        ),
        Rule(
            name="a column is written before it must not be null",
            reason="a writer that does not know the column would be refused for it",
            first=Adding(COLUMNS, Moment.FIRST),
            order=RuleOrder.BEFORE,
            then=Adding((elements.ColumnNotNull,), Status.ENFORCED),
            join=("table_id", "column_id"),
        ),
        Rule(
            name="a column has its values back before another is computed from them",
            reason="a writer would compute another value than the one that is kept",
            first=Adding((elements.RestoredColumn,), Status.BACKFILLED),
            order=RuleOrder.BEFORE,
            then=Adding((elements.ConvertedColumn,), Status.VALIDATING),
            join=("table_id", ("column_id", "input_ids")),
        ),
        Rule(
            name="a column has its values back before an index stores it",
            reason="its entries would be written twice",
            first=Adding((elements.RestoredColumn,), Status.BACKFILLED),
            order=RuleOrder.BEFORE,
            then=Adding(INDEXES, Status.WRITE_ONLY),
            join=("table_id", ("column_id", "column_ids")),
        ),
        Rule(
            name="a column has its values back before a constraint looks at it",
            reason="a writer that changes a row before would be refused for a value that it does not know",
            first=Adding((elements.RestoredColumn,), Status.BACKFILLED),
            order=RuleOrder.BEFORE,
            then=Adding(CONSTRAINTS, Moment.FIRST),
            join=("table_id", ("column_id", "column_ids")),
        ),
        Rule(
            name="a column has its values back before it must not be null",
            reason="a writer that changes a row before would be refused for a NULL that it has not written",
            first=Adding((elements.RestoredColumn,), Status.BACKFILLED),
            order=RuleOrder.BEFORE,
            then=Adding((elements.ColumnNotNull,), Status.ENFORCED),
            join=("table_id", "column_id"),
        ),
        Rule(
            name="a column is written before another is generated from it",
            reason="the expression needs its value",
            first=Adding(COLUMNS, Moment.FIRST),
            order=RuleOrder.BEFORE,
            then=Adding((elements.ColumnGenerated,), Status.PUBLIC),
            join=("table_id", ("column_id", "column_ids")),
        ),
        Rule(
            name="an index is public only after its columns",
            reason="a reader that chooses the index must be able to name what it stores",
            first=Adding(COLUMNS, Status.PUBLIC),
            order=RuleOrder.BEFORE,
            then=Adding(INDEXES, Status.PUBLIC),
            join=("table_id", ("column_id", "column_ids")),
        ),
        Rule(
            name="a constraint is public only after its columns",
            reason="its violation is reported by their names",
            first=Adding(COLUMNS, Status.PUBLIC),
            order=RuleOrder.BEFORE,
            then=Adding(CONSTRAINTS, Status.PUBLIC),
            join=("table_id", ("column_id", "column_ids")),
        ),
        Rule(
            name="a column is public only with its NOT NULL",
            reason="a reader may take a column that is declared so for free of NULLs",
            first=Adding((elements.ColumnNotNull,), Status.PUBLIC),
            order=RuleOrder.BEFORE,
            then=Adding(COLUMNS, Status.PUBLIC),
            join=("table_id", "column_id"),
        ),
        Rule(
            name="a column goes with the indexes that store it",
            reason="an index over a hidden column would be kept up with a made-up value",
            first=Dropping(INDEXES),
            order=RuleOrder.WITH,
            then=Dropping(COLUMNS),
            join=("table_id", ("column_ids", "column_id")),
        ),
        Rule(
            name="a column goes with the constraints that look at it",
            reason="no transaction may meet a constraint over a column that it cannot see",
            first=Dropping(CONSTRAINTS),
            order=RuleOrder.WITH,
            then=Dropping(COLUMNS),
            join=("table_id", ("column_ids", "column_id")),
        ),
        Rule(
            name="a column goes with the columns that are generated from it",
            reason="their expression would have no value",
            first=Dropping((elements.ColumnGenerated,)),
            order=RuleOrder.WITH,
            then=Dropping(COLUMNS),
            join=("table_id", ("column_ids", "column_id")),
        ),
        Rule(
            name="a converted column takes the place of the old one",
            reason="in every version there is exactly one column of the name",
            first=Dropping(COLUMNS),
            order=RuleOrder.WITH,
            then=Adding((elements.ConvertedColumn,), Status.PUBLIC),
            join=("table_id", ("column_id", "in_place_of")),
        ),
        Rule(
            name="a column goes with what computes it for earlier shapes",
            reason="a program that knows the column would find no value in between",
            first=Adding((elements.ColumnDown,), Status.PUBLIC),
            order=RuleOrder.WITH,
            then=Dropping(COLUMNS),
            join=("table_id", "column_id"),
        ),
    ),
)
_PLACES = {spec.kind: spec.in_column for spec in COLUMN.specs if spec.in_column is not None}
# Most of a table.
COLUMN_KINDS = frozenset({*COLUMNS, *_PLACES})
_TAKES = tuple(place.take for place in reversed(_PLACES.values()))


# All columns of a table. Most are in its next version what they were in the last: a column whose parts are the same
# objects is the same object.

_Flat = tuple[object, ...]

# By the column, which is kept with it: its table, its parts, and the same as one flat list.
_KEPT: dict[int, tuple[Column, TableId, Parts, _Flat]] = {}
_KEPT_MAX = 8_192


def take_columns(table: Table) -> Parts:
    parts: Parts = {}
    for column in table.columns:
        kept = _KEPT.get(id(column))
        if kept is None or kept[0] is not column or kept[1] != table.id:
            kept = _keep(table.id, column)
        parts.update(kept[2])
    return parts


def _keep(table_id: TableId, column: Column) -> tuple[Column, TableId, Parts, _Flat]:
    parts = _take_column(table_id, column)
    for take in _TAKES:
        parts.update(take(table_id, column))
    if len(_KEPT) >= _KEPT_MAX:
        _KEPT.clear()
    kept = _KEPT[id(column)] = (column, table_id, parts, tuple(chain.from_iterable(parts.items())))
    return kept


def _take_column(table_id: TableId, column: Column) -> Parts:
    if column.conversion is not None:
        return {elements.ConvertedColumn(table_id, column.id, column.conversion, up=column.up): column.state}
    if column.restored_as_of is not None:
        return {elements.RestoredColumn(table_id, column.id, column.restored_as_of, column.up): column.state}
    element = elements.ColumnElement(
        table_id, column.id, column.hidden, column.frozen, origin=column.origin, up=column.up
    )
    return {element: column.state}


def put_columns(before: Table | None, parts: Sequence[tuple[Any, State]]) -> tuple[Column, ...]:
    """Columns keep their places; a new one is the last, or takes the place of the one that it replaces. `parts` are
    those of columns."""
    flat: dict[ColumnId, list[Any]] = {}
    for part in parts:
        flat.setdefault(part[0].column_id, []).extend(part)
    known = before.column_by_id if before is not None else {}
    columns = {id_: _same(known.get(id_), held) or _put(id_, held) for id_, held in flat.items()}
    return _order(before, [e for e, _ in parts if type(e) in COLUMNS], columns)


def _same(column: Column | None, flat: Sequence[object]) -> Column | None:
    """The column, if these are its parts: equal ones may differ in what takes no part in comparisons."""
    kept = _KEPT.get(id(column))
    is_same = kept is not None and kept[0] is column and len(kept[3]) == len(flat) and all(map(is_, kept[3], flat))
    return column if is_same else None


def _put(id_: ColumnId, flat: Sequence[Any]) -> Column:
    values: dict[str, Any] = {}
    parts = list(zip(flat[::2], flat[1::2], strict=True))
    for element, state in parts:
        if isinstance(element, elements.AnyColumn):
            values.update(_put_column(element, state))
    for element, state in parts:
        place = _PLACES.get(type(element))
        if place is not None:
            values.update(place.put(element, state))
    return Column(id_, **values)


def _put_column(element: elements.AnyColumn, state: State) -> dict[str, Any]:
    values = {"name": "", "type": _NO_TYPE, "state": state}
    match element:
        case elements.ColumnElement():
            own = {"frozen": element.frozen, "hidden": element.hidden, "origin": element.origin, "up": element.up}
            return values | own
        case elements.ConvertedColumn():
            # Once it is public, its values are its own.
            if state is State.PUBLIC:
                return values | {"up": element.up if element.up is not None else element.conversion}
            return values | {"conversion": element.conversion, "up": element.up}
        case elements.RestoredColumn():
            # Rows that were written without it have no value, whatever they had when the column was new.
            as_of = None if state is State.PUBLIC else element.as_of
            return values | {"up": element.up, "restored_as_of": as_of}


def _order(
    before: Table | None, hosts: Iterable[elements.AnyColumn], columns: dict[ColumnId, Column]
) -> tuple[Column, ...]:
    after = {host.in_place_of: host.column_id for host in hosts if host.in_place_of is not None}
    known = [c.id for c in before.columns] if before is not None else []
    order: list[ColumnId] = []
    for id_ in known:
        order.append(id_)
        if id_ in after and after[id_] not in known:
            order.append(after[id_])
    seen = set(order)
    behind = {host.column_id: host.behind for host in hosts if isinstance(host, elements.RestoredColumn)}
    order += [id_ for id_ in columns if id_ not in seen and behind.get(id_) is None]
    late = {id_: found for id_ in columns if id_ not in seen and (found := behind.get(id_)) is not None}
    while late:
        # Of those that come back together, one may stand behind another.
        placed = next((id_ for id_, found in late.items() if found in order), next(iter(late)))
        found = late.pop(placed)
        order.insert(order.index(found) + 1 if found in order else 0, placed)
    return tuple(columns[id_] for id_ in order if id_ in columns)
