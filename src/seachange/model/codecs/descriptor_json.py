"""Table descriptors as JSON text, the form in which the commit log keeps them; derived from the dataclasses.

A dataclass is an object with a member for each field, or a list of its fields if it is a small one; an enum is its
value, a tuple a list.

**Invariant:** bodies of every release can be read: a field that a body lacks has its default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from seachange.model.codecs.layout_json import decode_layouts, encode_layouts
from seachange.model.schema.access import PartComment, RolePrivileges
from seachange.model.schema.constraint import Check, ForeignKey
from seachange.model.schema.descriptor import Column, Identity, Index, Table
from seachange.model.schema.expression import Expression
from seachange.values.types import SqlType

Read = Callable[[Any], Any]

_LISTS: Final = (SqlType, Expression, Identity, RolePrivileges, PartComment)
# The last field that is in every body. A later one is left out where it has its default, so that an older program reads
# whatever does not use it. In other classes every field is written.
_LAST_WRITTEN: Final[dict[type, str]] = {
    Column: "origin",
    Index: "source",
    Check: "state",
    ForeignKey: "state",
    SqlType: "enum",
}


def encode_table(table: Table) -> str:
    body = {
        name: encode_layouts(table.layouts, _write) if name == "layouts" else _write(value)
        for name, value in _written_fields(table)
    }
    return json.dumps(body, separators=(",", ":"))


def decode_table(text: str) -> Table:
    body = json.loads(text)
    layouts = tuple(decode_layouts(body.pop("layouts"), _reader(SqlType)))
    for index in filter(None, (body["primary"], *body["secondary"], body.get("next_primary"))):
        # Before there were bare unique indexes, each was a constraint.
        index.setdefault("constraint", index["unique"])
    return Table(layouts=layouts, **_read_fields(Table, body))


def _write(value: Any) -> Any:
    if is_dataclass(value):
        written = {name: _write(part) for name, part in _written_fields(value)}
        return list(written.values()) if isinstance(value, _LISTS) else written
    if isinstance(value, tuple):
        return [_write(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def _written_fields(value: Any) -> Iterator[tuple[str, Any]]:
    class_: Any = type(value)
    always, later = _split_fields(class_)
    yield from ((field.name, getattr(value, field.name)) for field in always)
    yield from ((f.name, getattr(value, f.name)) for f in later if getattr(value, f.name) != f.default)


@cache
def _split_fields(class_: Any) -> tuple[tuple[Field[Any], ...], tuple[Field[Any], ...]]:
    every = fields(class_)
    last = _LAST_WRITTEN.get(class_, every[-1].name)
    count = [field.name for field in every].index(last) + 1
    return every[:count], every[count:]


@cache
def _reader(type_: Any) -> Read:
    """Makes a value of the type from its JSON value."""
    items = get_args(type_)
    if isinstance(type_, UnionType):
        (read,) = (_reader(item) for item in items if item is not NoneType)
        return lambda body: None if body is None else read(body)
    if get_origin(type_) is tuple and items[-1] is Ellipsis:
        read_item = _reader(items[0])
        return lambda body: tuple(map(read_item, body))
    if get_origin(type_) is tuple:
        readers = tuple(map(_reader, items))
        return lambda body: tuple(read(item) for read, item in zip(readers, body, strict=True))
    if not isinstance(type_, type):
        return _same
    if type_ in _LISTS:
        return lambda body: type_(**_read_fields(type_, dict(zip(_readers(type_), body, strict=False))))
    if is_dataclass(type_):
        return lambda body: type_(**_read_fields(type_, body))
    return type_ if issubclass(type_, Enum) else _same


def _same(body: Any) -> Any:
    return body


def _read_fields(class_: type, body: dict[str, Any]) -> dict[str, Any]:
    return {name: read(body[name]) for name, read in _readers(class_).items() if name in body}


@cache
def _readers(class_: type) -> dict[str, Read]:
    types = get_type_hints(class_)
    return {field.name: _reader(types[field.name]) for field in fields(class_)}
