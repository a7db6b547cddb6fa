"""Descriptors as JSON text, the form in which the commit log keeps them.

Those of tables have a form of their own, derived from the dataclasses, which reads older ones too: a dataclass is an
object with a member for each field, or a list of its fields if it is a small one; an enum is its value, a tuple a list.

**Invariant:** bodies of every release can be read: a field that a body lacks has its default.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, lru_cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Final, Generic, TypeVar, get_args, get_origin, get_type_hints

from seachange.model.codecs.codec import Codec
from seachange.model.ids import ColumnId, LayoutId
from seachange.model.schema.access import PartComment, RolePrivileges
from seachange.model.schema.constraint import Check, ForeignKey
from seachange.model.schema.descriptor import Column, Identity, Index, Layout, RetiredColumn, Table
from seachange.model.schema.expression import Expression
from seachange.model.schema.objects import Descriptor
from seachange.values.types import SqlType

_SEPARATORS: Final = (",", ":")
_LAYOUTS_PLACE: Final = '"layouts":null'
# The first such place of a table: its columns come before all other parts.
_COLUMNS_PLACE: Final = '"columns":null'
_RETIRED_PLACE: Final = '"retired":null'

Read = Callable[[Any], Any]
Write = Callable[[Any], Any]

_LISTS: Final = (SqlType, Expression, Identity, RolePrivileges, PartComment)
# The last field that is in every body. A later one is left out where it has its default, so that an older program reads
# whatever does not use it. In other classes every field is written.
_LAST_WRITTEN: Final[dict[type, str]] = {
    Column: "origin",
    Index: "source",
    Check: "state",
    ForeignKey: "state",
    SqlType: "enum",
    Table: "access",
}


def encode_table(table: Table) -> str:
    text = json.dumps(_fields_writer(Table)(table), separators=_SEPARATORS)
    # Quotes inside of a string are escaped: no other place looks like these.
    columns = ",".join(map(_column_text, table.columns))
    text = text.replace(_COLUMNS_PLACE, f'"columns":[{columns}]', 1)
    if table.retired:
        text = text.replace(_RETIRED_PLACE, f'"retired":[{RETIRED_TEXTS.encode(table.retired)}]', 1)
    return text.replace(_LAYOUTS_PLACE, f'"layouts":[{LAYOUT_TEXTS.encode(table.layouts)}]', 1)


# Most columns of a table are in its next version what they were in the last.
@lru_cache(maxsize=8192)
def _column_text(column: Column) -> str:
    return json.dumps(_fields_writer(Column)(column), separators=_SEPARATORS)


def decode_table(text: str) -> Table:
    body = json.loads(text)
    layouts = tuple(decode_layouts(body.pop("layouts"), _reader(SqlType)))
    for index in filter(
        None, (body["primary"], *body["secondary"], body.get("next_primary"), *body.get("later_primaries", ()))
    ):
        # Before there were bare unique indexes, each was a constraint.
        index.setdefault("constraint", index["unique"])
    return Table(layouts=layouts, **_read_fields(Table, body))


@cache
def _writer(type_: Any) -> Write | None:
    """Makes the JSON value of a value of the type; None if they are the same."""
    items = get_args(type_)
    if type_ in (tuple[Layout, ...], tuple[Column, ...], tuple[RetiredColumn, ...]):
        return _leave_out
    if isinstance(type_, UnionType):
        (write,) = (_writer(item) for item in items if item is not NoneType)
        return None if write is None else lambda value: None if value is None else write(value)
    if get_origin(type_) is tuple and items[-1] is Ellipsis:
        write_item = _writer(items[0])
        return list if write_item is None else lambda value: [write_item(item) for item in value]
    if get_origin(type_) is tuple:
        writers = tuple(map(_writer, items))
        return lambda value: [w(part) if w is not None else part for w, part in zip(writers, value, strict=True)]
    if not isinstance(type_, type) or not (is_dataclass(type_) or issubclass(type_, Enum)):
        return None
    if issubclass(type_, Enum):
        return attrgetter("value")
    # A type may have fields of its own type: how they are written is looked up when they are.
    is_list = type_ in _LISTS

    def write_object(value: Any) -> Any:
        body = _fields_writer(type_)(value)
        return list(body.values()) if is_list else body

    return write_object


@lru_cache(maxsize=1024)
def _write_type(type_: SqlType) -> list[Any]:
    return list(_fields_writer(SqlType)(type_).values())


@cache
def _fields_writer(class_: Any) -> Callable[[Any], dict[str, Any]]:
    types = get_type_hints(class_)
    every = fields(class_)
    last = _LAST_WRITTEN.get(class_, every[-1].name)
    count = [field.name for field in every].index(last) + 1
    always = tuple(field.name for field in every[:count])
    # One field makes no tuple of its own.
    get = attrgetter(*always) if count > 1 else lambda value: (getattr(value, always[0]),)
    made = tuple((field.name, write) for field in every if (write := _writer(types[field.name])) is not None)

    def write_fields(value: Any) -> dict[str, Any]:
        body = dict(zip(always, get(value), strict=True))
        for field in every[count:]:
            part = getattr(value, field.name)
            if part != field.default:
                body[field.name] = part
        for name, write in made:
            if name in body:
                body[name] = write(body[name])
        return body

    return write_fields


@cache
def _reader(type_: Any) -> Read:
    """Makes a value of the type from its JSON value."""
    items = get_args(type_)
    if isinstance(type_, UnionType):
        (read,) = (_reader(item) for item in items if item is not NoneType)
        return read if read is _same else lambda body: None if body is None else read(body)
    if get_origin(type_) is tuple and items[-1] is Ellipsis:
        read_item = _reader(items[0])
        return tuple if read_item is _same else lambda body: tuple(map(read_item, body))
    if get_origin(type_) is tuple:
        readers = tuple(map(_reader, items))
        return lambda body: tuple(read(item) for read, item in zip(readers, body, strict=True))
    if not isinstance(type_, type):
        return _same
    if type_ is SqlType:
        return _read_type
    if type_ in _LISTS:
        names = [field.name for field in fields(type_)]
        return lambda body: type_(**_read_fields(type_, dict(zip(names, body, strict=False))))
    if is_dataclass(type_):
        return lambda body: type_(**_read_fields(type_, body))
    return _enum_reader(type_) if issubclass(type_, Enum) else _same


def _same(body: Any) -> Any:
    return body


def _enum_reader(type_: type[Enum]) -> Read:
    members = {member.value: member for member in type_}
    # The class says what is wrong with a value that it lacks.
    return lambda body: members[body] if body in members else type_(body)


def _read_type(body: list[Any]) -> SqlType:
    # That of an array has another one in it.
    return _read_plain_type(tuple(body)) if list not in map(type, body) else _type_from(body)


@lru_cache(maxsize=1024)
def _read_plain_type(body: tuple[Any, ...]) -> SqlType:
    return _type_from(body)


def _type_from(body: Sequence[Any]) -> SqlType:
    return SqlType(**_read_fields(SqlType, dict(zip(_known_fields(SqlType), body, strict=False))))


def _read_fields(class_: type, body: dict[str, Any]) -> dict[str, Any]:
    """Changes the body, which is of no other use."""
    known = _known_fields(class_)
    if not body.keys() <= known.keys():
        # A later release knows more.
        body = {name: value for name, value in body.items() if name in known}
    for name, read in _made_fields(class_):
        if name in body:
            body[name] = read(body[name])
    return body


@cache
def _known_fields(class_: type) -> dict[str, Read]:
    types = get_type_hints(class_)
    return {field.name: _reader(types[field.name]) for field in fields(class_)}


@cache
def _made_fields(class_: type) -> tuple[tuple[str, Read], ...]:
    """Those whose values are not those of JSON."""
    return tuple((name, read) for name, read in _known_fields(class_).items() if read is not _same)


# The layouts of a table as JSON.
# A table gets a layout with every column that comes or goes, and keeps it for as long as files have it: written out,
# they would make each version as large as all the versions before it. So each but the first is written as what it does
# to the one before: columns that go, and columns that come at the end.
TypedColumns = tuple[tuple[ColumnId, SqlType], ...]
WriteType = Callable[[SqlType], list[Any]]
ReadType = Callable[[list[Any]], SqlType]


def encode_layouts(layouts: Sequence[Layout], write_type: WriteType) -> list[list[Any]]:
    """`[id, columns]` of a layout that stands alone, `[id, columns that come, ids that go]` of one that follows."""
    written = []
    before: TypedColumns = ()
    for layout in layouts:
        gone: set[ColumnId] = set()
        if layout.columns[: len(before)] != before:
            gone = {c for c, _ in before}.difference([c for c, _ in layout.columns])
        kept = _without(before, gone)
        follows = bool(kept) and layout.columns[: len(kept)] == kept
        coming = layout.columns[len(kept) :] if follows else layout.columns
        columns = [[c, write_type(t)] for c, t in coming]
        written.append([layout.id, columns, sorted(gone)] if follows else [layout.id, columns])
        before = layout.columns
    return written


def _leave_out(parts: Sequence[Layout | Column | RetiredColumn]) -> None:
    """They are put into the text where the null is."""


_KEPT_LISTS_MAX = 64

T = TypeVar("T")


class ListTexts(Generic[T]):
    """The texts of lists that grow at their end, so that a version costs as much as it adds to the one before: a table
    that has had many columns has many layouts, and many columns that are gone. `write` makes the JSON values of the
    items of a list from a place on.

    **Invariant:** a text is that of the same items, by identity; they are kept with it.
    """

    def __init__(self, write: Callable[[Sequence[T], int], Sequence[Any]]) -> None:
        self.write = write
        self._lock = threading.Lock()
        # By their first item.
        self._kept: OrderedDict[int, tuple[tuple[T, ...], str]] = OrderedDict()

    def encode(self, items: tuple[T, ...]) -> str:
        if not items:
            return ""
        key = id(items[0])
        with self._lock:
            known, text = self._kept.get(key, ((), ""))
        count = len(known)
        # The comparison ends at once for each item that is the same object.
        if not count or known[0] is not items[0] or items[:count] != known:
            count, text = 0, ""
        added = self.write(items, count)
        text = ",".join([*filter(None, [text]), *(json.dumps(each, separators=_SEPARATORS) for each in added)])
        with self._lock:
            self._kept[key] = items, text
            self._kept.move_to_end(key)
            if len(self._kept) > _KEPT_LISTS_MAX:
                self._kept.popitem(last=False)
        return text


def _write_layouts(layouts: Sequence[Layout], first: int) -> list[list[Any]]:
    return encode_layouts(layouts[max(first - 1, 0) :], _write_type)[1 if first else 0 :]


def _write_retired(columns: Sequence[RetiredColumn], first: int) -> list[dict[str, Any]]:
    write = _fields_writer(RetiredColumn)
    return [write(each) for each in columns[first:]]


LAYOUT_TEXTS = ListTexts(_write_layouts)
RETIRED_TEXTS = ListTexts(_write_retired)


def decode_layouts(bodies: Sequence[list[Any]], read_type: ReadType) -> Iterator[Layout]:
    before: TypedColumns = ()
    for id_, columns, *gone in bodies:
        coming = tuple((ColumnId(c), read_type(t)) for c, t in columns)
        before = _without(before, set(gone[0])) + coming if gone else coming
        yield Layout(LayoutId(id_), before)


def _without(columns: TypedColumns, gone: set[ColumnId]) -> TypedColumns:
    return tuple(column for column in columns if column[0] not in gone) if gone else columns


OBJECT_CODEC = Codec(*(kind for kind in get_args(Descriptor) if kind is not Table))
# How the text of an object begins.
_OBJECT = '{"="'


_KEPT_MAX = 64


class KeptDescriptors:
    """Descriptors by their texts. A node meets the same text more than once: when it publishes it, when it follows the
    log, and in its history."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Descriptor] = OrderedDict()

    def find(self, text: str) -> Descriptor | None:
        with self._lock:
            found = self._kept.get(text)
            if found is not None:
                self._kept.move_to_end(text)
            return found

    def keep(self, text: str, descriptor: Descriptor) -> None:
        with self._lock:
            self._kept[text] = descriptor
            if len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


KEPT = KeptDescriptors()


def encode_descriptor(descriptor: Descriptor) -> str:
    if not isinstance(descriptor, Table):
        return OBJECT_CODEC.encode(descriptor)
    text = encode_table(descriptor)
    KEPT.keep(text, descriptor)
    return text


def decode_descriptor(text: str) -> Descriptor:
    found = KEPT.find(text)
    if found is None:
        found = OBJECT_CODEC.decode(text) if text.startswith(_OBJECT) else decode_table(text)
        KEPT.keep(text, found)
    return found
