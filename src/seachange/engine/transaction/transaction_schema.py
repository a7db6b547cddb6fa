"""A transaction's state, its snapshot, and the tables as they are there, with its own changes of them.

**Invariant:** every statement plans with the schema of its snapshot, overlaid with the transaction's own changes. At
READ COMMITTED a table that the transaction has used before is shown in the shape of then (`shapes.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from seachange import errors
from seachange.engine.buffer.declarations import Declarations
from seachange.engine.buffer.pending_schema import PendingSchema
from seachange.engine.buffer.read_set import ReadSet
from seachange.engine.buffer.rights import Rights
from seachange.engine.buffer.shapes import Shapes
from seachange.engine.buffer.write_buffer import RowsFit, WriteBuffer
from seachange.engine.buffer.write_locks import WriteLocks
from seachange.engine.context.drawn_values import DrawnTape
from seachange.engine.context.statement_context import BLOCK, StatementContext, TransactionMode
from seachange.engine.locks.session_context import SessionContext, driven_by_hand
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_parts import NodeParts
from seachange.engine.replica.registry import OpenWriter, SnapshotPins
from seachange.engine.replica.schema_history import Contents, Relation, SchemaVersion
from seachange.model.ids import DescriptorId, Seq, TableId
from seachange.model.isolation import Isolation
from seachange.model.jobs import JobId, JobRecord
from seachange.model.locking import WEAK_TABLE_LOCKS, LockPolicy, TableLock
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.access import Access
from seachange.model.schema.actor import Actor
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import DEFAULT_SCHEMA, Descriptor, EnumType, Role, Schema, View
from seachange.model.schema.references import Reference, references_to
from seachange.model.schema.rights import OnObject, OnUnsaid, Right
from seachange.model.schema.shape import has_same_plan
from seachange.model.schema.temporary import OWN_SCHEMA, is_temporary, schema_of_session
from seachange.model.statements import OnCommit
from seachange.sql.change.object_access import describe
from seachange.sql.compile.template import SESSION_ROLE, SESSION_SCHEMA, SESSION_USER
from seachange.sql.parsing.mentions import Mentions
from seachange.sql.port.port import SessionView
from seachange.sql.translate.time_functions import CLOCK, STATEMENT, TRANSACTION
from seachange.storage.keys import change_hash, name_hash

Row = tuple[Any, ...]
T = TypeVar("T")
# What leaves nothing behind that a commit could answer for.
_READING = ("SELECT",)


class TransactionSchema:
    def __init__(
        self,
        parts: NodeParts,
        epoch: EpochState,
        isolation: Isolation,
        as_of: Seq | None = None,
        client: SessionContext | None = None,
        may_write: bool = True,
        mode: TransactionMode = BLOCK,
    ) -> None:
        self.parts = parts
        self.epoch = epoch
        # When it began, and when its current statement did.
        self._began_us = self._statement_us = parts.clock.wall_us()
        self.isolation = isolation
        self.read_only = as_of is not None
        # Schema changes do not wait for one that only reads.
        self._may_write = may_write and as_of is None
        self.buffer = WriteBuffer()
        self.pending = PendingSchema()
        # Tables used, with the version that they were planned with.
        self.used: dict[DescriptorId, int] = {}
        # What these look like to its statements.
        self.shapes = Shapes()
        self.declared = Declarations()
        # Whether a commit has put the buffer into another form than its statements left it in.
        self.is_adapted = False
        # Tables that the statement under way has looked at, and the values that were drawn for it.
        self.seen: set[DescriptorId] = set()
        self.tape = DrawnTape()
        # Rows that one part of the statement under way gives to those behind it.
        self.handed: dict[str, pa.Table] = {}
        self.mode = mode
        # Stays empty below SERIALIZABLE.
        self.reads = ReadSet()
        self._ticket = self._enter(client) if as_of is None else epoch.registry.enter_below(as_of)
        self.snapshot = self._take_snapshot(as_of)
        # On whose behalf it runs.
        self.rights = Rights(epoch, self.pending)
        # What is read lazily, later in the transaction, stays as it was.
        self.holds = SnapshotPins()
        self.client = client if client is not None else driven_by_hand(self._ticket)
        self.write_locks = WriteLocks(epoch, self._ticket, self.client, self.declared.shares)
        self.write_locks.is_shared = mode.is_contended
        self.enter(StatementContext())
        epoch.tables.enter(self._ticket, self.write_locks)
        self._open = True
        # Whether the statement under way reads as of a limit.
        self.is_held = False

    def _enter(self, client: SessionContext | None) -> int:
        if not self._may_write:
            return self.epoch.registry.enter()
        name = client.name if client is not None else "a transaction of its own"
        return self.epoch.registry.enter(OpenWriter(name, self.parts.clock.wall_us()))

    def _take_snapshot(self, as_of: Seq | None) -> Seq:
        try:
            return self._look() if as_of is None else self._look_back(as_of)
        except BaseException:
            # What never began must not hold the low-water mark.
            self.epoch.registry.leave(self._ticket)
            raise

    def _look(self) -> Seq:
        head = self.epoch.catch_up()
        self.epoch.registry.move(self._ticket, head)
        return head

    def _look_back(self, as_of: Seq) -> Seq:
        """The future cannot be read; and who may read the past is decided now."""
        if as_of > self.epoch.catch_up():
            raise errors.InvalidSetting(name="seachange.as_of", value=as_of)
        return as_of

    # Statements.

    def enter(self, context: StatementContext, mentions: Mentions | None = None) -> None:
        """The statements from now on run in this context; `mentions` is what the next one needs of its tables, None if
        it is part of the one before."""
        self.context = context
        self.rights.identity = context.identity
        self.write_locks.timeout_ms = context.lock_timeout_ms
        self.write_locks.waits = context.waits
        if mentions is not None:
            self.shapes.statement = mentions

    @property
    def session(self) -> SessionView:
        return self.context.session

    @property
    def search_path(self) -> tuple[str, ...]:
        return self.context.search_path

    def known(self) -> dict[str, Any]:
        """The values that functions return about the transaction in this statement."""
        who = {SESSION_ROLE: self.actor.user, SESSION_USER: self.session.session_user}
        return {**self.moments, SESSION_SCHEMA: self.current_schema, **who}

    @property
    def moments(self) -> dict[str, int]:
        """The values that functions of time return in this statement."""
        return {TRANSACTION: self._began_us, STATEMENT: self._statement_us, CLOCK: self.parts.clock.wall_us()}

    def each(self, items: Iterable[T]) -> Iterator[T]:
        return self.client.interrupts.each(items)

    def pause(self, seconds: float) -> None:
        self.client.interrupts.pause(seconds)

    # Roles.

    @property
    def actor(self) -> Actor:
        return self.rights.actor

    @property
    def roles(self) -> Mapping[str, Role]:
        return self.rights.roles

    def acting_as(self, role: str) -> AbstractContextManager[None]:
        return self.rights.acting_as(role)

    def access_of(self, descriptor: Descriptor) -> Access:
        return self.rights.access_of(descriptor.id)

    def allows(self, right: Right) -> bool:
        return self.rights.allows(right)

    def require(self, right: Right, denial: str) -> None:
        self.rights.require(right, denial)

    def check_access(self, descriptor: Relation, *privileges: str) -> None:
        # The role that everything belongs to at first can lose nothing.
        if self.rights.is_root:
            return
        right, denial = OnObject(descriptor.id, privileges), f"permission denied for {describe(descriptor)}"
        space = None if is_temporary(descriptor.schema) else self.schema_right(descriptor.schema, "USAGE")
        if privileges == _READING:
            if not self.allows(right):
                raise errors.InsufficientPrivilege(detail=denial)
            if space is not None and not self.allows(space):
                raise errors.InsufficientPrivilege(detail=f"permission denied for schema {descriptor.schema}")
            return
        self.require(right, denial)
        if space is not None:
            self.require(space, f"permission denied for schema {descriptor.schema}")

    def schema_right(self, name: str, privilege: str, of: str | None = None) -> Right | None:
        """A privilege on a schema of the database. None for one that has no privileges: it belongs to the system."""
        found = self._committed.schemas.get(name)
        if self.pending:
            found = next((o for o in self.objects() if isinstance(o, Schema) and o.name == name), None)
        if found is not None:
            return OnObject(found.id, (privilege,), of=of)
        if name != DEFAULT_SCHEMA:
            return None
        return OnUnsaid(ObjectKind.SCHEMA, self.session.database, name, privilege, of)

    def salt(self, count: int) -> bytes:
        return self.parts.entropy.token(count)

    def has_fixed_password(self, role: str) -> bool:
        return role in self.parts.fixed_passwords

    # Tables.

    @property
    def temporary_schema(self) -> str | None:
        return self.client.temporary.schema

    def begin_temporary(self) -> None:
        temporary = self.client.temporary
        if temporary.schema is None:
            temporary.schema = schema_of_session(self.epoch.epoch, self.client.actor)
        if temporary.schema not in self.search_path:
            self.context = replace(self.context, search_path=(temporary.schema, *self.search_path))

    def changes_table(self, table: Table) -> bool:
        return self.pending.changes(table)

    def note_temporary(self, table: Table, on_commit: OnCommit) -> None:
        self.client.temporary.on_commit[table.id] = on_commit

    @property
    def _whole(self) -> SchemaVersion:
        return self.epoch.schema(self.snapshot)

    @property
    def _committed(self) -> Contents:
        """What was committed of the database that it is about."""
        return self._whole.within(self.session.database)

    def relation(self, schema: str | None, name: str) -> Relation:
        committed = self._committed
        if schema == OWN_SCHEMA:
            schema = self.client.temporary.schema or OWN_SCHEMA
        for each in self.search_path if schema is None else (schema,):
            found = self.pending.find(each, name, committed)
            self.note_name(each, name)
            if isinstance(found, View):
                self._note_view(found)
            if found is not None:
                if isinstance(found, Table) and not self.pending.changes(found):
                    self.shapes.name(found, self.snapshot)
                return found
        raise errors.UndefinedTable(name=f"{schema}.{name}" if schema else name)

    def note_name(self, schema: str, name: str) -> None:
        """What the name of a relation or type means is something read, also that it means nothing."""
        if self.isolation is Isolation.SERIALIZABLE:
            self.reads.names.add(name_hash(self.session.database, schema, name))

    def _note_view(self, view: View) -> None:
        if self.isolation is Isolation.SERIALIZABLE:
            self.reads.names.add(change_hash(view.id))

    @property
    def current_schema(self) -> str | None:
        """The first schema of the path that exists."""
        created = self._committed.schemas
        if self.pending:
            created = {o.name: o for o in self.objects() if isinstance(o, Schema)}
        return next((name for name in self.search_path if name == DEFAULT_SCHEMA or name in created), None)

    def table(self, schema: str | None, name: str) -> Table:
        found = self.relation(schema, name)
        if not isinstance(found, Table):
            raise errors.WrongObjectType(name=name, kind="table")
        return found

    def objects(self) -> tuple[Descriptor, ...]:
        return self.pending.objects(self._committed)

    def object_by_id(self, id_: DescriptorId) -> Descriptor | None:
        return self.pending.find_object(id_, self._whole)

    @property
    def has_enums(self) -> bool:
        if self._committed.has_enums:
            return True
        return bool(self.pending) and any(isinstance(found, EnumType) for found in self.objects())

    def tables(self) -> tuple[Table, ...]:
        return self.pending.tables(self._committed)

    def every_table(self) -> tuple[Table, ...]:
        return self.pending.tables(self._whole)

    def every_object(self) -> tuple[Descriptor, ...]:
        return self.pending.objects(self._whole)

    def dropped_tables(self) -> tuple[Table, ...]:
        kept = [replace(d.body, version=d.version) for d in self.parts.catalog.dropped() if isinstance(d.body, Table)]
        return (*kept, *self.pending.dropped())

    def table_by_id(self, table_id: TableId) -> Table | None:
        return self.pending.find_by_id(table_id, self._whole)

    def references_to(self, table: Table) -> tuple[Reference, ...]:
        """The foreign keys that refer to a table, with their tables."""
        if self.pending:
            return references_to(self.every_table(), table.id)
        return self._whole.references.get(table.id, ())

    def allocate_ids(self, count: int) -> range:
        return self.parts.catalog.allocate_ids(count)

    @property
    def is_autocommit(self) -> bool:
        return self.mode.autocommit

    @property
    def asks_for_job(self) -> bool:
        return self.mode.asks_for_job

    @property
    def queue_place(self) -> JobId | None:
        queued = self.mode.queued
        return queued.id if queued is not None else None

    @property
    def release(self) -> int:
        return self.epoch.release

    def unfinished_jobs(self) -> tuple[JobRecord, ...]:
        return self.parts.catalog.jobs(unfinished=True)

    # What it relies on.

    def _use(self, table: Table, mode: TableLock = TableLock.ACCESS_SHARE) -> None:
        self.seen.add(table.id)
        if self.pending.changes(table):
            return
        if self.write_locks.table_modes.get(table.id, 0) < mode:
            # Rows that a statement only brings depend on nothing.
            reads = mode is not TableLock.ROW_EXCLUSIVE or table.id in self.write_locks.table_modes
            self._hold_table(table, mode, reads)
        self.shapes.use(table, self.snapshot)
        fit = self.buffer.fits.get(table.id)
        if fit is not None and fit.table.version != table.version:
            self._check_fit(fit, table)
        self.used[table.id] = table.version

    def begin_write(self, table: Table, reads: bool = True) -> None:
        mode = TableLock.ROW_EXCLUSIVE
        if self.write_locks.table_modes.get(table.id, 0) < mode and not self.pending.changes(table):
            self._hold_table(table, mode, reads)

    def _hold_table(self, table: Table, mode: TableLock, reads: bool) -> None:
        """A statement that reads and had to wait is run again: it is to see what the other transaction has done."""
        # As of a limit it would see the same again.
        moves = self.isolation is Isolation.READ_COMMITTED and not self.is_held
        if self.write_locks.hold_table(table.id, mode) and reads and moves:
            changed = self._changed_since(table)
            if changed > self.snapshot:
                raise errors.RowChanged(seq=changed)

    def _changed_since(self, table: Table) -> Seq:
        with self.epoch.lock:
            newest = self.epoch.schemas.newest.by_id.get(table.id)
            if newest is None or newest.version != table.version:
                return self.epoch.applied
            return self.epoch.conflicts.newest_touching([table.primary.id])

    def lock_table(self, table: Table, mode: TableLock, policy: LockPolicy) -> None:
        if is_temporary(table.schema) or self.pending.is_new(table):
            # No other transaction sees it.
            return
        if mode not in WEAK_TABLE_LOCKS:
            self.write_locks.lock_table(table.id, mode, policy)
        elif self.write_locks.table_modes.get(table.id, 0) < mode:
            self.write_locks.hold_table(table.id, mode, policy)

    def await_table_locks(self, table: Table) -> None:
        """As LOCK TABLE in SHARE UPDATE EXCLUSIVE mode, but without waiting for open schema changes. Writers and
        commits do not wait for that mode."""
        if self.write_locks.waits and not is_temporary(table.schema) and not self.pending.is_new(table):
            self.write_locks.take_table(table.id, TableLock.SHARE_UPDATE_EXCLUSIVE, LockPolicy.WAIT)

    def use_locked(self, table: Table) -> None:
        """LOCK TABLE is a use of the table, as it is once the lock was granted."""
        if self.isolation is Isolation.READ_COMMITTED and not self.pending.changes(table):
            self.used.setdefault(table.id, table.version)

    def _check_fit(self, fit: RowsFit, table: Table) -> None:
        """A statement that went back to a limit never meets rows that have gone on to a later version."""
        if self.buffer.writes_to(table.id) and not has_same_plan(fit.table, table):
            raise errors.SerializationFailure(detail=f"{table.name} has changed since the transaction wrote to it")

    def planned_versions(self) -> dict[DescriptorId, int]:
        """Of the tables that were used: the version that its rows fit, else the one that it was last read in."""
        fits = self.buffer.fits
        written = {id_: fits[id_].table.version for id_ in self.used if id_ in fits and self.buffer.writes_to(id_)}
        return {**self.used, **written}

    def written_versions(self) -> dict[DescriptorId, int]:
        """The version vector of the commit: what its plans depended on."""
        known = {**self.rights.versions(), **self.declared.relied, **self.planned_versions()}
        return {id_: version for id_, version in known.items() if id_ not in self.pending.versions()}

    def _check_writable(self) -> None:
        if self.read_only:
            raise errors.ReadOnlyTransaction(command="a write")
        if not self._may_write:
            raise errors.Bug(detail="a transaction writes that was said to read only")

    def check_snapshot(self) -> None:
        """Raises when what this transaction reads may have been collected."""
        floor = self.parts.catalog.floor()
        if self.snapshot < floor:
            raise errors.SnapshotTooOld(snapshot=self.snapshot, detail=f"history is kept from commit {floor} on")
        if self.epoch.epoch not in {node.epoch for node in self.parts.catalog.nodes() if node.live}:
            self.epoch.ended = True
            raise errors.StaleNode(node=self.epoch.epoch)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """A file that is missing because the snapshot was given up is not damage: it is a lost snapshot."""
        try:
            yield
        except errors.SegmentDamaged as problem:
            self.check_snapshot()
            raise problem
