"""Session and DDL statements as values: what the user asked for, not yet what it means for any table.

Names are already folded (lower case unless quoted). A constant is the text that stood in the statement; it becomes a
value of a column's type only where the column is known.
"""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.constraint import Action
from seachange.model.isolation import Isolation
from seachange.model.types import SqlType

# Transactions.


@dataclass(frozen=True, slots=True)
class Begin:
    """None: what the session's settings say."""

    isolation: Isolation | None = None
    read_only: bool | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    pass


@dataclass(frozen=True, slots=True)
class Rollback:
    pass


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
    """Modes of the transaction that has just begun, or with `session`, the defaults of later ones."""

    isolation: Isolation | None = None
    read_only: bool | None = None
    session: bool = False


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
    name: str
    query: str


@dataclass(frozen=True, slots=True)
class FetchCursor:
    """`count` None is ALL; `move` shows no rows."""

    name: str
    count: int | None
    move: bool = False


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """`name` None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Explain:
    """`analyze` runs the query."""

    query: str
    analyze: bool = False


# Schema.


@dataclass(frozen=True, slots=True)
class RelationName:
    schema: str | None
    name: str

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal; `text` None is NULL. `quoted` tells '1' from 1."""

    text: str | None
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    name: str
    type: SqlType
    nullable: bool = True
    default: Constant | None = None


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    """A PRIMARY KEY or UNIQUE constraint; `name` None: it is named after its columns."""

    columns: tuple[str, ...]
    name: str | None = None
    nulls_distinct: bool = True


@dataclass(frozen=True, slots=True)
class CheckDefinition:
    """A CHECK constraint: DuckDB text with a gap for each use of a column, `pieces[0] columns[0] pieces[1] ...`."""

    pieces: tuple[str, ...]
    columns: tuple[str, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ForeignKeyDefinition:
    """A FOREIGN KEY constraint; without `parent_columns` it refers to the parent's primary key."""

    columns: tuple[str, ...]
    parent: RelationName
    parent_columns: tuple[str, ...] = ()
    name: str | None = None
    on_delete: Action = Action.NO_ACTION
    on_update: Action = Action.NO_ACTION
    deferrable: bool = False
    initially_deferred: bool = False


# What can be declared besides keys, of which an index is made.
RuleDefinition = CheckDefinition | ForeignKeyDefinition


@dataclass(frozen=True, slots=True)
class CreateTable:
    table: RelationName
    columns: tuple[ColumnDefinition, ...]
    primary_key: KeyDefinition | None = None
    unique: tuple[KeyDefinition, ...] = ()
    if_not_exists: bool = False
    rules: tuple[RuleDefinition, ...] = ()


@dataclass(frozen=True, slots=True)
class DropTable:
    tables: tuple[RelationName, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class CreateIndex:
    table: RelationName
    columns: tuple[str, ...]
    name: str | None = None
    unique: bool = False
    include: tuple[str, ...] = ()
    if_not_exists: bool = False
    nulls_distinct: bool = True


@dataclass(frozen=True, slots=True)
class DropIndex:
    indexes: tuple[RelationName, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddColumn:
    column: ColumnDefinition
    if_not_exists: bool = False
    rules: tuple[RuleDefinition, ...] = ()


@dataclass(frozen=True, slots=True)
class DropColumn:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class RenameTable:
    new_name: str


@dataclass(frozen=True, slots=True)
class AlterColumnType:
    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class SetDefault:
    """`default` None is DROP DEFAULT."""

    name: str
    default: Constant | None


@dataclass(frozen=True, slots=True)
class AddConstraint:
    constraint: RuleDefinition | KeyDefinition


@dataclass(frozen=True, slots=True)
class DropConstraint:
    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class SetNotNull:
    name: str


@dataclass(frozen=True, slots=True)
class DropNotNull:
    name: str


AlterAction = (
    AddColumn
    | DropColumn
    | RenameColumn
    | RenameTable
    | AlterColumnType
    | SetDefault
    | SetNotNull
    | DropNotNull
    | AddConstraint
    | DropConstraint
)


@dataclass(frozen=True, slots=True)
class AlterTable:
    table: RelationName
    actions: tuple[AlterAction, ...]
    if_exists: bool = False


SavepointStatement = Savepoint | ReleaseSavepoint | RollbackToSavepoint
TransactionStatement = Begin | Commit | Rollback | SavepointStatement | SetTransaction
SettingStatement = SetSetting | ShowSetting | ResetSetting | Discard
PreparedStatement = PrepareStatement | ExecutePrepared | Deallocate
CursorStatement = DeclareCursor | FetchCursor | CloseCursor
DdlStatement = CreateTable | DropTable | CreateIndex | DropIndex | AlterTable
SessionStatement = TransactionStatement | SettingStatement | PreparedStatement | CursorStatement
Statement = SessionStatement | DdlStatement | Explain
