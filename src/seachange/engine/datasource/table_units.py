"""A table at one snapshot in units, each of which an executor reads by itself, as rows of a DataFrame.

**Invariant:** the units contain each visible row exactly once. Inline rows travel with their unit, so executors never
access the catalog; a file that is gone is an error, never fewer rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from seachange import errors
from seachange.engine.dataframes.dataframe_read import frame_labels
from seachange.engine.session.session import Session
from seachange.engine.shapes.translation import translate
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import Seq
from seachange.model.relation import RelationName
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.pinned import table_now
from seachange.pipeline.kernels.source import NOT_ATTACHED, IndexSource
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.sql.parsing.call_statement import parse_relation
from seachange.sql.translate.duck_errors import translate_error
from seachange.storage.arrow import column_name
from seachange.storage.duck import Duck
from seachange.storage.frame_rows import FrameCondition, frame_conditions, frame_value
from seachange.storage.image import SnapshotParts
from seachange.storage.json_rows import ShownLabels
from seachange.storage.plan import Overlay, plan_scan, quote
from seachange.storage.warehouse import Warehouse

# A unit is one task of Spark.
_ROWS_MAX = 1_000_000
_BYTES_MAX = 64 << 20
_BATCH_ROWS = 10_240
_PREFIX = "unit"


@dataclass(frozen=True, slots=True)
class FrameUnit:
    """`table` may be a pinned one: its columns are computed from those of the current table, whose parts are read."""

    table: Table
    columns: tuple[Column, ...]
    parts: SnapshotParts
    labels: ShownLabels
    conditions: tuple[FrameCondition, ...] = ()

    def batches(self, warehouse: Warehouse, spill: Path, memory_bytes_max: int = 0) -> Iterator[pa.RecordBatch]:
        """The columns under their names, of at least the rows that meet the conditions."""
        with (
            closing(Duck(spill, memory_bytes_max)) as duck,
            closing(DuckSession(duck.cursor(), {})) as session,
            warehouse.files.uses.using(),
        ):
            scan = self._scan(warehouse)
            query = DuckQuery(scan.sql, scan.parameters, scan.relations)
            with session.batches(query, _BATCH_ROWS) as reader:
                try:
                    yield from reader
                except OSError as problem:
                    raise translate_error(problem) from problem

    def _scan(self, warehouse: Warehouse) -> Scan:
        """The values as Spark has them."""
        scan = _scan_columns(self.table, self.columns, self.parts, warehouse)
        by_id = ", ".join(
            f"{frame_value(quote(self.table.label(c)), c.type, self.labels)} AS {column_name(c.id)}"
            for c in self.columns
        )
        named = ", ".join(f"{column_name(c.id)} AS {quote(c.name)}" for c in self.columns)
        met, values = frame_conditions(self.conditions, _PREFIX)
        where = f" WHERE {met}" if met else ""
        sql = f"SELECT {named} FROM (SELECT {by_id} FROM ({scan.sql})){where}"  # noqa: S608 - quoted
        return replace(scan, sql=sql, parameters={**scan.parameters, **values})


def _scan_columns(table: Table, columns: Sequence[Column], parts: SnapshotParts, warehouse: Warehouse) -> Scan:
    """The columns under their labels in the current table."""
    now = table_now(table)
    if now is table:
        return plan_scan(now, now.primary, columns, parts, Overlay(), warehouse, _PREFIX)
    translation = translate(table)
    inputs = translation.inputs(column.id for column in columns)
    scan = plan_scan(now, now.primary, inputs, parts, Overlay(), warehouse, _PREFIX)
    return replace(scan, sql=translation.select(scan.sql, columns))


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """`at` is the sequence of the snapshot."""

    at: Seq
    table: Table
    units: tuple[FrameUnit, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.table.visible_columns

    def choose(self, names: Sequence[str]) -> tuple[Column, ...]:
        return tuple(find_column(self.table, name) for name in names)


def find_column(table: Table, name: str) -> Column:
    """As in Spark, case does not matter where it does not distinguish."""
    found = table.column_by_name.get(name)
    alike = [c for c in table.visible_columns if c.name.lower() == name.lower()] if found is None else [found]
    if len(alike) != 1 or alike[0] not in table.visible_columns:
        raise errors.UndefinedColumn(name=name, relation=table.name)
    return alike[0]


def snapshot_table(session: Session, name: str) -> TableSnapshot:
    """The table at the snapshot of a statement of the session, in the shape that the session is pinned to. The units
    read all columns; the role needs SELECT."""
    relation = parse_relation(name)
    return session.in_transaction(lambda transaction: _snapshot(session, transaction, relation))


def _snapshot(session: Session, transaction: Transaction, name: RelationName) -> TableSnapshot:
    port = session.port(transaction)
    table = port.names.relation(name.schema, name.name)
    if not isinstance(table, Table):
        raise errors.WrongObjectType(name=str(name), kind="table")
    port.rights.check_access(table, "SELECT")
    now = table_now(table)
    transaction.reads.note_scan(now)
    parts = transaction.reads.index_parts(now, now.primary)
    labels = frame_labels(transaction, now)
    units = IndexSource(now, now.primary, NOT_ATTACHED, parts).units(_ROWS_MAX, _BYTES_MAX)
    # At least one, so that a table without rows is read like any other.
    each = [unit.parts for unit in units] or [SnapshotParts((), ())]
    read = tuple(FrameUnit(table, table.visible_columns, parts, labels) for parts in each)
    return TableSnapshot(transaction.state.snapshot.seq, table, read)
