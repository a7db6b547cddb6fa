"""Rows that a statement passes to DuckDB as an Arrow table, and the expressions that convert stored values."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from seachange.storage.arrow import arrow_type
from seachange.storage.plan import quote
from seachange.values.types import SqlType

_READ_AS = b"seachange.type"


def given_field(name: str, type_: SqlType, duck_type: str) -> pa.Field:
    """`duck_type` is the type that DuckDB has for the values, with the labels of an enum type."""
    metadata = {_READ_AS: duck_type.encode()} if type_.stored != duck_type else None
    return pa.field(name, arrow_type(type_), metadata=metadata)


def read_as(rows: pa.Table, types: Sequence[str]) -> pa.Table:
    """A result of DuckDB that it reads again, with its original types: Arrow does not have all of them."""
    fields = [
        pa.field(field.name, _plain(field.type), metadata={_READ_AS: type_.encode()})
        for field, type_ in zip(rows.schema, types, strict=True)
    ]
    return rows.cast(pa.schema(fields))


def _plain(type_: pa.DataType) -> pa.DataType:
    """DuckDB does not read lists of labels that are all empty, but reads texts."""
    is_coded = pa.types.is_list(type_) and pa.types.is_dictionary(type_.value_type)
    return pa.list_(type_.value_type.value_type) if is_coded else type_


def read_given(schema: pa.Schema) -> str:
    """The select list of a query over the table."""
    if not any(field.metadata for field in schema):
        return "*"
    return ", ".join(_read(field) for field in schema)


def _read(field: pa.Field) -> str:
    name = quote(field.name)
    type_ = (field.metadata or {}).get(_READ_AS)
    return name if type_ is None else f"CAST({name} AS {type_.decode()}) AS {name}"
