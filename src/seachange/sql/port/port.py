"""The ports of a statement to its transaction, which the engine implements.

Rows are tuples of Python values in the order of `table.columns` (every column that is not ABSENT, the hidden ones
included), already converted to the columns' types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa

from seachange.model.change.ops import BackfillIndexes, Validate
from seachange.model.condition import Condition
from seachange.model.ids import ColumnId, DescriptorId, IndexId, KeyHash, TableId
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
from seachange.planner.plan import Change, ChangePlan
from seachange.planner.stages import Phase, Progress

Row = tuple[Any, ...]
T = TypeVar("T")


class SessionView(Protocol):
    """The session as functions of SQL read and change it."""

    @property
    def user(self) -> str:
        """The role that has logged in."""

    @property
    def session_user(self) -> str:
        """The role that SET SESSION AUTHORIZATION has set since."""

    @property
    def database(self) -> str: ...

    @property
    def number(self) -> int:
        """Of this session among those of its node."""

    def setting(self, name: str) -> str: ...

    def set_setting(self, name: str, value: str | None, local: bool) -> str:
        """The value as it is now."""

    def settings(self) -> Sequence[tuple[str, str, str]]:
        """Names, values and descriptions."""

    def prepared(self) -> Sequence[tuple[str, str, Sequence[str], bool]]:
        """Of each prepared statement the name, text and types of parameters, and whether PREPARE has made it."""


class StatementPort(Protocol):
    """The statement under way: its session, and what ends it."""

    @property
    def session(self) -> SessionView: ...

    @property
    def is_autocommit(self) -> bool:
        """Whether the transaction is one statement, which may go on as a job after its commit."""

    @property
    def search_path(self) -> tuple[str, ...]:
        """The schemas in which names without one are looked for; some may not exist."""

    @property
    def temporary_schema(self) -> str | None:
        """That of the session's temporary tables, once it has had any."""

    def begin_temporary(self) -> None:
        """The session is about to create a temporary table."""

    def note_temporary(self, table: Table, on_commit: OnCommit) -> None:
        """The session has created one."""

    @property
    def handed(self) -> dict[str, pa.Table]:
        """Rows that one part of a statement gives to those behind it."""

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """The items, until the statement is cancelled."""

    def pause(self, seconds: float) -> None:
        """Waits so long, or until the statement is cancelled."""


class NamePort(Protocol):
    """Relations by name, as the statement sees them."""

    def table(self, schema: str | None, name: str) -> Table:
        """The table as of the statement's snapshot (with the transaction's own changes); UndefinedTable if none."""

    def relation(self, schema: str | None, name: str) -> Table | SequenceObject | View:
        """The same of any kind."""

    def tables(self) -> tuple[Table, ...]: ...


class SchemaPort(Protocol):
    """Descriptors as of the snapshot of the statement, with the changes of its transaction."""

    @property
    def current_schema(self) -> str | None:
        """The first schema of the search path that exists."""

    @property
    def has_enums(self) -> bool:
        """Whether there is any enum type."""

    def dropped_tables(self) -> tuple[Table, ...]:
        """Tables whose data is still kept, in the order in which they were dropped, as of the version that followed."""

    def note_name(self, schema: str, name: str) -> None:
        """A statement has looked for a relation or type of that name, and may have found none."""

    def objects(self) -> tuple[Descriptor, ...]:
        """All descriptors but tables, of the session's database, with the roles and databases of the cluster."""

    def every_table(self) -> tuple[Table, ...]:
        """Those of other databases too."""

    def every_object(self) -> tuple[Descriptor, ...]: ...

    def table_by_id(self, table_id: TableId) -> Table | None: ...

    def object_by_id(self, id_: DescriptorId) -> Descriptor | None: ...

    def references_to(self, table: Table) -> tuple[Reference, ...]:
        """The foreign keys that refer to a table, with their tables."""


