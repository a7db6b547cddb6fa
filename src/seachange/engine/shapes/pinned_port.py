"""Sessions that see tables in an earlier shape, and read and write the tables of now: `seachange.layout`.

**Invariant:** above a pin a table has the names, columns and types of then, below it those of the snapshot. No
plan of then is ever run: states, indexes and constraints are those of the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from seachange import errors
from seachange.engine.replica.contents import Relation
from seachange.engine.shapes.translation import translate
from seachange.model.condition import Condition
from seachange.model.ids import TableId
from seachange.model.locking import LockPolicy, LockStrength
from seachange.model.scan import Scan, ScanFacts
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.pinned import PinnedTable, table_now
from seachange.planner.known_schema import TableSize
from seachange.sql.compile.target import missing_values
from seachange.sql.port.port import ReadPort, SequencePort, TransactionPort, WritePort
from seachange.storage.arrow import arrow_type
from seachange.storage.duck import Duck

Row = tuple[Any, ...]


class Pinned(Protocol):
    """What tables are shown as."""

    def show(self, now: Table) -> Table: ...

    def find(self, database: str, schema: str, name: str) -> TableId | None: ...


def pinned(port: TransactionPort, pin: Pinned, duck: Duck) -> TransactionPort:
    return replace(
        port,
        names=PinnedNames(port, pin),
        reads=PinnedReads(port.reads, duck),
        writes=PinnedWrites(port.writes, port.sequences, duck),
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
    duck: Duck

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
        translation = translate(table)
        wanted = [
            column
            for column in (table.columns if hidden else table.visible_columns)
            if columns is None or table.label(column).lower() in columns
        ]
        inputs = translation.inputs(column.id for column in wanted)
        own_sought = None
        if sought is not None:
            named = [column.id for column in wanted if table.label(column).lower() in sought]
            own_sought = _labels(now, translation.inputs(named))
        known = translation.splits(conditions)
        # A column that has come since is hidden here, and may not be there.
        hidden = hidden or any(column not in now.visible_columns for column in inputs)
        scan = self.reads.scan(now, hidden, _labels(now, inputs), own_sought, known)
        if not wanted:
            return scan
        found = None
        if scan.found is not None and not any(translation.is_retired(column.id) for column in wanted):
            own = [now.column_by_id[column.id] for column in wanted]
            rows = list(zip(*(scan.found[now.label(column)] for column in own), strict=True))
            translation.check_fit(wanted, own, rows)
            found = {table.label(c): scan.found[now.label(o)] for c, o in zip(wanted, own, strict=True)}
        return replace(scan, sql=translation.select(scan.sql, wanted), found=found)

    def select(self, table: Table, columns: Sequence[Column], conditions: Sequence[Condition]) -> Sequence[Row] | None:
        now = table_now(table)
        if now is table:
            return self.reads.select(table, columns, conditions)
        translation = translate(table)
        if len(translation.splits(conditions)) < len(conditions) or any(translation.is_retired(c.id) for c in columns):
            return None
        own = [now.column_by_id[column.id] for column in columns]
        rows = self.reads.select(now, own, conditions)
        translation.check_fit(columns, own, rows or ())
        return rows

    def get(self, table: Table, key: Row) -> Row | None:
        return self._shown(table, self.reads.get(table_now(table), key))

    def find_unique(self, table: Table, index: Index, key: Row) -> Row | None:
        return self._shown(table, self.reads.find_unique(table_now(table), index, key))

    def _shown(self, table: Table, row: Row | None) -> Row | None:
        if row is None or table_now(table) is table:
            return row
        return translate(table).shows([row], self.duck)[0]


@dataclass(frozen=True, slots=True)
class PinnedWrites:
    """Values of then become values of now."""

    writes: WritePort
    sequences: SequencePort
    duck: Duck

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
        now = table_now(table)
        if now is table:
            return self.writes.derive(table, rows)
        derived = self.writes.derive(now, translate(table).inserted(rows, self.duck))
        width, own_width = len(table.columns), len(now.columns)
        places = _computed_places(table, now)
        return [
            (*_replaced(row[:width], own, places), *own[own_width:]) for row, own in zip(rows, derived, strict=True)
        ]

    def fill(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        now = table_now(table)
        if now is table:
            return self.writes.fill(table, rows)
        filled = self.writes.fill(now, translate(table).inserted(rows, self.duck))
        places = _computed_places(table, now)
        return [_replaced(row, own, places) for row, own in zip(rows, filled, strict=True)]

    def check(self, table: Table, rows: Sequence[Row]) -> None:
        self.writes.check(table_now(table), self._inserted(table, rows))

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        _check_writable(table)
        self.writes.insert(table_now(table), self._inserted(table, rows))

    def _inserted(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        return rows if table_now(table) is table else translate(table).inserted(rows, self.duck)

    def update(self, table: Table, old: Sequence[Row], new: Sequence[Row]) -> None:
        _check_writable(table)
        now = table_now(table)
        if now is table:
            self.writes.update(table, old, new)
            return
        translation = translate(table)
        self.writes.update(now, translation.taken_over(old), translation.changed(old, new, self.duck))

    def delete(self, table: Table, old: Sequence[Row]) -> None:
        _check_writable(table)
        now = table_now(table)
        self.writes.delete(now, old if now is table else translate(table).taken_over(old))

    def insert_arrow(self, table: Table, rows: pa.RecordBatchReader) -> int:
        _check_writable(table)
        now = table_now(table)
        if now is table:
            return self.writes.insert_arrow(table, rows)
        schema = pa.schema([pa.field(c.name, arrow_type(c.type)) for c in now.visible_columns])
        whole = self._whole_rows(table, now, rows)
        places = [now.columns.index(column) for column in now.visible_columns]
        batches = (_batch(schema, places, each) for each in whole)
        return self.writes.insert_arrow(now, pa.RecordBatchReader.from_batches(schema, batches))

    def _whole_rows(self, table: Table, now: Table, rows: pa.RecordBatchReader) -> Iterator[list[Row]]:
        translation = translate(table)
        for batch in rows:
            given = {c.id: v.to_pylist() for c, v in zip(table.visible_columns, batch.columns, strict=True)}
            count = batch.num_rows
            lists = [
                given[column.id] if column.id in given else missing_values(self.sequences, column, count)
                for column in table.columns
            ]
            yield translation.inserted(list(zip(*lists, strict=True)), self.duck)

    def changes_in_bulk(self, table: Table, assigned: Sequence[Column] | None) -> bool:
        return self.writes.changes_in_bulk(table_now(table), self._own(table, assigned))

    def change_arrow(self, table: Table, rows: pa.RecordBatchReader, assigned: Sequence[Column] | None) -> int:
        _check_writable(table)
        now, own = table_now(table), self._own(table, assigned)
        if now is table:
            return self.writes.change_arrow(table, rows, assigned)
        named = [(f"o{c.id}", c) for c in now.columns] + [(f"n{c.id}", c) for c in own or ()]
        schema = pa.schema([pa.field(name, arrow_type(column.type)) for name, column in named])
        batches = (self._changed_batch(table, batch, assigned, own, schema) for batch in rows)
        return self.writes.change_arrow(now, pa.RecordBatchReader.from_batches(schema, batches), own)

    def _changed_batch(
        self,
        table: Table,
        batch: pa.RecordBatch,
        assigned: Sequence[Column] | None,
        own: Sequence[Column] | None,
        schema: pa.Schema,
    ) -> pa.RecordBatch:
        now, width = table_now(table), len(table.columns)
        place = {column.id: number for number, column in enumerate(table.columns)}
        arrays = {f"o{c.id}": batch.columns[place[c.id]] for c in now.columns}
        arrays |= {f"n{c.id}": batch.columns[width + number] for number, c in enumerate(assigned or ())}
        computed = [column for column in own or () if f"n{column.id}" not in arrays]
        if computed:
            values = [column.to_pylist() for column in batch.columns]
            old = list(zip(*values[:width], strict=True))
            changed = {place[c.id]: values[width + number] for number, c in enumerate(assigned or ())}
            new = list(zip(*(changed.get(number, values[number]) for number in range(width)), strict=True))
            found = translate(table).changed(old, new, self.duck)
            for column in computed:
                own_place = now.columns.index(column)
                arrays[f"n{column.id}"] = pa.array([row[own_place] for row in found], arrow_type(column.type))
        return pa.RecordBatch.from_arrays([arrays[field.name].cast(field.type) for field in schema], schema=schema)

    def _own(self, table: Table, assigned: Sequence[Column] | None) -> list[Column] | None:
        """The columns of now that change with these."""
        now = table_now(table)
        if assigned is None or now is table:
            return None if assigned is None else list(assigned)
        kept = [now.column_by_id[column.id] for column in assigned if column.id in now.column_by_id]
        computed = translate(table).computed_from(column.id for column in assigned)
        return [*kept, *(column for column in computed if column not in kept)]

    def together(self) -> AbstractContextManager[None]:
        return self.writes.together()


def _check_writable(table: Table) -> None:
    if isinstance(table, PinnedTable) and table.read_only:
        raise errors.ReadOnlyLayout(layout=table.read_only)


def _computed_places(table: Table, now: Table) -> list[tuple[int, int]]:
    """Of the columns that the engine, or UP, computes: their places in a row of the shape, and of now."""
    own = {column.id: place for place, column in enumerate(now.columns)}
    computed = {column.id for column in translate(table).computed}
    return [
        (place, own[c.id])
        for place, c in enumerate(table.columns)
        if c.id in own and (c.generated is not None or c.id in computed)
    ]


def _replaced(row: Row, own: Row, places: Sequence[tuple[int, int]]) -> Row:
    held = list(row)
    for place, own_place in places:
        held[place] = own[own_place]
    return tuple(held)


def _batch(schema: pa.Schema, places: Sequence[int], rows: Sequence[Row]) -> pa.RecordBatch:
    arrays = [pa.array([row[place] for row in rows], field.type) for place, field in zip(places, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _labels(now: Table, columns: Sequence[Column]) -> frozenset[str]:
    return frozenset(now.label(column).lower() for column in columns)
