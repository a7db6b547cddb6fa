"""DDL statements as values: what the user wrote, not yet applied to any table.

Names are already folded (lower case unless quoted). A constant is its text in the statement; it becomes a value of a
column's type only when the column is known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from seachange.model.relation import RelationName
from seachange.model.schema.constraint import Action
from seachange.model.statements.object_statements import (
    CreateView,
    ObjectStatement,
    RoleStatement,
    SequenceOptions,
    ShapeStatement,
)
from seachange.model.statements.session_statements import Explain, SessionStatement
from seachange.values.types import SqlType

SettingValue = str | int
_TYPED_LABEL = re.compile("\x01[^\x01\x02]*\x02[^\x01\x02]*\x02([^\x01]*)\x01")


@dataclass(frozen=True, slots=True)
class ConstantDefault:
    """A literal; `text` None is NULL. `quoted` distinguishes '1' from 1. `casts` are those to user-defined types;
    `read_as` is the time type that the text is cast to: the conversion to the column's type may involve a time zone."""

    text: str | None
    quoted: bool = False
    casts: tuple[UserType, ...] = ()
    read_as: SqlType | None = None


class Volatility(StrEnum):
    """Whether an expression over the same row has the same value always, within one statement, or not even there."""

    IMMUTABLE = "immutable"
    STABLE = "stable"
    VOLATILE = "volatile"


@dataclass(frozen=True, slots=True)
class WrittenExpression:
    """An expression as it was written, the name of its use, and the type of the column that gets its value."""

    text: str
    use: str
    target: SqlType | UserType | None = None


@dataclass(frozen=True, slots=True)
class ExpressionDefinition:
    """DuckDB text in parentheses with a gap for each use of a column, `pieces[0] columns[0] pieces[1] ...`; `sequences`
    are those that it draws from, each by its `sequence_call`. `written` is there while the types of columns are not
    known."""

    pieces: tuple[str, ...]
    columns: tuple[str, ...] = ()
    volatility: Volatility = Volatility.IMMUTABLE
    sequences: tuple[RelationName, ...] = ()
    written: WrittenExpression | None = field(default=None, compare=False, repr=False)


def sequence_call(name: RelationName) -> str:
    """How the text of an expression refers to a sequence before it is bound. In a literal the quotes would be doubled,
    so it is found only where it is meant.

    >>> print(sequence_call(RelationName("s", "it's")))
    nextval('"s"."it''s"')
    """
    parts = [part for part in (name.schema, name.name) if part is not None]
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    return "nextval('" + quoted.replace("'", "''") + "')"


@dataclass(frozen=True, slots=True)
class UserType:
    """The name of a user-defined type, or of its arrays."""

    name: RelationName
    is_array: bool = False


ColumnType = SqlType | UserType
Default = ConstantDefault | ExpressionDefinition


def typed_label(type_: RelationName, label: str) -> str:
    """How the text of an expression casts a label to an enum type before it is bound; no expression may contain the
    characters around it."""
    return f"\x01{type_.schema or ''}\x02{type_.name}\x02{label}\x01"


def without_types(text: str) -> str:
    """The text with labels as plain constants, to be evaluated where enum types are texts.

    >>> without_types(typed_label(RelationName(None, "mood"), "it's") + " = 'sad'")
    "'it''s' = 'sad'"
    """
    return _TYPED_LABEL.sub(lambda found: "'" + found[1].replace("'", "''") + "'", text)


@dataclass(frozen=True, slots=True)
class IdentityDefinition:
    """GENERATED ALWAYS, or BY DEFAULT, AS IDENTITY. `sequence` is the name of its sequence; None: made of the names
    of table and column."""

    always: bool
    options: SequenceOptions = SequenceOptions()  # noqa: RUF009 - a value
    sequence: RelationName | None = None


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """`generated` is the expression of GENERATED ALWAYS AS (...) STORED; `serial` a default from a sequence of its own;
    `settings` are those that are not the default. `up` computes the value of a row that a program with an earlier
    shape of the table has written, and of rows that were there before the column."""

    name: str
    type: ColumnType
    nullable: bool = True
    default: Default | None = None
    generated: ExpressionDefinition | None = None
    identity: IdentityDefinition | None = None
    serial: bool = False
    settings: tuple[tuple[str, SettingValue], ...] = ()
    up: ExpressionDefinition | None = None


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    """A PRIMARY KEY or UNIQUE constraint; `name` None: it is named after its columns. With `using_index` it uses that
    index and its columns. `primary` distinguishes the two in ALTER TABLE."""

    columns: tuple[str, ...]
    name: str | None = None
    nulls_distinct: bool = True
    primary: bool = False
    using_index: str | None = None