class RightsPort(Protocol):
    """Roles and privileges, as of the head of the catalog."""

    @property
    def actor(self) -> Actor:
        """The role on whose behalf the statement runs."""

    def acting_as(self, role: str) -> AbstractContextManager[None]:
        """What is done within is done on behalf of another role."""

    def check_access(self, descriptor: Table | View | SequenceObject, *privileges: str) -> None:
        """42501 unless the role has one of the privileges on the object, and may use its schema."""

    @property
    def roles(self) -> Mapping[str, Role]:
        """By name, as of the catalog's head, like all that decides about privileges."""

    def access_of(self, descriptor: Descriptor) -> Access:
        """Its owner and privileges, as of the catalog's head."""

    def allows(self, right: Right) -> bool: ...

    def require(self, right: Right, denial: str) -> None:
        """42501 with the given message unless the role has the right, now and when the transaction commits."""

    def schema_right(self, name: str, privilege: str, of: str | None = None) -> Right | None:
        """A privilege on a schema of the database, of the role or of another; None for a schema of the system."""


class ReadPort(Protocol):
    """Rows as of the snapshot, with those that the transaction has written."""

    def scan(
        self,
        table: Table,
        hidden: bool = False,
        columns: frozenset[str] | None = None,
        sought: frozenset[str] | None = None,
        conditions: Sequence[Condition] = (),
    ) -> Scan:
        """The visible rows, with the transaction's own writes; with `hidden`, the hidden columns too. Only `columns`,
        by their names in lower case, unless None. `sought` are those by whose values the statement may skip rows:
        None if for other reasons too. Rows that fail one of the `conditions` may be left out."""

    def describe(self, table: Table) -> ScanFacts:
        """What a scan of the table would read."""

    def size(self, table: Table) -> TableSize:
        """How much is stored of the table, as far as this transaction sees it."""

    def get(self, table: Table, key: Row) -> Row | None:
        """The row with this primary key, without DuckDB."""

    def find_unique(self, table: Table, index: Index, key: Row) -> Row | None:
        """The row with this key in a unique index, the primary one or another; NULLs are only in keys of an index that
        takes them for the same."""

    def select(self, table: Table, columns: Sequence[Column], conditions: Sequence[Condition]) -> Sequence[Row] | None:
        """Exactly the rows that meet the conditions, as `columns`, in no order; None if no index leads to few."""


class LockPort(Protocol):
    """Locks on tables, databases, and advisory ones."""

    def begin_write(self, table: Table, reads: bool = True) -> None:
        """Takes the table lock of a writer, before anything is computed. A statement that `reads` and had to wait is
        run again, to see what the other transaction has done."""

    def exclude_writers(self, table: Table) -> bool:
        """Waits for open transactions that have written or locked rows of the table, and makes later ones wait for the
        end of this one; whether that was not so already."""

    def advise(self, call: AdvisoryCall, key: KeyHash | None) -> bool:
        """Takes or releases an advisory lock; whether it did."""

    def hold_alone(self, database: Database) -> None:
        """55006 if another session uses the database; none begins to before the transaction ends."""


class SequencePort(Protocol):
    """Values that do not depend on the snapshot: those of sequences and of defaults."""

    def next_values(self, name: RelationName, count: int) -> Sequence[int]:
        """Values of a sequence, which are never returned again, even after a rollback."""

    def current_value(self, name: RelationName) -> int:
        """The value that the session has drawn last from the sequence."""

    def last_value(self) -> int:
        """The same from any."""

    def set_value(self, name: RelationName, value: int, called: bool) -> None:
        """Sets a sequence at once; a rollback does not undo it."""

    def sequence_state(self, sequence: SequenceObject) -> SequenceState: ...

    def defaults(self, column: Column, count: int) -> list[Any]:
        """Values of a default that is an expression, one for each of so many rows."""


