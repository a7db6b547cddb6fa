"""Enum types between statements, which see labels, and rows, which hold values that never change.

**Invariant:** above `labelled` every value of an enum column is a label of its type as of the snapshot; below it
is the stored value. A value that is neither is refused here, on every way in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seachange import errors
from seachange.engine.replica.contents import Relation
from seachange.engine.transaction.transaction import Transaction
from seachange.model.condition import Above, Among, Below, Condition, StartsWith
from seachange.model.ids import ColumnId, DescriptorId
from seachange.model.locking import LockPolicy, LockStrength
from seachange.model.scan import Scan, ScanFacts
from seachange.model.schema.defaults import constant_default, constant_value, is_constant
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.enums import Labels, labels_of
from seachange.model.schema.objects import EnumType
from seachange.planner.known_schema import TableSize
from seachange.sql.port.port import NamePort, ReadPort, SchemaPort, TransactionPort, WritePort
from seachange.storage.plan import quote

Row = tuple[Any, ...]
Places = Sequence[tuple[int, Labels]]


def labelled(transaction: Transaction) -> TransactionPort:
    """The transaction as statements see it, with labels where there is an enum type."""
    port, schema = transaction.port, transaction.state.schema
    if not schema.has_enums:
        return port
    types = EnumTypes(schema)
    return replace(
        port,
        names=LabelledNames(port.names, types),
        reads=LabelledReads(port.reads, types),
        writes=LabelledWrites(port.writes, types),
    )


@dataclass(frozen=True, slots=True)
class EnumTypes:
    """The labels of columns as of the snapshot."""

    schema: SchemaPort

    def labels(self, column: Column) -> Labels:
        found = self.schema.object_by_id(DescriptorId(column.type.enum))
        if not isinstance(found, EnumType):
            raise errors.Bug(detail=f"column {column.name} is of type {column.type.enum}, which is not there")
        return labels_of(found)

    def places(self, columns: Sequence[Column]) -> Places:
        return [(place, self.labels(column)) for place, column in enumerate(columns) if column.type.enum]

    def of(self, table: Table) -> Places:
        return [(place, self.labels(table.columns[place])) for place in table.enum_places]

    def key(self, table: Table, key: Sequence[ColumnId]) -> Places:
        return self.places([table.column_by_id[c] for c in key]) if table.enum_places else ()

    def stored(self, table: Table) -> Table:
        """The same table with defaults as they are stored."""
        return self.schema.table_by_id(table.id) or table if table.enum_places else table


@dataclass(frozen=True, slots=True)
class LabelledNames:
    """Tables with defaults as labels."""

    names: NamePort
    types: EnumTypes

    def relation(self, schema: str | None, name: str) -> Relation:
        found = self.names.relation(schema, name)
        return self._with_labels(found) if isinstance(found, Table) and found.enum_places else found

    def table(self, schema: str | None, name: str) -> Table:
        found = self.names.table(schema, name)
        return self._with_labels(found) if found.enum_places else found

    def tables(self) -> tuple[Table, ...]:
        return self.names.tables()

    def _with_labels(self, table: Table) -> Table:
        changed = {place: self._default(table.columns[place]) for place in table.enum_places}
        if all(column is table.columns[place] for place, column in changed.items()):
            return table
        return replace(table, columns=tuple(changed.get(place, c) for place, c in enumerate(table.columns)))

    def _default(self, column: Column) -> Column:
        labels = self.types.labels(column)
        if labels.is_plain or column.default is None or not is_constant(column.default):
            return column
        held = constant_value(column.type, column.default)
        return replace(column, default=constant_default(column.type, labels.show(held)))


@dataclass(frozen=True, slots=True)
class LabelledReads:
    reads: ReadPort
    types: EnumTypes

    def scan(
        self,
        table: Table,
        hidden: bool = False,
        columns: frozenset[str] | None = None,
        sought: frozenset[str] | None = None,
        conditions: Sequence[Condition] = (),
    ) -> Scan:
        stored = self.types.stored(table)
        scan = self.reads.scan(stored, hidden, columns, sought, self._hold_conditions(table, conditions))
        named = {
            (table.label(column) if hidden else column.name): column
            for column in (table.columns if hidden else table.visible_columns)
            if column.type.enum
        }
        named = {name: column for name, column in named.items() if columns is None or name.lower() in columns}
        if not named:
            return scan
        shown = {name: self.types.labels(column) for name, column in named.items()}
        decoded = ", ".join(
            f"{shown[name].decode(quote(name), column.type.element is not None)} AS {quote(name)}"
            for name, column in named.items()
        )
        found = scan.found
        if found is not None:
            found = {n: [shown[n].show(v) for v in held] if n in shown else held for n, held in found.items()}
        return replace(scan, sql=f"SELECT * REPLACE ({decoded}) FROM ({scan.sql})", found=found)  # noqa: S608 - quoted

    def _hold_conditions(self, table: Table, conditions: Sequence[Condition]) -> list[Condition]:
        held = [self._hold_condition(table, condition) for condition in conditions]
        return [condition for condition in held if condition is not None]

    def _hold_condition(self, table: Table, condition: Condition) -> Condition | None:
        column = table.column_by_id.get(condition.column)
        if column is None or not column.type.enum:
            return condition
        labels = self.types.labels(column)
        match condition:
            case Among(values=values):
                return Among(column.id, tuple([labels.hold(value) for value in values]))
            case Above(value=value, inclusive=inclusive):
                labels.hold(value)
                start = labels.order.index(value) + (0 if inclusive else 1)
                return Among(column.id, tuple([labels.stored[label] for label in labels.order[start:]]))
            case Below(value=value, inclusive=inclusive):
                labels.hold(value)
                end = labels.order.index(value) + (1 if inclusive else 0)
                return Among(column.id, tuple([labels.stored[label] for label in labels.order[:end]]))
            case StartsWith(value=prefix):
                return Among(
                    column.id, tuple([held for label, held in labels.stored.items() if label.startswith(prefix)])
                )
            case _:
                return condition

    def select(self, table: Table, columns: Sequence[Column], conditions: Sequence[Condition]) -> Sequence[Row] | None:
        held = self._hold_conditions(table, conditions)
        rows = self.reads.select(self.types.stored(table), columns, held)
        return None if rows is None else _show_rows(self.types.places(columns), rows)

    def get(self, table: Table, key: Row) -> Row | None:
        held = _hold_row(self.types.key(table, table.primary.key), key)
        return self._show_row(table, self.reads.get(self.types.stored(table), held))

    def find_unique(self, table: Table, index: Index, key: Row) -> Row | None:
        held = _hold_row(self.types.key(table, index.key), key)
        return self._show_row(table, self.reads.find_unique(self.types.stored(table), index, held))

    def _show_row(self, table: Table, row: Row | None) -> Row | None:
        return None if row is None else _show_rows(self.types.of(table), [row])[0]

    def describe(self, table: Table) -> ScanFacts:
        return self.reads.describe(table)

    def size(self, table: Table) -> TableSize:
        return self.reads.size(table)


@dataclass(frozen=True, slots=True)
class LabelledWrites:
    writes: WritePort
    types: EnumTypes

    def lock_rows(
        self,
        table: Table,
        keys: Sequence[Row],
        strength: LockStrength,
        policy: LockPolicy,
        most: int | None = None,
    ) -> Sequence[bool]:
        places = self.types.key(table, table.primary.key)
        held = [_hold_row(places, key) for key in keys] if places else keys
        return self.writes.lock_rows(self.types.stored(table), held, strength, policy, most)

    def _hold(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        places = self.types.of(table)
        return [_hold_row(places, row) for row in rows] if places else rows

    def derive(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        return _show_rows(self.types.of(table), self.writes.derive(self.types.stored(table), self._hold(table, rows)))

    def fill(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        return _show_rows(self.types.of(table), self.writes.fill(self.types.stored(table), self._hold(table, rows)))

    def check(self, table: Table, rows: Sequence[Row]) -> None:
        self.writes.check(self.types.stored(table), self._hold(table, rows))

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        self.writes.insert(self.types.stored(table), self._hold(table, rows))

    def update(self, table: Table, old: Sequence[Row], new: Sequence[Row]) -> None:
        self.writes.update(self.types.stored(table), self._hold(table, old), self._hold(table, new))

    def delete(self, table: Table, old: Sequence[Row]) -> None:
        self.writes.delete(self.types.stored(table), self._hold(table, old))

    def insert_arrow(self, table: Table, rows: pa.RecordBatchReader) -> int:
        places = self.types.places(table.visible_columns)
        return self.writes.insert_arrow(self.types.stored(table), _hold_batches(places, rows))

    def changes_in_bulk(self, table: Table, assigned: Sequence[Column] | None) -> bool:
        return self.writes.changes_in_bulk(self.types.stored(table), assigned)

    def change_arrow(self, table: Table, rows: pa.RecordBatchReader, assigned: Sequence[Column] | None) -> int:
        places = self.types.places([*table.columns, *(assigned or ())])
        return self.writes.change_arrow(self.types.stored(table), _hold_batches(places, rows), assigned)

    def together(self) -> AbstractContextManager[None]:
        return self.writes.together()


def _hold_row(places: Places, row: Row) -> Row:
    held = list(row)
    for place, labels in places:
        if held[place] is not None:
            held[place] = labels.hold(held[place])
    return tuple(held)


def _show_rows(places: Places, rows: Sequence[Row]) -> Sequence[Row]:
    changed = [(place, labels) for place, labels in places if not labels.is_plain]
    if not changed:
        return rows
    shown = []
    for row in rows:
        values = list(row)
        for place, labels in changed:
            values[place] = labels.show(values[place])
        shown.append(tuple(values))
    return shown


def _hold_batches(places: Places, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    if not places:
        return rows
    return pa.RecordBatchReader.from_batches(rows.schema, _hold_each(places, rows))


def _hold_each(places: Places, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        arrays = list(batch.columns)
        for place, labels in places:
            arrays[place] = hold_array(labels, arrays[place])
        yield pa.RecordBatch.from_arrays(arrays, schema=rows.schema)


def hold_array(labels: Labels, array: pa.Array) -> pa.Array:
    if pa.types.is_list(array.type):
        return pa.array([None if value is None else labels.hold(value) for value in array.to_pylist()], array.type)
    known = pa.array(list(labels.stored), array.type)
    positions = pc.index_in(array, known)
    unknown = pc.and_(pc.is_valid(array), pc.is_null(positions))
    if pc.any(unknown).as_py():
        labels.hold(array.filter(unknown)[0].as_py())
    return array if labels.is_plain else pa.array(list(labels.stored.values()), array.type).take(positions)
