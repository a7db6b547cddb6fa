"""The ports of a statement to its transaction, which the engine implements.

Rows are tuples of Python values in the order of `table.columns` (every column that is not ABSENT, the hidden ones
included), already converted to the columns' types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa

from seachange.model.change.ops import BackfillIndexes
from seachange.model.condition import Condition
from seachange.model.ids import DescriptorId, IndexId, KeyHash, Seq, TableId
from seachange.model.jobs import ShownBuild
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
from seachange.model.sessions import SessionRequest, ShownSession
from seachange.model.statements import OnCommit
from seachange.planner.known_schema import PastChange, TableSize
from seachange.planner.object_names import ObjectNames
from seachange.planner.object_users import ObjectUsers
from seachange.sql.port.change_ports import BlockPort, DefinitionPort, JobPort, OwnRowsPort
from seachange.sql.port.feed_port import FeedPort

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

    def deadline(self, seconds: float) -> Callable[[], bool]:
        """Says whether so much time has passed; raises if the statement is cancelled meanwhile."""

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

    @property
    def planned(self) -> tuple[Mapping[DescriptorId, Descriptor], ObjectNames, ObjectUsers]:
        """What the planner works on: the descriptors of the database, their names, and who refers to them."""

    def dropped_objects(self) -> tuple[Descriptor, ...]:
        """Those that are still kept, in the order in which they were dropped, as of the version that followed."""

    def past_changes(self, first: int) -> tuple[PastChange, ...]:
        """The changes of the database from this one on, oldest first; none if there is no such change. Raises
        SnapshotTooOld if its definitions are no longer kept."""

    def schema_as_of(self, moment: str | None) -> tuple[Seq, tuple[Table, ...]]:
        """The tables of the database at a moment, a sequence number or a time, and its sequence; None is now, as the
        transaction has made them. Raises LayoutTooOld if their definitions are no longer kept."""

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

    def describing(self) -> AbstractContextManager[None]:
        """What is bound within is not run: a materialized view need not have been filled."""

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


class ViewPort(Protocol):
    """What the system shows of itself."""

    def system_rows(self, view: str) -> Sequence[Row]:
        """The rows of a system view, as of now."""

    def shown_locks(self) -> Sequence[ShownLock]:
        """The locks on tables of the session's database."""

    def shown_sessions(self) -> Sequence[ShownSession]:
        """The sessions of all nodes."""

    def shown_builds(self) -> Sequence[ShownBuild]:
        """The indexes that jobs build."""

    def blockers(self, session: int) -> Sequence[int]:
        """The sessions that one waits for."""

    def ask_session(self, session: int, request: SessionRequest) -> bool:
        """Asks something of another session; whether there is such a session."""


class LostRowsPort(Protocol):
    """Rows of the history."""

    def write_again(self, table: Table, as_of: Seq) -> int:
        """Inserts the rows that the table had, but for those whose keys have others by now; gives their number."""


class EstimatePort(Protocol):
    """What work will take."""

    def entry_bytes(self, table: Table, op: BackfillIndexes) -> Mapping[IndexId, int]:
        """How much the indexes that a backfill is to build will take, by a sample of the rows; `table` knows them
        already. Without those of which nothing is known."""


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
    def lost_rows(self) -> LostRowsPort: ...

    @property
    def estimates(self) -> EstimatePort: ...

    @property
    def views(self) -> ViewPort: ...

    @property
    def feeds(self) -> FeedPort: ...


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
    def lost_rows(self) -> LostRowsPort:
        return self.parts.lost_rows

    @property
    def estimates(self) -> EstimatePort:
        return self.parts.estimates

    @property
    def views(self) -> ViewPort:
        return self.parts.views

    @property
    def feeds(self) -> FeedPort:
        return self.parts.feeds
