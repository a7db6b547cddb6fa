"""A schema as named lines, so that two databases can be compared: without ids, versions or history."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.objects import Descriptor, EnumType, Schema, Sequence, View
from seachange.model.schema.temporary import is_temporary
from seachange.planner.elements.registry import COLUMN_SETTINGS
from seachange.values.types import SqlType

_REFERENCE = re.compile(r'"c([0-9]+)"')

# The name of an object, and its description.
Lines = dict[str, str]


def describe_schema(descriptors: Iterable[Descriptor], database: str = "seachange") -> Lines:
    known = [d for d in descriptors if getattr(d, "database", None) == database]
    lines: Lines = {}
    for descriptor in known:
        match descriptor:
            case Table() if not is_temporary(descriptor.schema):
                lines.update(_Describer(descriptor, known).lines())
            case EnumType():
                labels = [v.label for v in sorted(descriptor.values, key=lambda v: v.rank)]
                lines[f"type {descriptor.schema}.{descriptor.name}"] = f"enum of {', '.join(labels)}"
            case Sequence():
                bounds = f"from {descriptor.minimum} to {descriptor.maximum}, start {descriptor.start}"
                steps = f"{descriptor.type}, by {descriptor.increment}{', cycle' if descriptor.cycle else ''}"
                lines[f"sequence {descriptor.schema}.{descriptor.name}"] = f"{steps}, {bounds}"
            case View():
                lines[f"view {descriptor.schema}.{descriptor.name}"] = _view(descriptor, known)
            case Schema():
                lines[f"schema {descriptor.name}"] = "exists"
            case _:
                continue
    return lines


def differences(found: Lines, expected: Lines) -> list[str]:
    """The objects that only one of the schemas has, or that differ."""
    lines = []
    for name in sorted(found.keys() | expected.keys()):
        if name not in found:
            lines.append(f"missing: {name}: {expected[name]}")
        elif name not in expected:
            lines.append(f"not expected: {name}: {found[name]}")
        elif found[name] != expected[name]:
            lines.append(f"differs: {name}: {found[name]}; expected: {expected[name]}")
    return lines


def _view(view: View, known: Iterable[Descriptor]) -> str:
    """With current names, which the view's query may not have."""
    today = {d.id: d.name for d in known}
    read = ", ".join(sorted(today.get(id_, "?") for id_ in view.relation_ids))
    columns = zip(view.columns, view.types, strict=False)
    return f"({', '.join(f'{name} {type_}' for name, type_ in columns)}) of {read}"


class _Describer:
    """The lines of one table, with the names of columns and tables."""

    def __init__(self, table: Table, known: Iterable[Descriptor]) -> None:
        self._table = table
        self._names: Mapping[ColumnId, str] = {column.id: column.name for column in table.columns}
        self._tables = {d.id: d for d in known if isinstance(d, Table)}
        self._others = {d.id: d.name for d in known if isinstance(d, EnumType | Sequence)}

    def lines(self) -> Iterator[tuple[str, str]]:
        table = self._table
        where = f"{table.schema}.{table.name}"
        yield f"table {where}", "exists"
        for column in table.visible_columns:
            yield f"column {where}.{column.name}", self._column(column)
        if not any(table.column_by_id[c].hidden for c in table.primary.key):
            yield f"primary key {where}", f"({self._columns(table.primary.key)})"
        for index in table.secondary:
            yield f"{'constraint' if index.constraint else 'index'} {where} {index.name}", self._index(index)
        for check in table.checks:
            yield f"constraint {where} {check.name}", f"check ({self._named(check.expression)}){_state(check.state)}"
        for key in table.foreign_keys:
            parent = self._tables[key.parent]
            keys = parent.index_by_id[key.parent_index].key
            referred = f"{parent.schema}.{parent.name} ({_columns_of(parent, keys)})"
            actions = f"on delete {key.on_delete.value.lower()}, on update {key.on_update.value.lower()}"
            late = f"{', match full' if key.match_full else ''}"
            late += f"{', deferrable' if key.deferrable else ''}{', deferred' if key.initially_deferred else ''}"
            text = f"({self._columns(key.columns)}) references {referred} {actions}{late}{_state(key.state)}"
            yield f"constraint {where} {key.name}", text

    def _column(self, column: Column) -> str:
        parts = [self._type(column.type)]
        if not column.nullable:
            parts.append(f"not null{_state(column.not_null)}")
        if column.identity is not None:
            parts.append(f"identity {'always' if column.identity.always else 'by default'}")
        elif column.default_sequences:
            parts.append(f"default from {', '.join(self._others.get(id_, '?') for id_ in column.default_sequences)}")
        elif column.default is not None:
            parts.append(f"default {self._named(column.default)}")
        if column.generated is not None:
            parts.append(f"generated as {self._named(column.generated.text)}")
        settings = {name: getattr(column, name) for name in COLUMN_SETTINGS}
        parts += [f"{name} {value}" for name, value in settings.items() if value is not None]
        return " ".join(parts)

    def _type(self, type_: SqlType) -> str:
        if type_.element is not None:
            return f"{self._type(type_.element)}[]"
        return self._others.get(type_.enum, "?") if type_.enum else str(type_)  # type: ignore[call-overload]

    def _index(self, index: Index) -> str:
        keys = ", ".join(f"{self._key(c)}{index.order_of(c).lower()}" for c in index.key)
        include = f" include ({self._columns(index.include)})" if index.include else ""
        where = f" where {self._named(index.where.text)}" if index.where is not None else ""
        nulls = "" if index.nulls_distinct else " nulls not distinct"
        return f"{'unique ' if index.unique else ''}({keys}){include}{where}{nulls}{_state(index.state)}"

    def _key(self, column_id: ColumnId) -> str:
        column = self._table.column_by_id[column_id]
        return self._named(column.generated.text) if column.virtual and column.generated else column.name

    def _columns(self, ids: Iterable[ColumnId]) -> str:
        return ", ".join(self._names[c] for c in ids)

    def _named(self, text: str) -> str:
        return _REFERENCE.sub(lambda found: self._names.get(ColumnId(int(found[1])), found[0]), text)


def _columns_of(table: Table, ids: Iterable[ColumnId]) -> str:
    return ", ".join(table.column_by_id[c].name for c in ids)


def _state(state: str) -> str:
    """Empty for the normal state."""
    return "" if state == "PUBLIC" else f" [{state}]"
