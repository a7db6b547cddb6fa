"""Values of dropped columns, written back into the rows of now by small transactions.

A row without a value gets the one that the row of the same primary key had. Writers know the column by then and keep
what they find, so a row that has got its value needs no second look.

**Invariant:** no other session sees the column before its change is published, and only this writes to it.
**Invariant:** a rewrite that began before writers knew the column would lose the values that rows still have. So none
is under way: the lock on compaction is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from seachange import errors
from seachange.engine.bulk.bulk_change import new_name, old_name
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_parts import NodeParts
from seachange.engine.transaction.transaction import Transaction
from seachange.model.change.ops import RestoreColumns
from seachange.model.ids import IndexId, Seq
from seachange.model.isolation import Isolation
from seachange.model.scan import Scan
from seachange.model.schema.defaults import constant_value, is_constant
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.past_key import past_key
from seachange.pipeline.kernels.source import IndexSource, Sources
from seachange.runtime.faults import reach
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.sql.duck.stream import BATCH_ROWS, ArrowStream, stored_text
from seachange.storage.arrow import arrow_type, column_name
from seachange.storage.entries import as_assigned
from seachange.storage.plan import quote
from seachange.storage.projection import literal

# Writers of these rows wait for the transaction that restores them.
_ROWS_MAX, _ROWS_MIN = 20_000, 100
_LOCK_SECONDS = 0.1
# How often a transaction may lose its rows to others, one after the other.
_LOSSES_MAX = 1_000


@dataclass(frozen=True, slots=True)
class RowRestorer:
    """`Restorer`."""

    parts: NodeParts
    epoch: EpochState
    interrupts: SessionInterrupts

    def restore(self, op: RestoreColumns, on_progress: Callable[[int], None]) -> int:
        table = self.epoch.schemas.newest.by_id.get(op.table_id)
        if table is None:
            return 0
        done, rows_max, losses = 0, _ROWS_MAX, 0
        with self._readable(op.as_of), self._uncompacted(table.primary.id):
            then = self._rows_then(op)
            while True:
                self.interrupts.pause(0)
                try:
                    count = self._restore_some(op, then, rows_max)
                except errors.Error as problem:
                    # Others have changed these rows meanwhile.
                    losses += 1
                    if problem.sqlstate[:2] != "40" or losses >= _LOSSES_MAX:
                        raise
                    rows_max = max(rows_max // 2, _ROWS_MIN)
                    continue
                if not count:
                    return done
                reach("restore.written")
                done += count
                losses = 0
                on_progress(count)

    @contextmanager
    def _readable(self, at: Seq) -> Iterator[None]:
        ticket = self.epoch.registry.enter_below(at)
        try:
            yield
        finally:
            self.epoch.registry.leave(ticket)

    @contextmanager
    def _uncompacted(self, index_id: IndexId) -> Iterator[None]:
        while True:
            with self.parts.compaction_locks.holding(self.epoch.epoch, index_id) as is_ours:
                if is_ours:
                    yield
                    return
            self.interrupts.pause(_LOCK_SECONDS)

    def _rows_then(self, op: RestoreColumns) -> IndexSource:
        sources = Sources(self.parts.catalog, self.epoch.epoch, self.parts.warehouse, op.as_of)
        table = sources.tables()[op.table_id]
        return sources.load(table, table.primary)

    def _restore_some(self, op: RestoreColumns, then: IndexSource, rows_max: int) -> int:
        client = SessionContext(self.parts.sessions.take_number(), self.interrupts)
        txn = Transaction(self.parts, self.epoch, Isolation.READ_COMMITTED, client=client)
        try:
            txn.start_statement()
            table = txn.schema.table_by_id(op.table_id)
            columns = [c for c in table.columns if c.id in op.column_ids] if table is not None else []
            count = self._write(txn, table, columns, then, rows_max) if table is not None and columns else 0
            txn.commit()
            return count
        except BaseException:
            txn.rollback()
            raise

    def _write(
        self, txn: Transaction, table: Table, columns: Sequence[Column], then: IndexSource, rows_max: int
    ) -> int:
        sql, scans = _values(txn, table, columns, then, self.parts)
        named = [(old_name(c.id), c) for c in table.columns] + [(new_name(c.id), c) for c in columns]
        shown = ", ".join(f"{stored_text(c, name)} AS {name}" for name, c in named)
        missing = " OR ".join(
            f"({new_name(c.id)} IS NOT NULL AND {old_name(c.id)} IS DISTINCT FROM {new_name(c.id)})" for c in columns
        )
        query = DuckQuery(
            f"SELECT {shown} FROM ({sql}) WHERE {missing} LIMIT {rows_max}",  # noqa: S608 - named by id
            {name: value for scan in scans for name, value in scan.parameters.items()},
            {name: rows for scan in scans for name, rows in scan.relations.items()},
        )
        schema = pa.schema([pa.field(name, arrow_type(c.type)) for name, c in named])
        with (
            closing(DuckSession(self.parts.duck.cursor(), {})) as session,
            self.interrupts.reaching(session),
            session.batches(query, BATCH_ROWS) as reader,
        ):
            stream = ArrowStream(reader, schema, [c.type for _, c in named])
            return stream.pass_to(lambda rows: txn.writes.change_arrow(table, rows, columns))


def _values(
    txn: Transaction, table: Table, columns: Sequence[Column], then: IndexSource, parts: NodeParts
) -> tuple[str, tuple[Scan, Scan]]:
    """All rows of now with the values that they are to have."""
    now = txn.reads.scan(table, hidden=True)
    known, keys = then.table.column_by_id, past_key(table, then.table)
    if keys is None:
        raise errors.NotInPrerequisiteState(
            detail=f"{table.name} has another primary key since its rows had the values"
        )
    read = dict.fromkeys((*(c for key in keys for c in key.columns), *(c.id for c in columns)))
    found = then.scan([known[c] for c in read], then.parts, parts.warehouse, "p")
    held = ", ".join(f"{quote(table.label(c))} AS {column_name(c.id)}" for c in table.columns)
    keyed = ", ".join(f"{key.text} AS key{place}" for place, key in enumerate(keys))
    past = replace(found, sql=f"SELECT *, {keyed} FROM ({found.sql})")  # noqa: S608 - named by id
    same = " AND ".join(f"r.{column_name(c)} = o.key{place}" for place, c in enumerate(table.primary.key))
    key = "key0"
    olds = ", ".join(f"r.{column_name(c.id)} AS {old_name(c.id)}" for c in table.columns)
    values = ", ".join(
        f"CASE WHEN o.{key} IS NULL THEN r.since{c.id} ELSE coalesce(r.{column_name(c.id)}, o.{column_name(c.id)}) END"
        f" AS {new_name(c.id)}"
        for c in columns
    )
    since = ", ".join(f"{_since(c, table)} AS since{c.id}" for c in columns)
    rows = f"SELECT *, {since} FROM (SELECT {held} FROM ({now.sql}))"  # noqa: S608 - named by id
    return f"SELECT {olds}, {values} FROM ({rows}) r LEFT JOIN ({past.sql}) o ON {same}", (now, past)  # noqa: S608


def _since(column: Column, table: Table) -> str:
    """The value of a row that was not there then."""
    if column.up is not None and table.column_by_id.keys() >= set(column.up.columns):
        return as_assigned(column.up, column.type)
    if column.default is not None and is_constant(column.default):
        return literal(column.type, constant_value(column.type, column.default))
    return f"CAST(NULL AS {column.type.duckdb})"
