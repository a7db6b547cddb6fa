"""Descriptors as JSON text, the form in which the commit log keeps them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from seachange.model.codecs.access_json import decode_access, encode_access
from seachange.model.codecs.constraint_json import decode_check, decode_foreign_key, encode_check, encode_foreign_key
from seachange.model.codecs.layout_json import decode_layouts, encode_layouts
from seachange.model.ids import ColumnId, ConstraintId, DescriptorId, IndexId
from seachange.model.schema.descriptor import Column, Identity, Index, Table
from seachange.model.schema.expression import Expression
from seachange.model.states import State
from seachange.values.types import Kind, SqlType


def encode_table(table: Table) -> str:
    return json.dumps(
        {
            "id": table.id,
            "version": table.version,
            "database": table.database,
            "schema": table.schema,
            "name": table.name,
            "columns": [_column(c) for c in table.columns],
            "primary": _index(table.primary),
            "secondary": [_index(i) for i in table.secondary],
            "layouts": encode_layouts(table.layouts, _type),
            "next_column_id": table.next_column_id,
            "checks": [encode_check(c) for c in table.checks],
            "foreign_keys": [encode_foreign_key(k) for k in table.foreign_keys],
            "next_constraint_id": table.next_constraint_id,
            "next_primary": _index(table.next_primary) if table.next_primary is not None else None,
            "access": encode_access(table.access),
        },
        separators=(",", ":"),
    )


def decode_table(text: str) -> Table:
    body = json.loads(text)
    return Table(
        id=DescriptorId(body["id"]),
        version=body["version"],
        database=body["database"],
        schema=body["schema"],
        name=body["name"],
        columns=tuple(_read_column(c) for c in body["columns"]),
        primary=_read_index(body["primary"]),
        secondary=tuple(_read_index(i) for i in body["secondary"]),
        layouts=tuple(decode_layouts(body["layouts"], _read_type)),
        next_column_id=ColumnId(body["next_column_id"]),
        # Bodies from before there were constraints have none of these.
        checks=tuple(decode_check(c) for c in body.get("checks", ())),
        foreign_keys=tuple(decode_foreign_key(k) for k in body.get("foreign_keys", ())),
        next_constraint_id=ConstraintId(body.get("next_constraint_id", 1)),
        next_primary=_read_index(body["next_primary"]) if body.get("next_primary") else None,
        access=decode_access(body.get("access")),
    )


def _type(type_: SqlType) -> list[Any]:
    body: list[Any] = [type_.kind.value, type_.precision, type_.scale, type_.length, type_.enum]
    return body if type_.element is None else [*body, _type(type_.element)]


def _read_type(body: list[Any]) -> SqlType:
    element = _read_type(body[5]) if len(body) > 5 else None
    precision, scale, length, enum = (*body[1:5], 0, 0, 0, 0)[:4]
    return SqlType(Kind(body[0]), precision, scale, length, enum, element)


def _expression(expression: Expression | None) -> list[Any] | None:
    return None if expression is None else [expression.text, list(expression.columns)]


def _read_expression(body: list[Any] | None) -> Expression | None:
    return None if body is None else Expression(body[0], tuple(ColumnId(c) for c in body[1]))


def _identity(identity: Identity | None) -> list[Any] | None:
    return None if identity is None else [identity.sequence_id, identity.always]


def _read_identity(body: list[Any] | None) -> Identity | None:
    return None if not body else Identity(DescriptorId(body[0]), body[1])


# Fields of a column whose values are no JSON values; others are written as they are.
_WRITE: dict[str, Callable[[Any], Any]] = {
    "type": _type,
    "generated": _expression,
    "conversion": _expression,
    "identity": _identity,
    "default_sequences": list,
    "origin": _expression,
}
_READ: dict[str, Callable[[Any], Any]] = {
    "type": _read_type,
    "state": State,
    "not_null": State,
    "generated": _read_expression,
    "conversion": _read_expression,
    "identity": _read_identity,
    "default_sequences": tuple,
    "origin": _read_expression,
}
_COLUMN_FIELDS = fields(Column)
# Written in every body. A field that came later is left out of the body of a column that does not use it.
_ALWAYS = frozenset(field.name for field in _COLUMN_FIELDS[: [f.name for f in _COLUMN_FIELDS].index("origin") + 1])


def _column(column: Column) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for field in _COLUMN_FIELDS:
        value = getattr(column, field.name)
        if field.name in _ALWAYS or value != field.default:
            body[field.name] = _WRITE[field.name](value) if field.name in _WRITE else value
    return body


def _read_column(body: dict[str, Any]) -> Column:
    """Bodies of earlier releases lack some fields, which have their defaults then."""
    known = {field.name: body[field.name] for field in _COLUMN_FIELDS if field.name in body}
    return Column(**{name: _READ[name](value) if name in _READ else value for name, value in known.items()})


def _index(index: Index) -> dict[str, Any]:
    return {
        "id": index.id,
        "name": index.name,
        "key": list(index.key),
        "unique": index.unique,
        "include": list(index.include),
        "state": index.state.value,
        "descending": list(index.descending),
        "where": _expression(index.where),
        "nulls_distinct": index.nulls_distinct,
        "constraint": index.constraint,
        "source": index.source,
        **({"nulls_swapped": list(index.nulls_swapped)} if index.nulls_swapped else {}),
        **({"uncommitted": True} if index.uncommitted else {}),
    }


def _read_index(body: dict[str, Any]) -> Index:
    return Index(
        id=IndexId(body["id"]),
        name=body["name"],
        key=tuple(ColumnId(c) for c in body["key"]),
        unique=body["unique"],
        include=tuple(ColumnId(c) for c in body["include"]),
        state=State(body["state"]),
        descending=tuple(ColumnId(c) for c in body.get("descending", ())),
        where=_read_expression(body.get("where")),
        nulls_distinct=body.get("nulls_distinct", True),
        constraint=body.get("constraint", body["unique"]),
        source=IndexId(body["source"]) if body.get("source") is not None else None,
        nulls_swapped=tuple(ColumnId(c) for c in body.get("nulls_swapped", ())),
        uncommitted=body.get("uncommitted", False),
    )
