"""How a row of a table becomes index entries; compiled once per version of the table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from seachange.engine.encode.check_rows import RowChecks, compile_checks
from seachange.engine.encode.derive import Derivation, Failures, compile_derivation, member_position
from seachange.model.ids import ColumnId, IndexId, LayoutId, TableId
from seachange.model.schema.constraint import ForeignKey
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.states import BEHAVIOUR, RECORDING, REFUSING, Behaviour, Checking, State
from seachange.sql.duck.default_text import is_drawn
from seachange.sql.query.implied import PredicateTerm, read_predicate
from seachange.storage.batches import BatchCodec
from seachange.storage.duck import Duck
from seachange.storage.keys import Key, KeyCodec
from seachange.storage.projection import StoredColumns, compile_row

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class EntryPlan:
    """The plan of one index: which positions of a row it stores, how its keys are encoded, and what its state requires.
    `holds_rows`: it is the primary index, or the one that will replace it."""

    table_id: TableId
    index: Index
    is_primary: bool
    holds_rows: bool
    behaviour: Behaviour
    layout_id: LayoutId
    columns: StoredColumns
    stored: Callable[[Row], Row]
    key_width: int
    unique_width: int
    codec: KeyCodec
    unique_codec: KeyCodec
    batch: BatchCodec
    # For a partial index, the position of its predicate in a derived row.
    member: int | None = None
    predicate: tuple[PredicateTerm, ...] = ()
    # Positions that must not be NULL for the row to have an entry.
    needed: tuple[int, ...] = ()
    # Columns whose compression is set, with the method.
    compression: tuple[tuple[ColumnId, str], ...] = ()

    def has_entry(self, row: Row) -> bool:
        """Whether the index has an entry for a derived row."""
        if self.needed and any(row[position] is None for position in self.needed):
            return False
        return self.member is None or row[self.member] is True

    def will_have_entry(self, row: Row) -> bool:
        """Whether the entry of a new version of a row is written."""
        return self.behaviour.writes and self.has_entry(row)

    @property
    def checks(self) -> bool:
        """Whether a duplicate key is refused. Before that state, writers only declare their keys."""
        return self.behaviour.checks is Checking.REFUSED

    @property
    def looks_for_duplicates(self) -> bool:
        """Whether a duplicate key is refused, or recorded because the transaction that adds the index has not
        committed."""
        return self.behaviour.checks is not Checking.NONE

    def unique_key(self, stored: Row) -> Key | None:
        """The unique key of an entry; None if NULLs make it distinct from every other."""
        key = stored[: self.unique_width]
        return None if not self.unique_width or (None in key and self.index.nulls_distinct) else key

    def codec_for(self, table: Table, layout_id: LayoutId) -> BatchCodec:
        """The codec of a batch that may have been written in another layout."""
        if layout_id == self.layout_id:
            return self.batch
        return BatchCodec(table.stored_columns(self.index, table.layout_by_id[layout_id]))


@dataclass(frozen=True, slots=True)
class WritePlan:
    table: Table
    entries: tuple[EntryPlan, ...]
    required: tuple[tuple[int, Column], ...]
    # The position of the hidden row number, and whether it is the primary key, so that no other row has the same key.
    rowid: int | None
    has_hidden_key: bool
    # Columns that are not public yet and whose values are drawn.
    drawn: tuple[tuple[int, Column], ...]
    checks: RowChecks | None
    # Violations of these are recorded, not refused.
    recorded_checks: RowChecks | None
    recorded_nulls: tuple[tuple[int, Column], ...]
    derivation: Derivation | None
    # Foreign keys, each with the function that extracts its key from a row.
    foreign_keys: tuple[tuple[ForeignKey, Callable[[Row], Key]], ...]

    def derive(self, rows: Sequence[Row], duck: Duck, failed: Failures | None = None) -> Sequence[Row]:
        """The rows with the values that their entries need; `failed` receives conversion errors."""
        return rows if self.derivation is None else self.derivation.derive(rows, duck, failed)

    def fill(self, rows: Sequence[Row], duck: Duck) -> Sequence[Row]:
        """The rows with the values of columns that are computed."""
        if self.derivation is None or not self.derivation.fills:
            return rows
        width = len(self.table.columns)
        return [row[:width] for row in self.derivation.derive(rows, duck)]

    @property
    def primary(self) -> EntryPlan:
        return self.entries[0]

    def entry(self, index_id: IndexId) -> EntryPlan:
        return next(entry for entry in self.entries if entry.index.id == index_id)


def compile_write_plan(table: Table) -> WritePlan:
    positions = {column.id: i for i, column in enumerate(table.columns)}
    rowid = next((c for c in table.columns if c.is_row_id), None)
    return WritePlan(
        table=table,
        entries=tuple(_entry_plan(table, index, positions) for index in table.maintained),
        required=tuple((positions[c.id], c) for c in table.columns if _is_required(c, REFUSING)),
        rowid=None if rowid is None else positions[rowid.id],
        has_hidden_key=rowid is not None and rowid.id in table.primary.key,
        drawn=tuple((positions[c.id], c) for c in table.columns if is_drawn_unseen(c)),
        checks=compile_checks(table),
        recorded_checks=compile_checks(table, RECORDING),
        recorded_nulls=tuple((positions[c.id], c) for c in table.columns if _is_required(c, RECORDING)),
        derivation=compile_derivation(table),
        foreign_keys=tuple((key, pick_columns(table, key.columns)) for key in table.foreign_keys),
    )


def is_drawn_unseen(column: Column) -> bool:
    """Whether each row gets a drawn value for a column that its writer cannot name yet."""
    is_unseen = column.state is not State.PUBLIC and column.conversion is None
    return is_unseen and column.frozen is None and (is_drawn(column) or column.is_row_id)


def _is_required(column: Column, states: Collection[State]) -> bool:
    """A missing value of a computed column is recorded, and makes its schema change fail instead of the write."""
    is_converted = column.conversion is not None or (column.generated is not None and column.state is not State.PUBLIC)
    return not column.nullable and column.not_null in states and not is_converted


def pick_columns(table: Table, columns: Sequence[ColumnId]) -> Callable[[Row], Key]:
    """The function that extracts the values of these columns from a row of the table."""
    positions = {column.id: i for i, column in enumerate(table.columns)}
    return _pick(tuple(positions[c] for c in columns))


def _entry_plan(table: Table, index: Index, positions: dict[Any, int]) -> EntryPlan:
    is_primary = index.id == table.primary.id
    columns = table.stored_columns(index, table.layout)
    types = dict(columns)
    key = table.entry_key(index)
    holds_rows = table.holds_rows(index)
    unique = index.key if index.unique and not holds_rows else ()
    return EntryPlan(
        table_id=table.id,
        index=index,
        is_primary=is_primary,
        holds_rows=holds_rows,
        behaviour=BEHAVIOUR[index.state],
        layout_id=table.layout.id,
        columns=columns,
        stored=_pick(tuple(positions[c] for c, _ in columns)),
        key_width=len(key),
        unique_width=len(unique),
        codec=KeyCodec([types[c] for c in key]),
        unique_codec=KeyCodec([types[c] for c in unique]),
        batch=BatchCodec(columns),
        member=None if index.where is None else member_position(table, index),
        predicate=() if index.where is None else read_predicate(index.where, table),
        needed=tuple(positions[c] for c in table.needed_for(index)),
        compression=table.compression,
    )


def _pick(positions: tuple[int, ...]) -> Callable[[Row], Row]:
    if positions == tuple(range(len(positions))):
        return _whole(len(positions))
    if len(positions) == 1:
        only = positions[0]
        return lambda row: (row[only],)
    return itemgetter(*positions)


def _whole(width: int) -> Callable[[Row], Row]:
    return lambda row: row if len(row) == width else row[:width]


def compile_read(table: Table, index: Index, layout_id: LayoutId) -> Callable[[Row], Row] | None:
    """From a stored row of the primary index to a row of `table`; None if they are the same."""
    return compile_row(table.stored_columns(index, table.layout_by_id[layout_id]), table.columns)
