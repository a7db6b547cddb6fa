"""Sessions that see tables in an earlier shape, and read and write the tables of now: `seachange.layout`.

**Invariant:** above a pin a table has the names, columns and types of then, below it those of the snapshot. No
plan of then is ever run: states, indexes and constraints are those of the snapshot.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from seachange import errors
from seachange.engine.buffer.current_statement import CurrentStatement
from seachange.engine.node.node import Node
from seachange.engine.replica.schema_history import Relation, SchemaVersion
from seachange.engine.transaction.transaction import Transaction
from seachange.model.condition import Condition
from seachange.model.ids import Seq, TableId
from seachange.model.locking import LockPolicy, LockStrength
from seachange.model.scan import Scan, ScanFacts
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.pinned import pin_table, table_now, widened_columns
from seachange.planner.known_schema import TableSize
from seachange.sql.compile.target import missing_values
from seachange.sql.parsing.mentions import Mentions
from seachange.sql.port.port import ReadPort, SequencePort, TransactionPort, WritePort
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.settings.setting_checks import parse_as_of
from seachange.storage.arrow import arrow_type
from seachange.storage.plan import quote
from seachange.values.coercion import coercer

SETTING = "seachange.layout"

Row = tuple[Any, ...]


class Pin:
    """The schema of then, with the tables that were made of it."""

    def __init__(self, text: str, then: SchemaVersion) -> None:
        self.text = text
        self._then = then
        self._shown: dict[tuple[TableId, frozenset[str]], tuple[Table, Table]] = {}

    def show(self, now: Table, statement: Mentions) -> Table:
        """A value that the type of then lacks is an error of statements that need the column."""
        then = self._then.by_id.get(now.id)
        if then is None:
            return now
        wide = frozenset(name for name in widened_columns(now, then) if not statement.includes(name))
        held = self._shown.get((now.id, wide))
        if held is None or held[0] is not now:
            # Plans are kept as long as their tables are the same.
            held = self._shown[now.id, wide] = (now, pin_table(now, then, wide))
        return held[1]

    def find(self, database: str, schema: str, name: str) -> TableId | None:
        """The table that had this name then."""
        found = self._then.within(database).by_name.get((schema, name))
        return found.id if found is not None else None


@dataclass(frozen=True, slots=True)
class PinOfStatement:
    pin: Pin
    statement: CurrentStatement

    def show(self, now: Table) -> Table:
        return self.pin.show(now, self.statement.mentions)

    def find(self, database: str, schema: str, name: str) -> TableId | None:
        return self.pin.find(database, schema, name)


class Pins:
    """What a session is pinned to; the last is kept."""

    def __init__(self, node: Node, settings: SessionSettings) -> None:
        self._node = node
        self._settings = settings
        self._pin: Pin | None = None

    def over(self, transaction: Transaction, port: TransactionPort) -> TransactionPort:
        """What queries and changes of rows see of the transaction, which they would see as `port`."""
        text = self._settings.typed.layout
        if not text:
            return port
        if self._pin is None or self._pin.text != text:
            self._pin = Pin(text, self._schema(text, transaction))
        return pinned(port, PinOfStatement(self._pin, transaction.state.statement))

    def _schema(self, text: str, transaction: Transaction) -> SchemaVersion:
        try:
            return transaction.state.epoch.schema(self._sequence(text, transaction))
        except errors.SnapshotTooOld as lost:
            raise errors.LayoutTooOld(value=text) from lost

    def _sequence(self, text: str, transaction: Transaction) -> Seq:
        moment = parse_as_of(text)
        if isinstance(moment, dt.datetime):
            timestamp_us = round(moment.timestamp() * 1_000_000)
            if timestamp_us > self._node.parts.clock.wall_us():
                raise errors.InvalidSetting(name=SETTING, value=text)
            return self._node.sequence_at(timestamp_us)
        assert moment is not None
        if moment > transaction.state.epoch.applied and moment > transaction.state.epoch.catch_up():
            raise errors.InvalidSetting(name=SETTING, value=text)
        return moment


class Pinned(Protocol):
    """What tables are shown as."""

    def show(self, now: Table) -> Table: ...

    def find(self, database: str, schema: str, name: str) -> TableId | None: ...


def pinned(port: TransactionPort, pin: Pinned) -> TransactionPort:
    return replace(
        port,
        names=PinnedNames(port, pin),
        reads=PinnedReads(port.reads),
        writes=PinnedWrites(port.writes, port.sequences),
    )


def find_pinned(below: TransactionPort, pin: Pinned, schema: str, name: str) -> Table | None:
    """The table that had the name then, as the port below prepares it."""
    id_ = pin.find(below.statement.session.database, schema, name)
    found = below.schema.table_by_id(id_) if id_ is not None else None
    return below.names.table(found.schema, found.name) if found is not None else None


@dataclass(frozen=True, slots=True)
class PinnedNames:
    """`below` is the transaction as it is seen without the pin."""

    below: TransactionPort
    pin: Pinned

    def relation(self, schema: str | None, name: str) -> Relation:
        found = self._known(schema, name) or self.below.names.relation(schema, name)
        return self.pin.show(found) if isinstance(found, Table) else found

    def table(self, schema: str | None, name: str) -> Table:
        return self.pin.show(self._known(schema, name) or self.below.names.table(schema, name))

    def _known(self, schema: str | None, name: str) -> Table | None:
        path = self.below.statement.search_path if schema is None else (schema,)
        found = (find_pinned(self.below, self.pin, each, name) for each in path)
        return next((table for table in found if table is not None), None)

    def tables(self) -> tuple[Table, ...]:
        return tuple(self.pin.show(table) for table in self.below.names.tables())


@dataclass(frozen=True, slots=True)
class PinnedReads:
    reads: ReadPort

    def describe(self, table: Table) -> ScanFacts:
        return self.reads.describe(table_now(table))

    def size(self, table: Table) -> TableSize:
        return self.reads.size(table_now(table))

    def scan(
        self,
        table: Table,
        hidden: bool = False,
        columns: frozenset[str] | None = None,
        sought: frozenset[str] | None = None,
        conditions: Sequence[Condition] = (),
    ) -> Scan:
        now = table_now(table)
        if now is table:
            return self.reads.scan(table, hidden, columns, sought, conditions)
        wanted = [
            (then, table.label(then), own, now.label(own))
            for then, own in zip(table.columns, now.columns, strict=True)
            if (hidden or then in table.visible_columns) and (columns is None or table.label(then).lower() in columns)
        ]
        own_sought = None if sought is None else _lower(own for _, name, _, own in wanted if name.lower() in sought)
        scan = self.reads.scan(now, hidden, _lower(own for _, _, _, own in wanted), own_sought, conditions)
        if not wanted:
            return scan
        shown = ", ".join(f"{_cast(own_name, then, own)} AS {quote(name)}" for then, name, own, own_name in wanted)
        found = scan.found
        if found is not None:
            for then, _, own, own_name in wanted:
                if not _is_alike(then, own):
                    _check_fit(then, found[own_name])
            found = {name: found[own_name] for _, name, _, own_name in wanted}
        return replace(scan, sql=f"SELECT {shown} FROM ({scan.sql})", found=found)  # noqa: S608 - quoted

    def select(self, table: Table, columns: Sequence[Column], conditions: Sequence[Condition]) -> Sequence[Row] | None:
        now = table_now(table)
        own = [now.column_by_id[column.id] for column in columns]
        rows = self.reads.select(now, own, conditions)
        _check_rows(columns, own, rows or ())
        return rows

    def get(self, table: Table, key: Row) -> Row | None:
        return self._checked(table, self.reads.get(table_now(table), key))

    def find_unique(self, table: Table, index: Index, key: Row) -> Row | None:
        return self._checked(table, self.reads.find_unique(table_now(table), index, key))

    def _checked(self, table: Table, row: Row | None) -> Row | None:
        _check_rows(table.columns, table_now(table).columns, [row] if row is not None else ())
        return row


@dataclass(frozen=True, slots=True)
class PinnedWrites:
    """Values of then are values of now."""

    writes: WritePort
    sequences: SequencePort

    def lock_rows(
        self,
        table: Table,
        keys: Sequence[Row],
        strength: LockStrength,
        policy: LockPolicy,
        most: int | None = None,
    ) -> Sequence[bool]:
        return self.writes.lock_rows(table_now(table), keys, strength, policy, most)

    def derive(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        return self.writes.derive(table_now(table), rows)

    def fill(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        return self.writes.fill(table_now(table), rows)

    def check(self, table: Table, rows: Sequence[Row]) -> None:
        self.writes.check(table_now(table), rows)

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        self.writes.insert(table_now(table), rows)

    def update(self, table: Table, old: Sequence[Row], new: Sequence[Row]) -> None:
        self.writes.update(table_now(table), old, new)

    def delete(self, table: Table, old: Sequence[Row]) -> None:
        self.writes.delete(table_now(table), old)

    def insert_arrow(self, table: Table, rows: pa.RecordBatchReader) -> int:
        now = table_now(table)
        if now is table:
            return self.writes.insert_arrow(table, rows)
        schema = pa.schema([pa.field(c.name, arrow_type(c.type)) for c in now.visible_columns])
        return self.writes.insert_arrow(
            now, pa.RecordBatchReader.from_batches(schema, self._whole_batches(table, now, schema, rows))
        )

    def _whole_batches(
        self, table: Table, now: Table, schema: pa.Schema, rows: pa.RecordBatchReader
    ) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            given = {c.id: values for c, values in zip(table.visible_columns, batch.columns, strict=True)}
            arrays = [
                given[c.id].cast(field.type)
                if c.id in given
                else pa.array(missing_values(self.sequences, c, batch.num_rows), field.type)
                for c, field in zip(now.visible_columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def changes_in_bulk(self, table: Table, assigned: Sequence[Column] | None) -> bool:
        return self.writes.changes_in_bulk(table_now(table), _own(table, assigned))

    def change_arrow(self, table: Table, rows: pa.RecordBatchReader, assigned: Sequence[Column] | None) -> int:
        now, own = table_now(table), _own(table, assigned)
        if now is table:
            return self.writes.change_arrow(table, rows, assigned)
        types = [arrow_type(column.type) for column in (*now.columns, *(own or ()))]
        schema = pa.schema([field.with_type(type_) for field, type_ in zip(rows.schema, types, strict=True)])
        batches = (
            pa.RecordBatch.from_arrays([a.cast(t) for a, t in zip(b.columns, types, strict=True)], schema=schema)
            for b in rows
        )
        return self.writes.change_arrow(now, pa.RecordBatchReader.from_batches(schema, batches), own)

    def together(self) -> AbstractContextManager[None]:
        return self.writes.together()


def _own(table: Table, columns: Sequence[Column] | None) -> list[Column] | None:
    return None if columns is None else [table_now(table).column_by_id[column.id] for column in columns]


def _lower(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


def _cast(name: str, then: Column, own: Column) -> str:
    return quote(name) if _is_alike(then, own) else f"CAST({quote(name)} AS {then.type.duckdb})"


def _is_alike(then: Column, own: Column) -> bool:
    return then.type.duckdb == own.type.duckdb


def _check_rows(then: Sequence[Column], own: Sequence[Column], rows: Sequence[Row]) -> None:
    for place, pair in enumerate(zip(then, own, strict=True)):
        if not _is_alike(*pair):
            _check_fit(pair[0], [row[place] for row in rows])


def _check_fit(then: Column, values: Iterable[Any]) -> None:
    """22003 where a value of now is none of then."""
    check = coercer(then.type)
    for value in values:
        check(value)
