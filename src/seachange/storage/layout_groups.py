"""Layouts whose parts are read together: a scan costs as much as its files, however many layouts they have.

**Invariant:** in a group, each column that a query needs is stored with one type, from some layout on; parts of earlier
ones, which lack it, come first. Their rows have the value frozen when the column was added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

import pyarrow as pa

from seachange.model.ids import ColumnId, LayoutId
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.storage.arrow import arrow_type, column_name
from seachange.storage.projection import Frozen, Source, Stored, StoredColumns, literal, read_source, sources
from seachange.storage.small_arrays import array_of

# Arrow tables of fewer rows are read faster as one.
_CHUNK_ROWS_MIN = 2_048


@dataclass(frozen=True, slots=True)
class GroupedLayout:
    id: LayoutId
    stored: StoredColumns
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class GroupedColumn:
    """`lacking` are how many of the layouts, the first ones, lack the column; `frozen` is its value there."""

    column: Column
    newest: Source
    lacking: int
    frozen: object

    @property
    def name(self) -> str:
        return column_name(self.column.id)


@dataclass(frozen=True)
class LayoutGroup:
    columns: tuple[Column, ...]
    layouts: tuple[GroupedLayout, ...]

    def takes(self, layout: GroupedLayout) -> bool:
        """Whether a later layout fits into the group."""
        return all(map(_follows, self.layouts[-1].sources, layout.sources))

    @cached_property
    def _columns(self) -> tuple[GroupedColumn, ...]:
        found = []
        for place, (column, newest) in enumerate(zip(self.columns, self.layouts[-1].sources, strict=True)):
            first = self.layouts[0].sources[place]
            lacking = sum(isinstance(layout.sources[place], Frozen) for layout in self.layouts)
            found.append(GroupedColumn(column, newest, lacking, first.value if isinstance(first, Frozen) else None))
        return tuple(found)

    def select(self, counts: Sequence[int], parameter: Callable[[object], str]) -> FileSelect:
        """The select list for files: so many of each layout, in their order."""
        before = [0, *accumulate(counts)]
        parts, is_mixed = [], False
        for each in self._columns:
            lacking = before[each.lacking]
            if lacking == before[-1]:
                parts.append(f"{literal(each.column.type, each.frozen)} AS {each.name}")
                continue
            text = read_source(each.newest, each.column)
            is_mixed = is_mixed or lacking > 0
            if lacking and each.frozen is not None:
                # Its own NULLs are none of the files that lack it.
                frozen = literal(each.column.type, each.frozen)
                text = f"CASE WHEN file_index < {parameter(lacking)} THEN {frozen} ELSE {text} END"
            parts.append(f"{text} AS {each.name}")
        return FileSelect(", ".join(parts), is_mixed)

    def select_rows(self) -> str:
        """The select list for `rows`."""
        return ", ".join(f"{read_source(each.newest, each.column)} AS {each.name}" for each in self._columns)

    def rows(self, tables: Sequence[Sequence[pa.Table]]) -> pa.Table:
        """The Arrow tables of each layout as one."""
        every = [table for own in tables for table in own]
        oldest = next(place for place, own in enumerate(tables) if own)
        if len(every) == 1 and all(each.lacking <= oldest for each in self._columns):
            return every[0]
        before = [0, *accumulate(len(own) for own in tables)]
        arrays, fields = [], []
        for each in self._columns:
            if not isinstance(each.newest, Stored):
                continue
            type_ = arrow_type(each.newest.old)
            first = before[each.lacking]
            chunks = []
            missing = sum(table.num_rows for table in every[:first])
            if missing:
                chunks.append(pa.repeat(array_of([each.frozen], type_)[0], missing))
            for table in every[first:]:
                held = table.column(each.name)
                chunks += held.chunks if held.type == type_ else held.cast(type_).chunks
            array = pa.chunked_array(chunks, type_)
            small = array.num_chunks * _CHUNK_ROWS_MIN > len(array)
            arrays.append(array.combine_chunks() if small else array)
            fields.append(pa.field(each.name, type_))
        if not fields:
            count = sum(table.num_rows for table in every)
            return pa.table({"nothing": pa.nulls(count)})
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


@dataclass(frozen=True, slots=True)
class FileSelect:
    """`is_mixed`: some of the files lack some of the columns."""

    names: str
    is_mixed: bool

    @property
    def options(self) -> str:
        return ", union_by_name = true" if self.is_mixed else ""


def group_layouts(
    table: Table, index: Index, layouts: Iterable[LayoutId], columns: Sequence[Column]
) -> tuple[LayoutGroup, ...]:
    """In the order of the layouts. What is read of a column follows from its id and the version of the table."""
    own = tuple((column.id, column.type == table.column_by_id[column.id].type) for column in columns)
    if all(is_same for _, is_same in own):
        return _group(SameTable(table), index, tuple(layouts), tuple(id_ for id_, _ in own))
    return _grouped(table, index, layouts, tuple(columns))


@dataclass(frozen=True, slots=True, eq=False)
class SameTable:
    """A table as the key of a cache: the same object."""

    table: Table

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameTable) and self.table is other.table

    def __hash__(self) -> int:
        return id(self.table)


@lru_cache(maxsize=256)
def _group(
    same: SameTable, index: Index, layouts: tuple[LayoutId, ...], columns: tuple[ColumnId, ...]
) -> tuple[LayoutGroup, ...]:
    known = same.table.column_by_id
    return _grouped(same.table, index, layouts, tuple(known[column_id] for column_id in columns))


def _grouped(
    table: Table, index: Index, layouts: Iterable[LayoutId], columns: tuple[Column, ...]
) -> tuple[LayoutGroup, ...]:
    groups: list[LayoutGroup] = []
    for id_ in layouts:
        stored = table.stored_columns(index, table.layout_by_id[id_])
        layout = GroupedLayout(id_, stored, sources(stored, columns))
        if groups and groups[-1].takes(layout):
            groups[-1] = LayoutGroup(columns, (*groups[-1].layouts, layout))
        else:
            groups.append(LayoutGroup(columns, (layout,)))
    return tuple(groups)


def _follows(before: Source, after: Source) -> bool:
    """Positions do not matter: columns are read by name."""
    if isinstance(before, Stored):
        return isinstance(after, Stored) and before.old == after.old
    return isinstance(after, Stored) or before == after
