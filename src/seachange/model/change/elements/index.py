"""Elements of indexes.

`built`: the entries need no building, because there are none or because they were kept. `source_id` is the new primary
index that the entries are made from; without one, the present primary index. `uncommitted`: a transaction block
adds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from seachange.model.ids import ColumnId, IndexId, TableId
from seachange.model.schema.expression import Expression


@dataclass(frozen=True, slots=True)
class PrimaryIndex:
    """`rebuilt_ids` are the columns whose values come into being with it, `replaces_id` the index that it takes over
    from, and `proof_id` the unique index that shows its key to be one."""

    table_id: TableId
    index_id: IndexId
    key: tuple[ColumnId, ...]
    descending: tuple[ColumnId, ...] = ()
    rebuilt_ids: tuple[ColumnId, ...] = field(default=(), compare=False)
    replaces_id: IndexId | None = field(default=None, compare=False)
    proof_id: IndexId | None = field(default=None, compare=False)
    built: bool = field(default=False, compare=False)

    @property
    def column_ids(self) -> tuple[ColumnId, ...]:
        return self.key


@dataclass(frozen=True, slots=True)
class SecondaryIndex:
    table_id: TableId
    index_id: IndexId
    key: tuple[ColumnId, ...]
    include: tuple[ColumnId, ...] = ()
    descending: tuple[ColumnId, ...] = ()
    where: Expression | None = None
    nulls_swapped: tuple[ColumnId, ...] = ()
    built: bool = field(default=False, compare=False)
    source_id: IndexId | None = field(default=None, compare=False)

    @property
    def column_ids(self) -> tuple[ColumnId, ...]:
        return _indexed(self)


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    table_id: TableId
    index_id: IndexId
    key: tuple[ColumnId, ...]
    include: tuple[ColumnId, ...] = ()
    descending: tuple[ColumnId, ...] = ()
    where: Expression | None = None
    nulls_distinct: bool = True
    nulls_swapped: tuple[ColumnId, ...] = ()
    built: bool = field(default=False, compare=False)
    source_id: IndexId | None = field(default=None, compare=False)
    uncommitted: bool = field(default=False, compare=False)

    @property
    def column_ids(self) -> tuple[ColumnId, ...]:
        return _indexed(self)


def _indexed(index: SecondaryIndex | UniqueIndex) -> tuple[ColumnId, ...]:
    condition = index.where.columns if index.where is not None else ()
    return tuple(dict.fromkeys((*index.key, *index.include, *condition)))


@dataclass(frozen=True, slots=True)
class IndexName:
    table_id: TableId
    index_id: IndexId
    name: str


@dataclass(frozen=True, slots=True)
class KeyConstraint:
    """Makes a unique index a UNIQUE or PRIMARY KEY constraint, which bears the index's name."""

    table_id: TableId
    index_id: IndexId


@dataclass(frozen=True, slots=True)
class IndexData:
    """The files and batches of an index, from its first write until they are collected."""

    table_id: TableId
    index_id: IndexId


AnyIndex = PrimaryIndex | SecondaryIndex | UniqueIndex
# What comes and goes with its index.
IndexPart = IndexName | KeyConstraint
IndexTopic = AnyIndex | IndexPart | IndexData
