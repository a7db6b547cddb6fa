"""Table descriptors: the definition of a table at one version.

**Invariant:** column, index, layout and constraint ids are never reused within a table, but for a dropped column that a
revert brings back; a layout never changes once published.
**Invariant:** a row without a value for its new primary key has no entry in the new primary index, nor in indexes built
from it (`Table.needed_for`): two such rows would be one entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from seachange.model.ids import ColumnId, ConstraintId, DescriptorId, IndexId, LayoutId, TableId
from seachange.model.schema.access import Access
from seachange.model.schema.constraint import Check, ForeignKey, column_reference
from seachange.model.schema.expression import Expression
from seachange.model.schema.materialized import MaterializedQuery
from seachange.model.states import BEHAVIOUR, READABLE, State
from seachange.values.types import SqlType


@dataclass(frozen=True, slots=True)
class Identity:
    """GENERATED AS IDENTITY: values come from a sequence, always or by default."""

    sequence_id: DescriptorId
    always: bool


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `default` is bound canonical SQL text, evaluated at write time; `frozen` is the text form of the value
    that rows have which were written before the column existed. `not_null` is the state of the NOT NULL constraint of a
    column that is not nullable. A column `generated` from others is stored with the row or, if `virtual`, only in the
    indexes that have it as a key. A column with a `conversion` is going to replace another, from whose values it is
    computed; one with an `origin` replaced it when the table was empty, and is computed from it for rows of writers
    with an older version. `default_sequences` are the sequences that the default draws from.
    `compression` is the method for its values in new files; None: chosen by the values. `statistics_target` is kept for
    clients; None: the default. `up` computes it for rows that are written in an earlier shape of the table. A column
    with `restored_as_of` has been dropped and is coming back, with the values that rows had then."""

    id: ColumnId
    name: str
    type: SqlType
    nullable: bool = True
    default: str | None = None
    frozen: str | None = None
    hidden: bool = False
    state: State = State.PUBLIC
    not_null: State = State.PUBLIC
    generated: Expression | None = None
    virtual: bool = False
    conversion: Expression | None = None
    identity: Identity | None = None
    default_sequences: tuple[DescriptorId, ...] = ()
    origin: Expression | None = None
    compression: str | None = None
    statistics_target: int | None = None
    up: Expression | None = None
    restored_as_of: int | None = None

    @property
    def from_earlier(self) -> Expression | None:
        """What computes it from the columns that there were when it came."""
        return self.up if self.up is not None else self.origin

    @property
    def completed(self) -> Expression | None:
        """Of a column that comes back and must not be NULL: its value, or what it is for rows that were not there."""
        if self.restored_as_of is None or self.up is None or self.nullable:
            return None
        own = column_reference(self.id)
        return Expression(f"COALESCE({own}, {self.up.text})", (self.id, *self.up.columns))

    @property
    def is_shown(self) -> bool:
        """Whether statements can name it."""
        return not self.hidden and self.state is State.PUBLIC

    @property
    def is_row_id(self) -> bool:
        """Whether it numbers the rows of a table without a primary key, or of one that is about to lose its own."""
        return self.hidden and self.generated is None