class WritePort(Protocol):
    """Changes and locks of rows."""

    def derive(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows with the keys of indexes that are expressions in the places of their virtual columns, and followed,
        for each partial index in order, by whether the row meets its predicate."""

    def fill(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows with the values of columns that are generated from others."""

    def check(self, table: Table, rows: Sequence[Row]) -> None:
        """Raises on a row that breaks a CHECK constraint, whether it is to be written or not."""

    def lock_rows(
        self,
        table: Table,
        keys: Sequence[Row],
        strength: LockStrength,
        policy: LockPolicy,
        most: int | None = None,
    ) -> Sequence[bool]:
        """Locks rows read in this statement, by their primary keys, until the transaction ends; says which of them
        (with SKIP others' rows are left out, and at most `most` are locked). LockNotAvailable with NOWAIT."""

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """Adds rows; the hidden rowid is filled in where it is None. UniqueViolation, NotNullViolation."""

    def update(self, table: Table, old: Sequence[Row], new: Sequence[Row]) -> None:
        """Replaces rows read in this statement; the primary key may change."""

    def delete(self, table: Table, old: Sequence[Row]) -> None: ...

    def together(self) -> AbstractContextManager[None]:
        """What is written within is one statement: foreign keys act, and are checked, at its end."""

    def insert_arrow(self, table: Table, rows: pa.RecordBatchReader) -> int:
        """Adds many rows straight into sorted segments, in bounded memory. The reader's columns are
        `table.visible_columns`, in order, in their Arrow types. Returns the number of rows."""

    def changes_in_bulk(self, table: Table, assigned: Sequence[Column] | None) -> bool:
        """Whether `change_arrow` takes this change; `assigned` None is a DELETE."""

    def change_arrow(self, table: Table, rows: pa.RecordBatchReader, assigned: Sequence[Column] | None) -> int:
        """Changes many rows read in this statement, each once, by sorted segments. The reader's columns are all of
        `table.columns` with the rows' values, then the new values of the assigned ones. Returns the number of rows."""


class UndoPort(Protocol):
    """Points to go back to."""

    def mark(self) -> Any:
        """A point to go back to, and `reset` goes back: a statement that fails leaves none of its writes."""

    def reset(self, mark: Any) -> None: ...


class DefinitionPort(Protocol):
    """Changes of descriptors."""

    def publish(self, before: Descriptor | None, after: Descriptor | None) -> None:
        """Makes a descriptor change part of the transaction: creates (before None), replaces, drops (after None)."""

    def revive(self, dropped: Table, after: Table) -> None:
        """The same for one of the dropped tables, which comes back with its rows."""

    def rely_on(self, objects: Iterable[Descriptor]) -> None:
        """The commit is refused if one of them is gone by then."""

    def check_newest(self, ids: Collection[DescriptorId]) -> None:
        """Raises RowChanged if one of the descriptors has a newer version than that of the snapshot."""

    def is_empty(self, index_id: IndexId) -> bool: ...

    def rely_on_empty(self, index_id: IndexId) -> None:
        """The commit is refused if the index, which was found empty, has rows by then."""

    def fence(self, table_ids: Collection[TableId]) -> None:
        """After this commit, no transaction commits that planned with an older version of these tables."""

    def allocate_ids(self, count: int) -> range: ...

    @property
    def release(self) -> int:
        """Of the rules by which changes are planned."""

    def salt(self, count: int) -> bytes:
        """Random bytes."""

    def has_fixed_password(self, role: str) -> bool:
        """Whether the environment of the server sets the role's password."""


class OwnRowsPort(Protocol):
    """Backfills and validations of rows that only this transaction sees."""

    def is_own(self, table_id: TableId) -> bool:
        """Whether the transaction has created or emptied the table, or relies on having found it empty, so that all of
        its rows are the transaction's own."""

    def run_own(self, op: BackfillIndexes | Validate) -> None:
        """Builds indexes of such a table, or validates a constraint of it, over its rows."""


class BlockPort(Protocol):
    """Changes in several stages inside a transaction block."""

    def note(self, text: str, change: Change) -> None:
        """A change that the commit publishes as it is, with the text of its statement."""

    def may_be_filled(self, table_ids: Collection[TableId]) -> bool:
        """Whether other sessions can insert rows into one of these tables, which are empty, before the COMMIT, and the
        block does not keep the snapshot in which it found them empty."""

    def earlier(self, ids: Collection[DescriptorId]) -> Sequence[Change]:
        """What changes of this block do to these tables that no job has taken along."""

    def published(self, id_: DescriptorId) -> Descriptor | None:
        """The newest version that other sessions know."""

    def is_unseen(self, table_id: DescriptorId) -> bool:
        """Whether the block has created or emptied the table: other sessions know neither its rows nor its keys."""

    def can_rewrite(self, ids: Collection[DescriptorId]) -> bool:
        """Whether rows of these tables can be moved to another index while the block is open: it may not go back to
        where it knows of the one before."""

    def is_stored(self, table_id: TableId, column_id: ColumnId) -> bool:
        """Whether every row has a value of a hidden column that the block has added, where other sessions read it."""

    def run(
        self,
        text: str,
        plan: ChangePlan,
        first: Sequence[tuple[Descriptor | None, Descriptor]],
        outcome: Sequence[Sequence[Descriptor | None]],
    ) -> None:
        """Runs a change: its hidden states are published at once, `first` before all others. `outcome` are the
        versions of each descriptor through which the rows of the block go, from the one that it has now, None if it
        is new, to the one that its COMMIT publishes."""


class JobPort(Protocol):
    """Jobs: those of other statements, and that of this one."""

    @property
    def asks_for_job(self) -> bool:
        """Whether a change is to have a job even if nothing is left for it to do."""

    @property
    def queue_place(self) -> JobId | None:
        """The job whose statement this is, if it was queued."""

    def request_job(self, job_id: JobId, request: JobRequest) -> None:
        """Cancels, pauses or resumes a job at once; a rollback does not undo it."""

    def unfinished_jobs(self) -> tuple[JobRecord, ...]: ...

    def can_change(self, ids: Collection[DescriptorId]) -> bool:
        """Whether no job of another session changes these objects until the end of the transaction."""

    def launch(self, statement: str, plan: ChangePlan, progress: Progress, phase: Phase, passed: bool) -> JobId:
        """The rest of a plan becomes a job when the transaction commits; `passed`: it cannot be reverted then."""


class ViewPort(Protocol):
    """What the system shows of itself."""

    def system_rows(self, view: str) -> Sequence[Row]:
        """The rows of a system view, as of now."""

    def shown_locks(self) -> Sequence[ShownLock]:
        """The locks on tables of the session's database."""


class PartsPort(Protocol):
    """The parts that not every statement needs: each is made when a statement asks for it."""

    @property
    def locks(self) -> LockPort: ...

    @property
    def sequences(self) -> SequencePort: ...

    @property
    def definitions(self) -> DefinitionPort: ...

    @property
    def own_rows(self) -> OwnRowsPort: ...

    @property
    def blocks(self) -> BlockPort: ...

    @property
    def jobs(self) -> JobPort: ...

    @property
    def views(self) -> ViewPort: ...


@dataclass(slots=True)
class TransactionPort:
    """The transaction of a statement. To show it otherwise, a part of it is replaced."""

    statement: Final[StatementPort]
    names: Final[NamePort]
    schema: Final[SchemaPort]
    rights: Final[RightsPort]
    reads: Final[ReadPort]
    writes: Final[WritePort]
    undo: Final[UndoPort]
    parts: Final[PartsPort]

    @property
    def locks(self) -> LockPort:
        return self.parts.locks

    @property
    def sequences(self) -> SequencePort:
        return self.parts.sequences

    @property
    def definitions(self) -> DefinitionPort:
        return self.parts.definitions

    @property
    def own_rows(self) -> OwnRowsPort:
        return self.parts.own_rows

    @property
    def blocks(self) -> BlockPort:
        return self.parts.blocks

    @property
    def jobs(self) -> JobPort:
        return self.parts.jobs

    @property
    def views(self) -> ViewPort:
        return self.parts.views
