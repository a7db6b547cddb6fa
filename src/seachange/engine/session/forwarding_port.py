"""A port that passes everything on to another: the base of ports that change a part of what statements see."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import pyarrow as pa

from seachange.model.change.ops import BackfillIndexes, Validate
from seachange.model.condition import Condition
from seachange.model.ids import DescriptorId, IndexId, KeyHash, TableId
from seachange.model.jobs import JobId, JobRecord, JobRequest
from seachange.model.locking import AdvisoryCall, LockPolicy, LockStrength, ShownLock
from seachange.model.relation import RelationName
from seachange.model.scan import Scan, ScanFacts
from seachange.model.schema.access import Access
from seachange.model.schema.actor import Actor
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.objects import Database, Descriptor, Role, View
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.model.schema.references import Reference
from seachange.model.schema.rights import Right
from seachange.model.schema.sequences import SequenceState
from seachange.model.statements import OnCommit
from seachange.planner.known_schema import TableSize
from seachange.planner.plan import ChangePlan
from seachange.planner.stages import Phase, Progress
from seachange.sql.port.port import SessionView, TransactionPort

Row = tuple[Any, ...]
T = TypeVar("T")


class ForwardingPort:
    """`TransactionPort` over another one. Subclasses override what they change."""

    def __init__(self, port: TransactionPort) -> None:
        self._port = port

    # The session.

    @property
    def session(self) -> SessionView:
        return self._port.session

    @property
    def is_autocommit(self) -> bool:
        return self._port.is_autocommit

    @property
    def search_path(self) -> tuple[str, ...]:
        return self._port.search_path

    @property
    def current_schema(self) -> str | None:
        return self._port.current_schema

    @property
    def temporary_schema(self) -> str | None:
        return self._port.temporary_schema

    def begin_temporary(self) -> None:
        self._port.begin_temporary()

    def note_temporary(self, table: Table, on_commit: OnCommit) -> None:
        self._port.note_temporary(table, on_commit)

    @property
    def handed(self) -> dict[str, pa.Table]:
        return self._port.handed

    def system_rows(self, view: str) -> Sequence[Row]:
        return self._port.system_rows(view)

    def each(self, items: Iterable[T]) -> Iterator[T]:
        return self._port.each(items)

    def pause(self, seconds: float) -> None:
        self._port.pause(seconds)

    # Descriptors.

    def table(self, schema: str | None, name: str) -> Table:
        return self._port.table(schema, name)

    def relation(self, schema: str | None, name: str) -> Table | SequenceObject | View:
        return self._port.relation(schema, name)

    def tables(self) -> tuple[Table, ...]:
        return self._port.tables()

    @property
    def has_enums(self) -> bool:
        return self._port.has_enums

    def dropped_tables(self) -> tuple[Table, ...]:
        return self._port.dropped_tables()

    def note_name(self, schema: str, name: str) -> None:
        self._port.note_name(schema, name)

    def objects(self) -> tuple[Descriptor, ...]:
        return self._port.objects()

    def every_table(self) -> tuple[Table, ...]:
        return self._port.every_table()

    def every_object(self) -> tuple[Descriptor, ...]:
        return self._port.every_object()

    def table_by_id(self, table_id: TableId) -> Table | None:
        return self._port.table_by_id(table_id)

    def object_by_id(self, id_: DescriptorId) -> Descriptor | None:
        return self._port.object_by_id(id_)

    def references_to(self, table: Table) -> tuple[Reference, ...]:
        return self._port.references_to(table)

    # Roles and privileges.

    @property
    def actor(self) -> Actor:
        return self._port.actor

    def acting_as(self, role: str) -> AbstractContextManager[None]:
        return self._port.acting_as(role)

    def check_access(self, descriptor: Table | View | SequenceObject, *privileges: str) -> None:
        self._port.check_access(descriptor, *privileges)

    @property
    def roles(self) -> Mapping[str, Role]:
        return self._port.roles

    def access_of(self, descriptor: Descriptor) -> Access:
        return self._port.access_of(descriptor)

    def allows(self, right: Right) -> bool:
        return self._port.allows(right)

    def require(self, right: Right, denial: str) -> None:
        self._port.require(right, denial)

    def schema_right(self, name: str, privilege: str, of: str | None = None) -> Right | None:
        return self._port.schema_right(name, privilege, of)

    def salt(self, count: int) -> bytes:
        return self._port.salt(count)

    def has_fixed_password(self, role: str) -> bool:
        return self._port.has_fixed_password(role)

    # Reads.

    def scan(
        self,
        table: Table,
        hidden: bool = False,
        columns: frozenset[str] | None = None,
        sought: frozenset[str] | None = None,
        conditions: Sequence[Condition] = (),
    ) -> Scan:
        return self._port.scan(table, hidden, columns, sought, conditions)

    def describe(self, table: Table) -> ScanFacts:
        return self._port.describe(table)

    def size(self, table: Table) -> TableSize:
        return self._port.size(table)

    def get(self, table: Table, key: Row) -> Row | None:
        return self._port.get(table, key)

    def find_unique(self, table: Table, index: Index, key: Row) -> Row | None:
        return self._port.find_unique(table, index, key)

    def select(self, table: Table, columns: Sequence[Column], conditions: Sequence[Condition]) -> Sequence[Row] | None:
        return self._port.select(table, columns, conditions)

    # Locks.

    def lock_rows(
        self,
        table: Table,
        keys: Sequence[Row],
        strength: LockStrength,
        policy: LockPolicy,
        most: int | None = None,
    ) -> Sequence[bool]:
        return self._port.lock_rows(table, keys, strength, policy, most)

    def begin_write(self, table: Table, reads: bool = True) -> None:
        self._port.begin_write(table, reads)

    def shown_locks(self) -> Sequence[ShownLock]:
        return self._port.shown_locks()

    def advise(self, call: AdvisoryCall, key: KeyHash | None) -> bool:
        return self._port.advise(call, key)

    def hold_alone(self, database: Database) -> None:
        self._port.hold_alone(database)

    # Sequences.

    def next_values(self, name: RelationName, count: int) -> Sequence[int]:
        return self._port.next_values(name, count)

    def current_value(self, name: RelationName) -> int:
        return self._port.current_value(name)

    def last_value(self) -> int:
        return self._port.last_value()

    def set_value(self, name: RelationName, value: int, called: bool) -> None:
        self._port.set_value(name, value, called)

    def sequence_state(self, sequence: SequenceObject) -> SequenceState:
        return self._port.sequence_state(sequence)

    # Rows.

    def mark(self) -> Any:
        return self._port.mark()

    def reset(self, mark: Any) -> None:
        self._port.reset(mark)

    def defaults(self, column: Column, count: int) -> list[Any]:
        return self._port.defaults(column, count)

    def derive(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        return self._port.derive(table, rows)

    def fill(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        return self._port.fill(table, rows)

    def check(self, table: Table, rows: Sequence[Row]) -> None:
        self._port.check(table, rows)

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        self._port.insert(table, rows)

    def update(self, table: Table, old: Sequence[Row], new: Sequence[Row]) -> None:
        self._port.update(table, old, new)

    def delete(self, table: Table, old: Sequence[Row]) -> None:
        self._port.delete(table, old)

    def together(self) -> AbstractContextManager[None]:
        return self._port.together()

    def insert_arrow(self, table: Table, rows: pa.RecordBatchReader) -> int:
        return self._port.insert_arrow(table, rows)

    def changes_in_bulk(self, table: Table, assigned: Sequence[Column] | None) -> bool:
        return self._port.changes_in_bulk(table, assigned)

    def change_arrow(self, table: Table, rows: pa.RecordBatchReader, assigned: Sequence[Column] | None) -> int:
        return self._port.change_arrow(table, rows, assigned)

    # Changes of descriptors.

    def publish(self, before: Descriptor | None, after: Descriptor | None) -> None:
        self._port.publish(before, after)

    def revive(self, dropped: Table, after: Table) -> None:
        self._port.revive(dropped, after)

    def rely_on(self, objects: Iterable[Descriptor]) -> None:
        self._port.rely_on(objects)

    def check_newest(self, ids: Iterable[DescriptorId]) -> None:
        self._port.check_newest(ids)

    def is_empty(self, index_id: IndexId) -> bool:
        return self._port.is_empty(index_id)

    def rely_on_empty(self, index_id: IndexId) -> None:
        self._port.rely_on_empty(index_id)

    def is_own(self, table_id: TableId) -> bool:
        return self._port.is_own(table_id)

    def run_own(self, op: BackfillIndexes | Validate) -> None:
        self._port.run_own(op)

    def fence(self, table_ids: Collection[TableId]) -> None:
        self._port.fence(table_ids)

    def allocate_ids(self, count: int) -> range:
        return self._port.allocate_ids(count)

    @property
    def release(self) -> int:
        return self._port.release

    # Jobs.

    @property
    def asks_for_job(self) -> bool:
        return self._port.asks_for_job

    @property
    def queue_place(self) -> JobId | None:
        return self._port.queue_place

    def request_job(self, job_id: JobId, request: JobRequest) -> None:
        self._port.request_job(job_id, request)

    def unfinished_jobs(self) -> tuple[JobRecord, ...]:
        return self._port.unfinished_jobs()

    def launch(self, statement: str, plan: ChangePlan, progress: Progress, phase: Phase, passed: bool) -> JobId:
        return self._port.launch(statement, plan, progress, phase, passed)
