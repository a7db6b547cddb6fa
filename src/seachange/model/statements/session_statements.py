"""Session statements: about transactions, settings, cursors and other statements, which are kept as text.

Names are already folded (lower case unless quoted).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from seachange.model.isolation import Isolation
from seachange.model.locking import TableLock
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.values.types import SqlType

# Transactions.


@dataclass(frozen=True, slots=True)
class Begin:
    """None: by the session's settings."""

    isolation: Isolation | None = None
    read_only: bool | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """`chain`: another block with the same modes begins at once."""

    chain: bool = False


@dataclass(frozen=True, slots=True)
class Rollback:
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Savepoint:
    name: str


@dataclass(frozen=True, slots=True)
class ReleaseSavepoint:
    name: str


@dataclass(frozen=True, slots=True)
class RollbackToSavepoint:
    name: str


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """Modes of the current transaction, or with `session`, the defaults of later ones."""

    isolation: Isolation | None = None
    read_only: bool | None = None
    session: bool = False


@dataclass(frozen=True, slots=True)
class SetConstraints:
    """When deferrable constraints of the transaction are checked; `names` None are ALL."""

    names: tuple[RelationName, ...] | None
    deferred: bool


@dataclass(frozen=True, slots=True)
class LockTables:
    """`nowait`: an error instead of a wait."""

    relations: tuple[RelationName, ...]
    mode: TableLock = TableLock.ACCESS_EXCLUSIVE
    nowait: bool = False


# Settings.


@dataclass(frozen=True, slots=True)
class SetSetting:
    """`value` None stands for DEFAULT; `local` ends with the transaction."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class ShowSetting:
    """`name` None shows all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class ResetSetting:
    """`name` None resets all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    """`what`: all, plans, sequences or temp."""

    what: str


# Statements about statements, which are kept as text.


@dataclass(frozen=True, slots=True)
class PrepareStatement:
    """`types` are those of the first parameters."""

    name: str
    types: tuple[SqlType, ...]
    text: str


@dataclass(frozen=True, slots=True)
class ExecutePrepared:
    """`arguments` is a list of expressions, empty for none."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Deallocate:
    """`name` None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class DeclareCursor:
    """`hold`: it outlives its transaction."""

    name: str
    query: str
    scroll: bool = True
    hold: bool = False


class CursorWay(StrEnum):
    FORWARD = "forward"
    BACKWARD = "backward"
    ABSOLUTE = "absolute"
    RELATIVE = "relative"


@dataclass(frozen=True, slots=True)
class FetchCursor:
    """`count` None is ALL; `move` returns no rows."""

    name: str
    count: int | None
    move: bool = False
    way: CursorWay = CursorWay.FORWARD


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """`name` None is ALL."""

    name: str | None


class DdlExplanation(StrEnum):
    """What EXPLAIN (DDL, ...) shows of a plan."""

    STAGES = "stages"
    VERBOSE = "verbose"
    DEPENDENCIES = "deps"
    PICTURE = "viz"
    COST = "cost"


@dataclass(frozen=True, slots=True)
class Explain:
    """`analyze` runs the query; `ddl` plans a schema change, and `query` is its text. `more` are further forms of its
    explanation. `verify_s` is how long the model checker may look at the plan, None if it does not. `is_each`: several
    statements are planned one after the other."""

    query: str
    analyze: bool = False
    ddl: DdlExplanation | None = None
    more: tuple[DdlExplanation, ...] = ()
    verify_s: int | None = None
    as_json: bool = False
    is_each: bool = False


# COPY, maintenance, and statements without effect.


@dataclass(frozen=True, slots=True)
class CopyStream:
    """COPY between a client and a relation, or from a query (`relation` None). `columns` None: all of them."""

    inward: bool
    relation: RelationName | None
    columns: tuple[str, ...] | None
    query: str = ""
    csv: bool = False
    header: bool = False
    delimiter: str | None = None
    null: str | None = None
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Vacuum:
    """Maintenance of tables; without a list, of all that the role owns."""

    tables: tuple[RelationName, ...] = ()
    full: bool = False


@dataclass(frozen=True, slots=True)
class ImportTable:
    """CALL seachange.import_table: `format` and `source` are as given; `key` is the primary key of a new table, None
    that of the source."""

    table: RelationName
    format: str
    source: str
    key: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ExportTable:
    """CALL seachange.export_iceberg: the table as of now, as an Iceberg table."""

    table: RelationName


@dataclass(frozen=True, slots=True)
class CreateFeed:
    """`position` is a sequence number or a moment, empty for the newest commit."""

    name: str
    tables: tuple[RelationName, ...]
    position: str = ""


@dataclass(frozen=True, slots=True)
class DropFeed:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AdvanceFeed:
    """CALL seachange.advance_feed: its consumer needs nothing up to the position any more."""

    name: str
    position: str


@dataclass(frozen=True, slots=True)
class AcceptExtension:
    """CREATE, DROP or COMMENT ON EXTENSION for built-in extensions: no effect."""

    tag: str
    name: str


@dataclass(frozen=True, slots=True)
class NeedlessStatement:
    """A maintenance statement of PostgreSQL that needs no work here: it only checks the privileges on its object, and
    on the schemas of `read`."""

    tag: str
    kind: ObjectKind | None = None
    name: RelationName | None = None
    read: tuple[RelationName, ...] = ()
    for_superusers: bool = False
    # Its name if PostgreSQL runs it in autocommit only.
    outside_blocks: str | None = None


SavepointStatement = Savepoint | ReleaseSavepoint | RollbackToSavepoint
TransactionStatement = Begin | Commit | Rollback | SavepointStatement | SetTransaction | SetConstraints
SettingStatement = SetSetting | ShowSetting | ResetSetting | Discard
PreparedStatement = PrepareStatement | ExecutePrepared | Deallocate
CursorStatement = DeclareCursor | FetchCursor | CloseCursor
FeedStatement = CreateFeed | DropFeed | AdvanceFeed
SessionStatement = (
    CopyStream
    | LockTables
    | Vacuum
    | TransactionStatement
    | SettingStatement
    | PreparedStatement
    | CursorStatement
    | AcceptExtension
    | NeedlessStatement
    | ImportTable
    | ExportTable
    | FeedStatement
)
