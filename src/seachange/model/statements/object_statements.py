"""DDL statements as values: whole tables, and the objects that are not tables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.values.types import SqlType


class SessionRole(StrEnum):
    """In place of the name of a role: one that the session has."""

    CURRENT_USER = "current_user"
    CURRENT_ROLE = "current_role"
    SESSION_USER = "session_user"


# Of every kind of object.


@dataclass(frozen=True, slots=True)
class DropObjects:
    """DROP of databases, schemas, sequences, types and views."""

    kind: ObjectKind
    names: tuple[RelationName, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class RenameObject:
    """ALTER ... RENAME TO of indexes, sequences, types, views, schemas and databases."""

    kind: ObjectKind
    name: RelationName
    new_name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class MoveObject:
    """ALTER ... SET SCHEMA of tables, sequences, types and views."""

    kind: ObjectKind
    name: RelationName
    schema: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeOwner:
    """ALTER ... OWNER TO."""

    kind: ObjectKind
    name: RelationName
    role: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CommentOn:
    """`part` is the column or constraint of table `name`; `text` None removes the comment."""

    kind: ObjectKind
    name: RelationName
    part: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class Grant:
    """GRANT, or with `revoke`, REVOKE. Privileges are upper case; ("ALL",) is all of them. With `all_in_schema` the
    names are schemas, and all objects of the kind in them are meant."""

    privileges: tuple[str, ...]
    kind: ObjectKind
    names: tuple[RelationName, ...]
    roles: tuple[str, ...]
    grant_option: bool = False
    revoke: bool = False
    cascade: bool = False
    all_in_schema: bool = False


# Databases and schemas.


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    name: str
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class CreateSchema:
    name: str
    if_not_exists: bool = False
    owner: str | None = None


# Whole tables.


@dataclass(frozen=True, slots=True)
class TruncateTables:
    tables: tuple[RelationName, ...]
    cascade: bool = False
    restart_identity: bool = False


@dataclass(frozen=True, slots=True)
class UndropTable:
    table: RelationName


# Sequences.


@dataclass(frozen=True, slots=True)
class SequenceOptions:
    """None: not given. `no_minimum` and `no_maximum` reset the limits to those of the type, and `restart_at_start` is
    RESTART without a number."""

    type: SqlType | None = None
    increment: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    start: int | None = None
    restart: int | None = None
    cache: int | None = None
    cycle: bool | None = None
    no_minimum: bool = False
    no_maximum: bool = False
    restart_at_start: bool = False


@dataclass(frozen=True, slots=True)
class OwnedBy:
    """OWNED BY a column; both None is NONE."""

    table: RelationName | None
    column: str | None


@dataclass(frozen=True, slots=True)
class CreateSequence:
    name: RelationName
    options: SequenceOptions = SequenceOptions()
    owner: OwnedBy | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSequence:
    name: RelationName
    options: SequenceOptions = SequenceOptions()
    owner: OwnedBy | None = None
    if_exists: bool = False


# Roles. The planner is not involved: a change is a new version of the role's descriptor, and nothing else.


@dataclass(frozen=True, slots=True)
class RoleOptions:
    """None: unchanged. `password` is plain text or a verifier; `no_password` removes it."""

    login: bool | None = None
    superuser: bool | None = None
    create_database: bool | None = None
    create_role: bool | None = None
    inherit: bool | None = None
    connection_limit: int | None = None
    # A point in time as text, in the time zone of the session.
    valid_until: str | None = None
    password: str | None = None
    no_password: bool = False
    # Roles that it becomes a member of, and roles that become its members.
    member_of: tuple[str, ...] = ()
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateRole:
    name: str
    options: RoleOptions


@dataclass(frozen=True, slots=True)
class AlterRole:
    name: str
    options: RoleOptions


@dataclass(frozen=True, slots=True)
class RenameRole:
    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class DropRoles:
    names: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class GrantRoles:
    """Membership: grants the `roles` to the `members`, or revokes them."""

    roles: tuple[str, ...]
    members: tuple[str, ...]
    admin: bool = False
    revoke: bool = False


@dataclass(frozen=True, slots=True)
class ChangeDefaultPrivileges:
    """ALTER DEFAULT PRIVILEGES; without `creators` those of the current role, without `schemas` in all schemas."""

    creators: tuple[str, ...]
    schemas: tuple[str, ...]
    privileges: tuple[str, ...]
    kind: ObjectKind
    roles: tuple[str, ...]
    revoke: bool = False


@dataclass(frozen=True, slots=True)
class ReassignOwned:
    owners: tuple[str, ...]
    new_owner: str


@dataclass(frozen=True, slots=True)
class DropOwned:
    owners: tuple[str, ...]
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class CommentOnRole:
    """`text` None removes the comment."""

    name: str
    text: str | None


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """ALTER ROLE and ALTER DATABASE ... SET or RESET: defaults for sessions of the role, in the database. `name` None
    means all settings; `value` None removes them, or with `current` sets the session's own value."""

    role: str | None
    database: str | None
    name: str | None
    value: str | None = None
    current: bool = False


RoleStatement = (
    CreateRole
    | AlterRole
    | RenameRole
    | DropRoles
    | GrantRoles
    | ChangeDefaultPrivileges
    | ReassignOwned
    | DropOwned
    | ChangeSettings
    | CommentOnRole
)


@dataclass(frozen=True, slots=True)
class CreateShape:
    """`as_of` None: the tables as they are."""

    name: str
    as_of: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropShape:
    name: str
    if_exists: bool = False


ShapeStatement = CreateShape | DropShape


# Enum types.


@dataclass(frozen=True, slots=True)
class CreateEnum:
    name: RelationName
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddEnumValue:
    """At the end, or `before` or `after` another value."""

    type: RelationName
    value: str
    before: str | None = None
    after: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameEnumValue:
    type: RelationName
    value: str
    new_value: str


@dataclass(frozen=True, slots=True)
class DropEnumValue:
    type: RelationName
    value: str


# Views.


@dataclass(frozen=True, slots=True)
class CreateView:
    """`query` is the text of the query; `relations` those that it reads, and `used` the columns that it names, as far
    as known without the catalog: (None, column) may belong to any of the relations, (relation, None) is a star.
    `sequences` are those whose functions it calls."""

    name: RelationName
    query: str
    relations: tuple[RelationName, ...]
    used: tuple[tuple[RelationName | None, str | None], ...] = ()
    columns: tuple[str, ...] = ()
    or_replace: bool = False
    sequences: tuple[RelationName, ...] = ()


@dataclass(frozen=True, slots=True)
class RefreshView:
    """REFRESH MATERIALIZED VIEW."""

    name: RelationName
    concurrently: bool = False
    with_data: bool = True


ObjectStatement = (
    DropObjects
    | RenameObject
    | MoveObject
    | ChangeOwner
    | CommentOn
    | Grant
    | CreateDatabase
    | CreateSchema
    | TruncateTables
    | UndropTable
    | CreateSequence
    | AlterSequence
    | CreateEnum
    | AddEnumValue
    | RenameEnumValue
    | DropEnumValue
    | CreateView
    | RefreshView
)