@dataclass(frozen=True, slots=True)
class Index:
    """An index. The primary one stores every column; a secondary one its key, the primary key and `include`.

    `descending` names the key columns in descending order, `nulls_swapped` those whose NULLs sort at the other end than
    by default; `where` the rows of a partial index (None: all); `constraint` distinguishes a UNIQUE or PRIMARY KEY
    constraint from a bare unique index. A key that is an expression is a hidden virtual column. `source` is the primary
    index under construction that it is built from, whose key its entries end in (None: the current one). `uncommitted`:
    it is added by a transaction block that has not committed, so writers neither wait nor fail because of its keys.
    """

    id: IndexId
    name: str
    key: tuple[ColumnId, ...]
    unique: bool = False
    include: tuple[ColumnId, ...] = ()
    state: State = State.PUBLIC
    descending: tuple[ColumnId, ...] = ()
    where: Expression | None = None
    nulls_distinct: bool = True
    constraint: bool = False
    source: IndexId | None = None
    nulls_swapped: tuple[ColumnId, ...] = ()
    uncommitted: bool = False

    def order_of(self, column_id: ColumnId) -> str:
        """The order of a key as CREATE INDEX writes it; empty for the default."""
        is_descending, is_swapped = column_id in self.descending, column_id in self.nulls_swapped
        if not is_swapped:
            return " DESC" if is_descending else ""
        return " DESC NULLS LAST" if is_descending else " NULLS FIRST"


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns, with their types, that a segment was written with."""

    id: LayoutId
    columns: tuple[tuple[ColumnId, SqlType], ...]


@dataclass(frozen=True, slots=True)
class RetiredColumn:
    """A column that is gone, as it was, and what its value is for those who still know it: `down` computes it from
    columns that there were when it went, which may have gone since. None: its rows have none."""

    column: Column
    down: Expression | None = None


@dataclass(frozen=True)
class Table:
    """One version of a table. Not slotted: the derived lookups below are computed once and cached."""

    id: TableId
    version: int
    schema: str
    name: str
    columns: tuple[Column, ...]
    primary: Index
    secondary: tuple[Index, ...]
    layouts: tuple[Layout, ...]
    next_column_id: ColumnId
    database: str = "seachange"
    checks: tuple[Check, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    next_constraint_id: ConstraintId = ConstraintId(1)  # noqa: RUF009 - a number
    # The primary index under construction that is going to replace `primary`.
    next_primary: Index | None = None
    access: Access = Access()  # noqa: RUF009 - a value
    # Those that are going to replace it in turn: a transaction block rewrites the rows more than once.
    later_primaries: tuple[Index, ...] = ()
    # The storage parameters that are set, by name.
    parameters: tuple[tuple[str, str], ...] = ()
    # The columns that have gone, in the order in which they did.
    retired: tuple[RetiredColumn, ...] = ()
    # Of a materialized view.
    materialized: MaterializedQuery | None = None

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def indexes(self) -> tuple[Index, ...]:
        return (self.primary, *self.secondary)

    @cached_property
    def maintained(self) -> tuple[Index, ...]:
        """The indexes that writers maintain, the primary one first."""
        every = (*self.secondary, *self.coming)
        return (self.primary, *(index for index in every if BEHAVIOUR[index.state].removes))

    @cached_property
    def readable(self) -> tuple[Index, ...]:
        """The indexes in which rows may be looked up."""
        return (self.primary, *(index for index in self.secondary if index.state in READABLE))

    @property
    def coming(self) -> tuple[Index, ...]:
        """The primary indexes under construction, each of which is going to replace the one before it."""
        return () if self.next_primary is None else (self.next_primary, *self.later_primaries)

    @property
    def layout(self) -> Layout:
        """The layout in which rows are written now."""
        return self.layouts[-1]

    @cached_property
    def visible_columns(self) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.is_shown)

    def label(self, column: Column) -> str:
        """The name of a column in a scan of all columns: one under construction may have the name of another."""
        return column.name if column.state is State.PUBLIC else f"{column.name} (column {column.id})"

    @cached_property
    def virtual_columns(self) -> tuple[Column, ...]:
        """The keys of indexes that are expressions: no layout contains them."""
        return tuple(c for c in self.columns if c.virtual)

    @cached_property
    def has_generated(self) -> bool:
        """Whether a stored column is generated from others."""
        return any(c.generated is not None and not c.virtual for c in self.columns)

    @cached_property
    def enum_places(self) -> tuple[int, ...]:
        """The positions of columns of enum types."""
        return tuple(place for place, column in enumerate(self.columns) if column.type.enum)

    @cached_property
    def column_by_id(self) -> dict[ColumnId, Column]:
        return {column.id: column for column in self.columns}

    @cached_property
    def retired_by_id(self) -> dict[ColumnId, RetiredColumn]:
        return {each.column.id: each for each in self.retired}

    @cached_property
    def column_by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.visible_columns}

    @cached_property
    def compression(self) -> tuple[tuple[ColumnId, str], ...]:
        """The columns whose compression is set, with the method."""
        return tuple((column.id, column.compression) for column in self.columns if column.compression is not None)

    @cached_property
    def layout_by_id(self) -> dict[LayoutId, Layout]:
        return {layout.id: layout for layout in self.layouts}

    @cached_property
    def index_by_id(self) -> dict[IndexId, Index]:
        return {index.id: index for index in (*self.indexes, *self.maintained)}

    def primary_of(self, index: Index) -> Index:
        """The primary index whose key the entries of an index end in."""
        if self.next_primary is None:
            return self.primary
        return next((each for each in self.coming if each.id in (index.id, index.source)), self.primary)

    def holds_rows(self, index: Index) -> bool:
        """Whether an index stores all columns: the primary one, and the one that is going to replace it."""
        return self.primary_of(index).id == index.id

    def is_plain(self, index: Index) -> bool:
        """Whether an index has an entry for every row, by values of the row itself."""
        whole = index.where is None and not self.needed_for(index)
        return whole and not any(self.column_by_id[c].virtual for c in index.key)

    def needed_for(self, index: Index) -> tuple[ColumnId, ...]:
        """The columns without which a row has no entry. The key of a primary index under construction may come from a
        conversion that has no value for a row: two such rows would be one entry, and could be lost with each other. The
        change is not published while there is such a row."""
        primary = self.primary_of(index)
        if primary.id == self.primary.id:
            return ()
        return tuple(c for c in primary.key if self.column_by_id[c].conversion is not None)

    def entry_key(self, index: Index) -> tuple[ColumnId, ...]:
        """The columns that identify an entry: the key, then the rest of the primary key."""
        primary = self.primary_of(index)
        if index.id == primary.id:
            return index.key
        return index.key + tuple(c for c in primary.key if c not in index.key)

    def stored_columns(self, index: Index, layout: Layout) -> tuple[tuple[ColumnId, SqlType], ...]:
        """The columns of a segment of `index` in `layout`, in storage order: the entry key first."""
        key = self.entry_key(index)
        types = {column.id: column.type for column in self.virtual_columns} | dict(layout.columns)
        if self.holds_rows(index):
            rest = tuple(c for c, _ in layout.columns if c not in key)
        else:
            rest = tuple(c for c in index.include if c in types and c not in key)
        return tuple((c, types[c]) for c in key + rest)
