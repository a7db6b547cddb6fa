"""A table's columns as an Iceberg schema, and the reasons why a table has none.

**Invariant:** a table is mapped only if every reader sees the rows that SQL shows: a value that a file lacks is a
default that Iceberg can express, and never NULL in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from seachange.iceberg.types import default_value, iceberg_type
from seachange.model.ids import DescriptorId, LayoutId
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.enums import labels_of
from seachange.model.schema.objects import Descriptor, EnumType
from seachange.model.states import State
from seachange.storage.arrow import ELEMENT_IDS_FROM
from seachange.values.types import Kind

# The first format with initial defaults.
DEFAULTS_FORMAT = 3


# An Iceberg type that shows their values does not exist.
_UNMAPPED = frozenset({Kind.INET, Kind.CIDR})


class Unmapped(Exception):
    """The table cannot be read as Iceberg, for the reason that it says."""


def map_columns(
    table: Table, objects: Mapping[DescriptorId, Descriptor], layouts: Iterable[LayoutId], format_version: int
) -> list[dict[str, Any]]:
    """The fields of the schema; `layouts` are those of the files that are read. Raises Unmapped."""
    if not table.visible_columns:
        raise Unmapped("it has no columns")
    _check_names(table)
    stored = [dict(table.layout_by_id[layout].columns) for layout in set(layouts)]
    fields: list[dict[str, Any]] = []
    for column in table.visible_columns:
        if (column.type.element or column.type).kind in _UNMAPPED:
            raise Unmapped(
                f'column "{column.name}" is of type {column.type}, whose files hold bytes in an order of ours'
            )
        _check_labels(column, objects)
        is_lacking = any(column.id not in columns for columns in stored)
        fields.append(_field(column) | _default(column, is_lacking, format_version))
    return fields


def last_column_id(table: Table) -> int:
    """Above the ids of all columns, and of the elements of arrays."""
    return ELEMENT_IDS_FROM + table.next_column_id


def _field(column: Column) -> dict[str, Any]:
    required = not column.nullable and column.not_null is State.PUBLIC
    return {
        "id": column.id,
        "name": column.name,
        "required": required,
        "type": iceberg_type(column.id, column.type),
    }


def _default(column: Column, is_lacking: bool, format_version: int) -> dict[str, Any]:
    if column.frozen is None:
        return {}
    try:
        value = default_value(column.type, column.frozen)
    except ValueError as problem:
        if is_lacking:
            raise Unmapped(f'column "{column.name}" has a default that older files lack: {problem}') from problem
        return {}
    if format_version >= DEFAULTS_FORMAT:
        return {"initial-default": value}
    if is_lacking:
        raise Unmapped(f'column "{column.name}" has a default that older files lack, which needs format version 3')
    return {}


def _check_names(table: Table) -> None:
    """Readers address the elements of an array by the path tags.element."""
    paths = {f"{column.name}.element" for column in table.visible_columns if column.type.element is not None}
    for column in table.visible_columns:
        if column.name in paths:
            raise Unmapped(f'column "{column.name}" has the name of the elements of an array')


def _check_labels(column: Column, objects: Mapping[DescriptorId, Descriptor]) -> None:
    type_ = objects.get(DescriptorId(column.type.enum)) if column.type.enum else None
    if isinstance(type_, EnumType) and not labels_of(type_).is_plain:
        raise Unmapped(
            f'column "{column.name}" is of type {type_.name}, whose labels were renamed: files have the old ones'
        )
