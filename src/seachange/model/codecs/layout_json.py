"""The layouts of a table as JSON.

A table gets a layout with every column that comes or goes, and keeps it for as long as files have it: written out, they
would make each version as large as all the versions before it. So each but the first is written as what it does to the
one before: columns that go, and columns that come at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from seachange.model.ids import ColumnId, LayoutId
from seachange.model.schema.descriptor import Layout
from seachange.values.types import SqlType

TypedColumns = tuple[tuple[ColumnId, SqlType], ...]
WriteType = Callable[[SqlType], list[Any]]
ReadType = Callable[[list[Any]], SqlType]


def encode_layouts(layouts: Sequence[Layout], write_type: WriteType) -> list[list[Any]]:
    """`[id, columns]` of a layout that stands alone, `[id, columns that come, ids that go]` of one that follows."""
    written = []
    before: TypedColumns = ()
    for layout in layouts:
        gone = {c for c, _ in before}.difference(c for c, _ in layout.columns)
        kept = _without(before, gone)
        follows = bool(kept) and layout.columns[: len(kept)] == kept
        coming = layout.columns[len(kept) :] if follows else layout.columns
        columns = [[c, write_type(t)] for c, t in coming]
        written.append([layout.id, columns, sorted(gone)] if follows else [layout.id, columns])
        before = layout.columns
    return written


def decode_layouts(bodies: Sequence[list[Any]], read_type: ReadType) -> Iterator[Layout]:
    before: TypedColumns = ()
    for id_, columns, *gone in bodies:
        coming = tuple((ColumnId(c), read_type(t)) for c, t in columns)
        before = _without(before, set(gone[0])) + coming if gone else coming
        yield Layout(LayoutId(id_), before)


def _without(columns: TypedColumns, gone: set[ColumnId]) -> TypedColumns:
    return tuple(column for column in columns if column[0] not in gone) if gone else columns
