"""Bulk updates and deletes: a stream of old and new values becomes sorted segments of every index, in bounded memory.

The stream is held by the sorter's own DuckDB, which spills to disk. One query per index selects its new entries,
another the keys of removed ones. Single rows appear only as the hashes that the commit lists, so that a bulk change
conflicts with any other write, lock or reference to one of its rows.

**Invariant:** the stream's old values are the rows that the transaction sees. Where it has written one of their entries
before, the entry leaves the earlier file or the memory for the files of this change, with the base that it has there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from seachange import errors
from seachange.engine.buffer.row_writer import duplicate_key
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import IndexBuffer, StagedFile
from seachange.engine.bulk.entry_files import EntryFiles, sorter_of
from seachange.engine.bulk.own_entries import OwnEntries, Stamp
from seachange.engine.constraints.computed_values import filler_of
from seachange.engine.constraints.uncommitted import record_duplicate
from seachange.engine.encode.write_plan import EntryPlan, WritePlan
from seachange.engine.reads.row_reads import RowReads
from seachange.model.ids import ColumnId, IndexId, Seq
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column
from seachange.model.segments import Segment, SegmentKind
from seachange.runtime.faults import reach
from seachange.storage.arrow import arrow_type, column_name
from seachange.storage.bulk import Distinct, repeated_keys
from seachange.storage.entries import columns_read, select_entries
from seachange.storage.keys import Key
from seachange.storage.plan import Overlay, plan_scan
from seachange.storage.sorter import Sorter

# The stream as the sorter holds it: a column of old values for each column of the table, and one of new values for each
# assigned column.
_HELD = "held"
_STAMPED = "stamped"


def old_name(column_id: ColumnId) -> str:
    return f"o{column_id}"


def new_name(column_id: ColumnId) -> str:
    return f"n{column_id}"


@dataclass(frozen=True, slots=True)
class _Written:
    plan: EntryPlan
    stamp: Stamp
    segments: list[Segment]


class BulkChange:
    """One change of many rows of a table. `assigned` are the columns that an UPDATE sets, None for a DELETE. A failure
    leaves nothing staged."""

    def __init__(
        self, txn: TransactionState, reads: RowReads, plan: WritePlan, assigned: Sequence[Column] | None
    ) -> None:
        self._txn = txn
        self._reads = reads
        self._references = txn.schema.references_to(plan.table)
        self._plan = plan
        self._filler = filler_of(txn, plan)
        self._given = list(assigned or ())
        self._drawn = [] if assigned is None else [column for _, column in plan.drawn]
        computed = self._filler.columns_from([*self._given, *self._drawn]) if self._filler is not None else []
        computed += self._drawn
        self._assigned = None if assigned is None else {column.id: column for column in (*self._given, *computed)}
        self._written: list[_Written] = []
        # What is left of the entries that the transaction had written before.
        self._rest: dict[IndexId, IndexBuffer] = {}

    @property
    def changed(self) -> Set[ColumnId]:
        """The columns that are assigned, or computed from assigned ones."""
        return (self._assigned or {}).keys()

    @property
    def segments(self) -> list[Segment]:
        """The segments of the new rows in the primary index."""
        return [s for each in self._written if each.plan.is_primary for s in each.segments if _is_data(s)]

    def removed(self, index_id: IndexId) -> list[Segment]:
        """The segments of the keys that were removed from an index."""
        found = [s for each in self._written if each.plan.index.id == index_id for s in each.segments]
        return [segment for segment in found if not _is_data(segment)]

    def run(self, rows: pa.RecordBatchReader) -> int:
        with sorter_of(self._txn) as sorter:
            self._files = EntryFiles(self._txn, sorter)
            with self._files.abandoned_on_failure():
                count = sorter.hold(_HELD, self._filled(rows))
                self._check_nulls(sorter)
                for plan in self._txn.client.interrupts.each(self._plan.entries):
                    self._write(sorter, plan)
                staged = [file for written in self._written for file in self._stage(written)]
                self._check_current(staged)
        if self._rest:
            table_id, indexes = self._plan.table.id, self._txn.buffer.indexes
            before = {index_id: buffer for index_id, buffer in indexes.items() if buffer.plan.table_id == table_id}
            self._txn.buffer.replace(table_id, before | self._rest)
        for file in staged:
            self._txn.buffer.stage(self._txn.buffer.of(file.plan), file)
        reach("bulk.written")
        return count

    def _schema(self, assigned: Iterable[Column]) -> pa.Schema:
        table = self._plan.table
        old = [(old_name(c.id), arrow_type(c.type)) for c in table.columns]
        return pa.schema([*old, *((new_name(c.id), arrow_type(c.type)) for c in assigned)])

    def _filled(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The stream with the old and new values of computed columns."""
        given = self._schema(self._given)
        rows = rows.cast(given) if rows.schema != given else rows
        if self._filler is None and not self._drawn:
            return rows
        whole = self._schema((self._assigned or {}).values())
        return pa.RecordBatchReader.from_batches(whole, (self._fill(batch, whole) for batch in rows))

    def _fill(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for column in self._drawn:
            drawn = pa.array(self._txn.sequences.defaults(column, batch.num_rows), arrow_type(column.type))
            columns[new_name(column.id)] = pc.coalesce(columns[old_name(column.id)], drawn)
        if self._filler is not None:
            columns |= self._filler.values(columns, old_name)
        if self._filler is not None and self._assigned is not None:
            new = self._filler.values(columns, self._held_in(columns), recorded=True)
            columns |= {
                new_name(c): new[self._held_in(columns)(c)] for c in self._assigned if new_name(c) not in columns
            }
        return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)

    def _held_in(self, columns: Mapping[str, pa.Array]) -> Callable[[ColumnId], str]:
        return lambda c: new_name(c) if new_name(c) in columns else old_name(c)

    def _check_nulls(self, sorter: Sorter) -> None:
        for _, column in self._plan.required:
            if column.id in (self._assigned or ()):
                name = new_name(column.id)
                if sorter.ask(f"SELECT 1 FROM {_HELD} WHERE {name} IS NULL LIMIT 1"):  # noqa: S608 - named by id
                    raise errors.NotNullViolation(column=column.name, relation=self._plan.table.name)

    # One index.

    def _write(self, sorter: Sorter, plan: EntryPlan) -> None:
        key, stored = self._key(plan), [c for c, _ in plan.columns]
        if self._assigned is not None and not plan.is_primary and not self._changes(plan, stored):
            return
        gone, taken = self._entries(plan, key, old_name), self._entries(plan, key, self._held)
        moves = self._changes(plan, key)
        is_put = self._assigned is not None and plan.behaviour.writes
        own = self._own(sorter, plan, f"{gone} UNION ALL {taken}" if moves else gone)
        if is_put:
            unique = self._unique(plan) if moves else None
            stamp = Stamp(self._txn.snapshot.seq, fresh=False, moves=moves)
            refused = unique if plan.checks else None
            self._sort(sorter, plan, self._entries(plan, stored, self._held), SegmentKind.DATA, stamp, own, refused)
            if unique is not None:
                self._check_unique(sorter, plan, unique, is_sorted=own is None and plan.checks)
        if is_put and moves:
            same = " AND ".join(f"w.{column_name(c)} IS NOT DISTINCT FROM t.{column_name(c)}" for c in key)
            gone = f"SELECT w.* FROM ({gone}) w ANTI JOIN ({taken}) t ON {same}"  # noqa: S608 - named by id
        if not is_put or moves:
            stamp = Stamp(self._txn.snapshot.seq, fresh=False, moves=True)
            self._sort(sorter, plan, gone, SegmentKind.TOMBSTONES, stamp, own)
        if own is not None:
            self._rest[plan.index.id] = own.rest()

    def _own(self, sorter: Sorter, plan: EntryPlan, touched: str) -> OwnEntries | None:
        buffer = self._txn.buffer.indexes.get(plan.index.id)
        if buffer is None or buffer.is_empty:
            return None
        return OwnEntries(self._txn, sorter, self._plan.table, plan, buffer, touched)

    def _sort(
        self,
        sorter: Sorter,
        plan: EntryPlan,
        sql: str,
        kind: SegmentKind,
        stamp: Stamp,
        own: OwnEntries | None,
        unique: Distinct | None = None,
    ) -> None:
        if own is None:
            self._written.append(_Written(plan, stamp, self._files.write(plan, sql, kind, unique)))
            return
        sorter.keep(_STAMPED, own.stamped(sql, stamp))
        for base, fresh, moves in sorter.ask(f"SELECT DISTINCT base, fresh, moves FROM {_STAMPED}"):  # noqa: S608 - our own
            group = Stamp(Seq(base), fresh, moves or kind is SegmentKind.TOMBSTONES)
            if kind is SegmentKind.TOMBSTONES and fresh and not self._is_referenced(plan):
                # No committed entry has the key.
                continue
            rows = f"SELECT * FROM {_STAMPED} WHERE base = {base} AND fresh = {fresh} AND moves = {moves}"  # noqa: S608
            segments = self._files.write(plan, rows, kind, fresh=fresh and kind is SegmentKind.DATA)
            self._written.append(_Written(plan, group, segments))
        sorter.drop(_STAMPED)

    def _is_referenced(self, plan: EntryPlan) -> bool:
        """Whether rows may refer to keys of the index: those that are given up are looked for in them."""
        return any(key.parent_index == plan.index.id for _, key in self._references)

    def _key(self, plan: EntryPlan) -> list[ColumnId]:
        return [c for c, _ in plan.columns[: plan.key_width]]

    def _entries(self, plan: EntryPlan, columns: Sequence[ColumnId], held: Callable[[ColumnId], str]) -> str:
        """A query for columns of the index entries of the stream's rows, before or after the change."""
        table = self._plan.table
        wanted = [table.column_by_id[c] for c in columns]
        used = columns_read(table, plan.index, wanted, filled=True) or [
            table.column_by_id[c] for c in table.primary.key
        ]
        rows = ", ".join(f"{held(c.id)} AS {column_name(c.id)}" for c in used)
        return select_entries(table, plan.index, f"(SELECT {rows} FROM {_HELD})", wanted, filled=True)  # noqa: S608 - named by id

    def _held(self, column_id: ColumnId) -> str:
        return new_name(column_id) if column_id in (self._assigned or ()) else old_name(column_id)

    def _changes(self, plan: EntryPlan, columns: Sequence[ColumnId]) -> bool:
        """Whether the change can affect these columns of an index's entries, or which rows have an entry."""
        wanted = [self._plan.table.column_by_id[c] for c in columns]
        read = {column.id for column in columns_read(self._plan.table, plan.index, wanted, filled=True)}
        return not (self._assigned or {}).keys().isdisjoint(read)

    # Unique keys.

    def _unique(self, plan: EntryPlan) -> Distinct | None:
        width = plan.key_width if plan.is_primary else plan.unique_width
        columns = tuple(c for c, _ in plan.columns[:width])
        if not columns or not plan.looks_for_duplicates or not self._changes(plan, columns):
            return None
        return Distinct(columns, lambda key: duplicate_key(self._plan.table, plan, key), plan.index.nulls_distinct)

    def _check_unique(self, sorter: Sorter, plan: EntryPlan, unique: Distinct, is_sorted: bool) -> None:
        """Raises on the first new key that belongs to a row outside the statement, or to two of its rows, where one
        sort has not found those; or records it."""
        table = self._plan.table
        # Columns are named by id: a column that will replace another has the same name, and entries may contain both.
        columns = [replace(table.column_by_id[c], name=column_name(c)) for c in self._key(plan)]
        parts, buffer = self._reads.index_parts(table, plan.index), self._txn.buffer.indexes.get(plan.index.id)
        overlay = buffer.overlay() if buffer is not None else Overlay()
        rows = plan_scan(table, plan.index, columns, parts, overlay, self._txn.parts.warehouse, "existing")
        own = " AND ".join(f"e.{c} IS NOT DISTINCT FROM h.{c}" for c in map(column_name, self._key(plan)))
        equals = "=" if unique.nulls_distinct else "IS NOT DISTINCT FROM"
        same = " AND ".join(f"n.{c} {equals} r.{c}" for c in map(column_name, unique.columns))
        new = self._entries(plan, unique.columns, self._held)
        old = self._entries(plan, self._key(plan), old_name)
        names = ", ".join(f"n.{column_name(c)}" for c in unique.columns)
        rest = f"SELECT e.* FROM ({rows.sql}) e ANTI JOIN ({old}) h ON {own}"  # noqa: S608 - named by id
        sql = f"SELECT {names} FROM ({new}) n JOIN ({rest}) r ON {same} LIMIT 1"  # noqa: S608 - named by id
        for hit in sorter.ask(sql, Scan(sql, rows.parameters, rows.relations)):
            self._refuse_key(plan, hit)
        if not is_sorted:
            for hit in sorter.ask(repeated_keys(new, unique)):
                self._refuse_key(plan, hit)

    def _refuse_key(self, plan: EntryPlan, key: Key) -> None:
        problem = duplicate_key(self._plan.table, plan, key)
        if plan.checks:
            raise problem
        record_duplicate(self._txn, plan, problem)

    def _stage(self, written: _Written) -> Iterator[StagedFile]:
        for segment in written.segments:
            yield self._files.stage(written.plan, segment, written.stamp.base, written.stamp.moves)

    def _check_current(self, staged: Sequence[StagedFile]) -> None:
        """Nothing is in the buffer yet: at READ COMMITTED the statement can still be run again on newer versions of the
        rows that it is the first to write."""
        if not self._txn.statement.context.waits:
            return
        with self._txn.epoch.lock:
            changed = self._txn.epoch.conflicts.find_listed(
                [(f.hashes, f.base) for f in staged if f.hashes is not None and self._is_first(f)]
            )
        if changed is not None:
            raise errors.RowChanged(seq=changed)

    def _is_first(self, file: StagedFile) -> bool:
        """Whether its keys were read by this statement. Those of an index that is not committed are no conflict."""
        return file.base == self._txn.snapshot.seq and not file.plan.index.uncommitted


def _is_data(segment: Segment) -> bool:
    return segment.kind is SegmentKind.DATA
