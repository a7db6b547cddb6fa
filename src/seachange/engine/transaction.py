"""A transaction: a snapshot, a buffer of writes, pending descriptor changes, and their commit.

**Invariant:** every statement plans with the schema of its snapshot, overlaid with the transaction's own changes; a
write remembers the snapshot at which it was computed, and the commit is checked against everything since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from seachange import errors
from seachange.engine.buffer import WriteBuffer
from seachange.engine.bulk import BulkInsert
from seachange.engine.bulk_change import BulkChange
from seachange.engine.bulk_rules import check_change, check_load
from seachange.engine.claims import Claim, Claims, claim_deletes, claim_inserts, claim_key, claim_updates
from seachange.engine.client import Client, driven_by_hand
from seachange.engine.deferral import Deferral, find_deferrable
from seachange.engine.epoch import EpochState
from seachange.engine.foreign_key import ForeignKeys
from seachange.engine.lookup import find_primary_key
from seachange.engine.nodeparts import NodeParts
from seachange.engine.pending import PendingSchema
from seachange.engine.readset import ReadSet
from seachange.engine.seek import choose_access, rows_as_parts, select_rows
from seachange.engine.staged import is_hidden
from seachange.engine.submit import commit_transaction
from seachange.engine.writeplan import WritePlan
from seachange.engine.writes import RowWriter
from seachange.model.condition import Condition
from seachange.model.constraint import Action
from seachange.model.descriptor import Column, Index, Table
from seachange.model.ids import DescriptorId, IndexId, KeyHash, Seq, TableId
from seachange.model.isolation import Isolation
from seachange.model.locking import AdvisoryCall, LockPolicy, LockStrength
from seachange.model.references import Reference, references_to
from seachange.model.relation import RelationName
from seachange.model.scan import Scan, ScanFacts
from seachange.storage.image import SnapshotParts
from seachange.storage.keys import entry_hash, unique_hash
from seachange.storage.plan import Overlay, plan_scan

Row = tuple[Any, ...]
Mark = tuple[int, int, int, Deferral]
T = TypeVar("T")
DEFAULT_SCHEMA = "public"


class Transaction:
    def __init__(
        self,
        parts: NodeParts,
        epoch: EpochState,
        isolation: Isolation,
        as_of: Seq | None = None,
        client: Client | None = None,
    ) -> None:
        self.parts = parts
        self.epoch = epoch
        self.isolation = isolation
        self.read_only = as_of is not None
        self.buffer = WriteBuffer()
        self.pending = PendingSchema()
        # Tables used, with the version that they were planned with; indexes that some statement relied on to be empty.
        self.used: dict[DescriptorId, int] = {}
        self.relied_empty: dict[IndexId, tuple[Table, Seq]] = {}
        # Tables of which no writer may commit that planned with an older version than this transaction publishes.
        self.fenced: set[TableId] = set()
        # Keys of other tables that rows of this transaction refer to, with the snapshot at which they were there.
        self.shares: dict[KeyHash, Seq] = {}
        self._foreign_keys = ForeignKeys(self)
        # Stays empty below SERIALIZABLE.
        self.reads = ReadSet()
        self._scans = 0
        self._ticket = epoch.registry.enter() if as_of is None else epoch.registry.enter_below(as_of)
        try:
            self.snapshot = self._look() if as_of is None else self._look_back(as_of)
        except BaseException:
            # What never began must not hold the low-water mark.
            epoch.registry.leave(self._ticket)
            raise
        self.client = client if client is not None else driven_by_hand(self._ticket)
        self.claims = Claims(epoch, self._ticket, self.client, self.shares)
        self._open = True

    def _look(self) -> Seq:
        head = self.epoch.catch_up()
        self.epoch.registry.move(self._ticket, head)
        return head

    def _look_back(self, as_of: Seq) -> Seq:
        """The past may be one that others have made and this node has not applied yet; the future cannot be read."""
        if as_of > self.epoch.applied and as_of > self.epoch.catch_up():
            raise errors.InvalidSetting(name="seachange.as_of", value=as_of)
        return as_of

    # Statements.

    def start_statement(self) -> None:
        """READ COMMITTED: the next statement sees what is committed now, unless a table that this transaction has
        used has a newer version there: a transaction never mixes two versions of a table."""
        if self.read_only or self.isolation is not Isolation.READ_COMMITTED:
            return
        head = self.epoch.catch_up()
        newer = self.epoch.schema(head).by_id
        if all(id_ in newer and newer[id_].version == version for id_, version in self.used.items()):
            self.snapshot = head
            if self.buffer.is_empty and not self.pending:
                self.epoch.registry.move(self._ticket, head)

    def renew_snapshot(self, seq: int) -> bool:
        """Whether a statement that met a row of commit `seq` can be run again on it: READ COMMITTED only, and only if
        its snapshot may advance that far."""
        if self.isolation is Isolation.READ_COMMITTED:
            self.start_statement()
        return self.isolation is Isolation.READ_COMMITTED and self.snapshot >= seq

    def mark(self) -> Mark:
        return self.buffer.mark(), self.pending.mark(), len(self.shares), self._foreign_keys.deferral

    def reset(self, mark: Mark) -> None:
        """Takes back everything since `mark`: a statement that failed leaves none of its writes."""
        while len(self.shares) > mark[2]:
            self.shares.popitem()
        self.pending.reset(mark[1])
        self._foreign_keys.deferral = mark[3]
        self._abandon([segment.id for segment in self.buffer.reset(mark[0])])

    def set_constraints(self, names: Sequence[RelationName] | None, deferred: bool) -> None:
        """Constraints that become immediate are checked at once; if that fails, they stay as they were."""
        tables = self.tables()
        found = None if names is None else [key for name in names for key in find_deferrable(tables, name)]
        self._foreign_keys.set_deferral(found, deferred)

    # Descriptors.

    def table(self, schema: str | None, name: str) -> Table:
        found = self.pending.find(schema or DEFAULT_SCHEMA, name, self.epoch.schema(self.snapshot))
        if found is None:
            raise errors.UndefinedTable(name=f"{schema}.{name}" if schema else name)
        return found

    def tables(self) -> tuple[Table, ...]:
        return self.pending.tables(self.epoch.schema(self.snapshot))

    def table_by_id(self, table_id: TableId) -> Table | None:
        return self.pending.find_by_id(table_id, self.epoch.schema(self.snapshot))

    def references_to(self, table: Table) -> tuple[Reference, ...]:
        """The foreign keys that refer to a table, with their tables."""
        if self.pending:
            return references_to(self.tables(), table.id)
        return self.epoch.schema(self.snapshot).references.get(table.id, ())

    def allocate_ids(self, count: int) -> range:
        return self.parts.catalog.allocate_ids(count)

    def publish(self, before: Table | None, after: Table | None) -> None:
        self._check_writable()
        if before is not None:
            self._use(before)
        self.pending.publish(before, after)
        if before is not None and after is not None:
            self.buffer.convert(self.parts.write_plan(before), self.parts.write_plan(after))

    def is_empty(self, index_id: IndexId) -> bool:
        table = next(t for t in self.tables() if index_id in t.index_by_id)
        own = self.buffer.indexes.get(index_id)
        if own is not None and (own.staged or own.removed or any(e.row is not None for e in own.entries.values())):
            return False
        if self.pending.is_new(table):
            return True
        return self.epoch.image(table, table.index_by_id[index_id], self.snapshot).is_empty(self.snapshot)

    def rely_on_empty(self, index_id: IndexId) -> None:
        table = next(t for t in self.tables() if index_id in t.index_by_id)
        if not self.pending.is_new(table):
            self.relied_empty[index_id] = (table, self.snapshot)

    def fence(self, table_ids: Collection[TableId]) -> None:
        self.fenced |= set(table_ids)

    # Reading.

    def scan(
        self,
        table: Table,
        hidden: bool = False,
        columns: frozenset[str] | None = None,
        sought: frozenset[str] | None = None,
        conditions: Sequence[Condition] = (),
    ) -> Scan:
        shown = [c for c in table.columns if hidden or not c.hidden]
        wanted = [c for c in shown if columns is None or c.name.lower() in columns]
        # Files are sorted by the key: a condition on its first column skips most of a file, one on others little.
        first = table.column_by_id[table.entry_key(table.primary)[0]].name.lower()
        self.note_scan(table, conditions)
        self._scans += 1
        name, whole = f"s{self._scans}", sought is not None and first not in sought
        if conditions and self.parts.seeks:
            return self._seek(table, wanted, conditions, name, whole)
        return self._scan_index(table, table.primary, wanted, name, whole)

    def _scan_index(self, table: Table, index: Index, wanted: Sequence[Column], name: str, whole: bool) -> Scan:
        parts, overlay = self.index_parts(table, index), self._overlay(index)
        return plan_scan(table, index, wanted, parts, overlay, self.parts.warehouse, name, whole)

    def _seek(
        self, table: Table, wanted: Sequence[Column], conditions: Sequence[Condition], name: str, whole: bool
    ) -> Scan:
        self._use(table)
        with self._reading():
            access = choose_access(self, table, wanted, conditions)
        if access.rows is not None:
            parts = rows_as_parts(table, wanted, access.rows)
            scan = plan_scan(table, table.primary, wanted, parts, Overlay(), self.parts.warehouse, name)
            return replace(scan, access=f"look-up: {access.reason}")
        if access.covers and access.path is not None:
            scan = self._scan_index(table, access.path.plan.index, wanted, name, whole=False)
            return replace(scan, access=f"index scan: {access.reason}, but stores all columns")
        return replace(
            self._scan_index(table, table.primary, wanted, name, whole), access=f"full scan: {access.reason}"
        )

    def select(self, table: Table, columns: Sequence[Column], conditions: Sequence[Condition]) -> Sequence[Row] | None:
        if not self.parts.seeks:
            return None
        self._use(table)
        with self._reading():
            return select_rows(self, table, columns, conditions)

    def describe(self, table: Table) -> ScanFacts:
        parts, own = self.index_parts(table, table.primary), self._overlay(table.primary)
        touched = [len(file.superseded) for file in parts.files if len(file.superseded)]
        return ScanFacts(
            untouched=len(parts.files) - len(touched),
            touched=len(touched),
            superseded=sum(touched),
            inline_rows=sum(rows.num_rows for _, rows in parts.inline),
            own_rows=(own.rows.num_rows if own.rows is not None else 0) + sum(f.segment.rows for f in own.files),
        )

    def index_parts(self, table: Table, index: Index) -> SnapshotParts:
        self._use(table)
        if self.pending.is_new(table):
            return SnapshotParts((), ())
        with self._reading():
            return self.epoch.image(table, index, self.snapshot).parts(self.snapshot)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """A file that is missing because the snapshot was given up is not damage: it is a lost snapshot."""
        try:
            yield
        except errors.SegmentDamaged as problem:
            self.check_snapshot()
            raise problem

    def check_snapshot(self) -> None:
        """Raises when what this transaction reads may have been collected."""
        floor = self.parts.catalog.floor()
        if self.snapshot < floor:
            raise errors.SnapshotTooOld(snapshot=self.snapshot, detail=f"history is kept from commit {floor} on")
        if self.epoch.epoch not in {node.epoch for node in self.parts.catalog.nodes() if node.live}:
            self.epoch.ended = True
            raise errors.StaleNode(node=self.epoch.epoch)

    def _overlay(self, index: Index) -> Overlay:
        own = self.buffer.indexes.get(index.id)
        return own.overlay() if own is not None else Overlay()

    def get(self, table: Table, key: Row) -> Row | None:
        if self.isolation is Isolation.SERIALIZABLE:
            encoded = self.parts.write_plan(table).primary.codec.encode(key)
            self.reads.add_keys(table.primary.id, [entry_hash(table.primary.id, encoded)])
        return self.peek(table, key)

    def peek(self, table: Table, key: Row) -> Row | None:
        """The same for a row that the conditions of a scan stand for: that it was read is on record."""
        self._use(table)
        plan = self.parts.write_plan(table)
        own = self.buffer.indexes.get(table.primary.id)
        if own is not None:
            entry = own.entries.get(plan.primary.codec.encode(key))
            if entry is not None:
                return None if entry.row is None else self._from_stored(table, table.layout.id, entry.row)
            staged = self._writer(plan).find_staged_row(own, key)
            if staged is not None:
                return self._from_stored(table, staged.layout_id, staged.row)
            if is_hidden(self.parts.warehouse, own, key):
                return None
        if self.pending.is_new(table):
            return None
        with self._reading():
            found = self.epoch.image(table, table.primary, self.snapshot).get(key, self.snapshot)
        return None if found is None else self._from_stored(table, found.layout_id, found.row)

    def _from_stored(self, table: Table, layout_id: Any, row: Row) -> Row:
        project = self.parts.read_projection(table, layout_id)
        return row if project is None else project(row)

    def find_unique(self, table: Table, index: Index, key: Row) -> Row | None:
        if index.id == table.primary.id:
            return self.get(table, key)
        self._use(table)
        self.note_unique(table, index, key)
        with self._reading():
            primary = find_primary_key(self, self.parts.write_plan(table), index, key, self.pending.is_new(table))
        return None if primary is None else self.get(table, primary)

    def note_unique(self, table: Table, index: Index, key: Row) -> None:
        """A unique key was looked for, found or not."""
        if self.isolation is Isolation.SERIALIZABLE:
            encoded = self.parts.write_plan(table).entry(index.id).unique_codec.encode(key)
            self.reads.add_keys(table.primary.id, [unique_hash(index.id, encoded)])

    def note_scan(self, table: Table, conditions: Sequence[Condition] = ()) -> None:
        """The rows of a table that meet the conditions were looked at, or looked for."""
        if self.isolation is Isolation.SERIALIZABLE:
            self.reads.add_scan(table, conditions)

    def broken_checks(self, table: Table, rows: Sequence[Row]) -> list[tuple[str, Row]]:
        """The rows that do not fulfil a CHECK constraint, with its name."""
        checks = self.parts.write_plan(table).checks
        if not checks:
            return []
        return [(check.name, row) for check, row in checks.broken(rows, self.parts.duck, self.client.interrupts)]

    def each(self, items: Iterable[T]) -> Iterator[T]:
        return self.client.interrupts.each(items)

    # Writing.

    def advise(self, call: AdvisoryCall, key: KeyHash | None) -> bool:
        return self.client.advisory.run(call, key, self.claims)

    def lock_rows(
        self,
        table: Table,
        keys: Sequence[Row],
        strength: LockStrength,
        policy: LockPolicy,
        most: int | None = None,
    ) -> Sequence[bool]:
        plan = self._write_plan(table).primary
        if self.pending.is_new(table):
            return [n < most if most is not None else True for n in range(len(keys))]
        claims = [claim_key(plan, key, strength) for key in keys]
        taken = self.claims.lock(claims, policy, most)
        own = self.buffer.indexes.get(plan.index.id)
        self.claims.declare(
            [
                claim
                for key, claim, is_taken in zip(keys, claims, taken, strict=True)
                if is_taken and (own is None or plan.codec.encode(key) not in own.entries)
            ],
            self.snapshot,
        )
        return taken

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        writer = self._writer(self._write_plan(table))
        writer.check(rows)
        if not self.pending.is_new(table):
            self._take(writer.plan, claim_inserts(writer.plan, self.each(rows)))
        rowid = writer.plan.rowid
        for row in self.each(rows):
            if rowid is not None and row[rowid] is None:
                row = (*row[:rowid], self.parts.rowids.take(self.epoch.epoch), *row[rowid + 1 :])
            writer.insert(row)
        self._foreign_keys.inserted(table, rows)

    def _take(self, plan: WritePlan, claims: Sequence[Claim]) -> None:
        if self.isolation is Isolation.SERIALIZABLE:
            # That a key is taken is something read, even if the statement fails for it.
            self.reads.add_keys(plan.primary.index.id, [claim.lock for claim in claims])
        self.claims.take(claims, self.snapshot)

    def update(self, table: Table, old: Sequence[Row], new: Sequence[Row]) -> None:
        self.write_update(table, old, new)
        self._foreign_keys.updated(table, old, new)

    def write_update(self, table: Table, old: Sequence[Row], new: Sequence[Row]) -> None:
        """Without looking at what refers to the rows or what they refer to."""
        writer = self._writer(self._write_plan(table))
        writer.check(new)
        if not self.pending.is_new(table):
            self._take(writer.plan, claim_updates(writer.plan, self.buffer, self.each(old), new))
        # Keys are freed before they are taken, so that a statement may shift or swap them.
        moved = [(o, n) for o, n in self.each(zip(old, new, strict=True)) if writer.moves(o, n)]
        for before, after in self.each(zip(old, new, strict=True)):
            if not writer.moves(before, after):
                writer.update(before, after)
        for before, _ in self.each(moved):
            writer.delete(before)
        for _, after in self.each(moved):
            writer.insert(after)

    def delete(self, table: Table, old: Sequence[Row]) -> None:
        self.write_delete(table, old)
        self._foreign_keys.deleted(table, old)

    def write_delete(self, table: Table, old: Sequence[Row]) -> None:
        writer = self._writer(self._write_plan(table))
        if not self.pending.is_new(table):
            self.claims.take(claim_deletes(writer.plan, self.buffer, self.each(old)), self.snapshot)
        for row in self.each(old):
            writer.delete(row)

    def insert_arrow(self, table: Table, rows: pa.RecordBatchReader) -> int:
        plan = self._write_plan(table)
        with self._in_bulk(table):
            load = BulkInsert(self, plan, self.pending.is_new(table))
            count = load.run(rows)
            check_load(self, plan, load.segments, self._foreign_keys)
            return count

    def changes_in_bulk(self, table: Table, assigned: Sequence[Column] | None) -> bool:
        """Not where the transaction has written to the table already, or a change of a key goes on to other rows."""
        if any(
            index.id in self.buffer.indexes and not self.buffer.indexes[index.id].is_empty for index in table.indexes
        ):
            return False
        changed = {column.id for column in assigned or ()}
        return not any(
            key.on_update not in (Action.NO_ACTION, Action.RESTRICT)
            and not changed.isdisjoint(table.index_by_id[key.parent_index].key)
            for _, key in self.references_to(table)
        )

    def change_arrow(self, table: Table, rows: pa.RecordBatchReader, assigned: Sequence[Column] | None) -> int:
        plan = self._write_plan(table)
        with self._in_bulk(table):
            change = BulkChange(self, plan, assigned)
            count = change.run(rows)
            check_change(self, plan, change, assigned, self._foreign_keys)
            return count

    @contextmanager
    def _in_bulk(self, table: Table) -> Iterator[None]:
        mark = self.mark()
        try:
            with self.epoch.noticing_end():
                yield
        except BaseException as problem:
            self.reset(mark)
            if isinstance(problem, errors.UniqueViolation):
                self.note_scan(table)
            raise

    def _write_plan(self, table: Table) -> WritePlan:
        self._check_writable()
        self._use(table)
        return self.parts.write_plan(table)

    def _writer(self, plan: WritePlan) -> RowWriter:
        is_new = self.pending.is_new(plan.table)
        return RowWriter(plan, self.buffer, self.epoch, self.parts, self.snapshot, is_new, self.client.interrupts)

    def _use(self, table: Table) -> None:
        if not self.pending.changes(table):
            self.used[table.id] = table.version

    def written_versions(self) -> dict[DescriptorId, int]:
        """The version vector of the commit: what its plans depended on."""
        return {id_: version for id_, version in self.used.items() if id_ not in self.pending.versions()}

    def _check_writable(self) -> None:
        if self.read_only:
            raise errors.ReadOnlyTransaction(command="a write")

    # The end.

    @property
    def has_writes(self) -> bool:
        return not self.buffer.is_empty or bool(self.pending)

    def commit(self) -> Seq | None:
        """Makes the writes durable and visible to all; gives their sequence, None if there was nothing to commit."""
        if not self._open:
            raise errors.ActiveTransaction(detail="the transaction has ended")
        try:
            with self.epoch.noticing_end():
                if self._foreign_keys.deferred:
                    self._settle_deferred()
                return commit_transaction(self) if self.has_writes else None
        finally:
            self._close()

    def _settle_deferred(self) -> None:
        self.start_statement()
        try:
            self._foreign_keys.settle_deferred()
        except errors.Error:
            self._abandon([segment.id for segment in self.buffer.staged_segments()])
            raise

    def rollback(self) -> None:
        if self._open:
            self._close()
            self._abandon([segment.id for segment in self.buffer.staged_segments()])

    def _close(self) -> None:
        self._open = False
        self.claims.release()
        self.epoch.registry.leave(self._ticket)

    def _abandon(self, ids: Sequence[Any]) -> None:
        if ids:
            self.parts.catalog.abandon_segments(self.epoch.epoch, ids)