@dataclass(frozen=True, slots=True)
class CheckDefinition:
    """A CHECK constraint: DuckDB text with a gap for each use of a column, `pieces[0] columns[0] pieces[1] ...`."""

    pieces: tuple[str, ...]
    columns: tuple[str, ...]
    name: str | None = None
    not_valid: bool = False
    written: WrittenExpression | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ForeignKeyDefinition:
    """A FOREIGN KEY constraint; without `parent_columns` it references the parent's primary key."""

    columns: tuple[str, ...]
    parent: RelationName
    parent_columns: tuple[str, ...] = ()
    name: str | None = None
    on_delete: Action = Action.NO_ACTION
    on_update: Action = Action.NO_ACTION
    deferrable: bool = False
    initially_deferred: bool = False
    not_valid: bool = False
    match_full: bool = False


# Constraints other than keys, which are indexes.
RuleDefinition = CheckDefinition | ForeignKeyDefinition


@dataclass(frozen=True, slots=True)
class LikeClause:
    """LIKE another table: its columns come before the one at `position`, with the `including` options."""

    position: int
    source: RelationName
    including: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CreateTable:
    table: RelationName
    columns: tuple[ColumnDefinition, ...]
    primary_key: KeyDefinition | None = None
    unique: tuple[KeyDefinition, ...] = ()
    if_not_exists: bool = False
    rules: tuple[RuleDefinition, ...] = ()
    likes: tuple[LikeClause, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """`query` is the text of the query; `columns` names for the first columns of its result."""

    table: RelationName
    query: str
    columns: tuple[str, ...] = ()
    if_not_exists: bool = False
    with_data: bool = True


@dataclass(frozen=True, slots=True)
class CreateMaterializedView:
    """`columns` are those of the result, once they are known; names for them are in `view`."""

    view: CreateView
    if_not_exists: bool = False
    with_data: bool = True
    columns: tuple[ColumnDefinition, ...] = ()


class OnCommit(StrEnum):
    """ON COMMIT of a temporary table: what happens to it, or to its rows."""

    PRESERVE = "preserve"
    DELETE = "delete"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class CreateTemporary:
    create: CreateTable | CreateTableAs | CreateView
    on_commit: OnCommit = OnCommit.PRESERVE


@dataclass(frozen=True, slots=True)
class DropTable:
    tables: tuple[RelationName, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class SinceValue:
    """What rows have in a column that comes back, if they were not there when it went."""

    table: RelationName
    column: str
    value: ExpressionDefinition


@dataclass(frozen=True, slots=True)
class RevertChange:
    """`change_id` is that of the history of changes. `tables_only`: dropped tables come back, before anything else."""

    change_id: int
    cascade: bool = False
    values: tuple[SinceValue, ...] = ()
    tables_only: bool = False


BTREE = "btree"


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """`columns` are columns by name or expressions; `descending` are the positions of those in descending order,
    `nulls_swapped` of those whose NULLs sort at the other end than by default. `where`: the predicate of a partial
    index. `method` is that of USING."""

    table: RelationName
    columns: tuple[str | ExpressionDefinition, ...]
    name: str | None = None
    unique: bool = False
    include: tuple[str, ...] = ()
    if_not_exists: bool = False
    nulls_distinct: bool = True
    concurrently: bool = False
    descending: tuple[int, ...] = ()
    where: ExpressionDefinition | None = None
    nulls_swapped: tuple[int, ...] = ()
    method: str = BTREE


@dataclass(frozen=True, slots=True)
class DropIndex:
    indexes: tuple[RelationName, ...]
    if_exists: bool = False
    cascade: bool = False
    concurrently: bool = False


@dataclass(frozen=True, slots=True)
class AddColumn:
    column: ColumnDefinition
    if_not_exists: bool = False
    rules: tuple[RuleDefinition, ...] = ()
    keys: tuple[KeyDefinition, ...] = ()


@dataclass(frozen=True, slots=True)
class DropColumn:
    """`down` computes what programs with an earlier shape of the table read."""

    name: str
    if_exists: bool = False
    cascade: bool = False
    down: ExpressionDefinition | None = None


@dataclass(frozen=True, slots=True)
class RenameColumn:
    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class RenameTable:
    new_name: str


@dataclass(frozen=True, slots=True)
class AlterColumnType:
    """`using` None is an assignment cast. `down` computes what programs with an earlier shape of the table read."""

    name: str
    type: ColumnType
    using: ExpressionDefinition | None = None
    down: ExpressionDefinition | None = None


@dataclass(frozen=True, slots=True)
class SetDefault:
    """`default` None is DROP DEFAULT."""

    name: str
    default: Default | None


@dataclass(frozen=True, slots=True)
class SetExpression:
    """Another expression for a generated column."""

    name: str
    expression: ExpressionDefinition


@dataclass(frozen=True, slots=True)
class DropExpression:
    """A generated column becomes a plain one."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddIdentity:
    name: str
    identity: IdentityDefinition


@dataclass(frozen=True, slots=True)
class SetIdentity:
    """`always` None leaves it as it is."""

    name: str
    always: bool | None
    options: SequenceOptions = SequenceOptions()  # noqa: RUF009 - a value


@dataclass(frozen=True, slots=True)
class DropIdentity:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddConstraint:
    constraint: RuleDefinition | KeyDefinition


@dataclass(frozen=True, slots=True)
class DropConstraint:
    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class SetColumnSetting:
    """Such as SET COMPRESSION; `value` None: the default."""

    name: str
    setting: str
    value: SettingValue | None


@dataclass(frozen=True, slots=True)
class SetNotNull:
    name: str


@dataclass(frozen=True, slots=True)
class DropNotNull:
    name: str


@dataclass(frozen=True, slots=True)
class RenameConstraint:
    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class ValidateConstraint:
    name: str


@dataclass(frozen=True, slots=True)
class AlterPrimaryKey:
    """ALTER PRIMARY KEY USING COLUMNS (...): the old key becomes a unique index."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeepAsItIs:
    """Storage options of a table or column, which have no effect."""

    column: str | None = None


@dataclass(frozen=True, slots=True)
class SetParameters:
    """SET and RESET of storage parameters that have an effect; None: the default."""

    parameters: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class AddRowId:
    """Not a statement of its own: the planner numbers the rows before their table loses its primary key."""


@dataclass(frozen=True, slots=True)
class DropRowId:
    """The reverse of AddRowId."""


AlterAction = (
    AddColumn
    | DropColumn
    | RenameColumn
    | RenameTable
    | AlterColumnType
    | SetDefault
    | SetColumnSetting
    | SetNotNull
    | DropNotNull
    | SetExpression
    | DropExpression
    | AddIdentity
    | SetIdentity
    | DropIdentity
    | AddConstraint
    | DropConstraint
    | RenameConstraint
    | ValidateConstraint
    | AlterPrimaryKey
    | KeepAsItIs
    | SetParameters
    | AddRowId
    | DropRowId
)


@dataclass(frozen=True, slots=True)
class AlterTable:
    table: RelationName
    actions: tuple[AlterAction, ...]
    if_exists: bool = False
    concurrently: bool = False


TableStatement = CreateTable | DropTable | CreateIndex | DropIndex | AlterTable
DdlStatement = TableStatement | CreateMaterializedView | RevertChange | ObjectStatement
Statement = SessionStatement | DdlStatement | CreateTableAs | CreateTemporary | RoleStatement | ShapeStatement | Explain
