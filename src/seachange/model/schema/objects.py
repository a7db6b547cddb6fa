"""Descriptors of the objects that are not tables: one version each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from seachange.model.ids import ColumnId, DescriptorId, Seq, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.access import Access
from seachange.model.schema.descriptor import Table
from seachange.values.types import SqlType

DEFAULT_DATABASE = "seachange"
DEFAULT_SCHEMA = "public"


@dataclass(frozen=True, slots=True)
class Database:
    """`settings` are what sessions of it begin with. They are no elements: the planner carries them along."""

    id: DescriptorId
    version: int
    name: str
    access: Access = Access()  # noqa: RUF009 - a value
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    id: DescriptorId
    version: int
    name: str
    database: str = DEFAULT_DATABASE
    access: Access = Access()  # noqa: RUF009 - a value


@dataclass(frozen=True, slots=True)
class Sequence:
    """`owner` is the column with which it is dropped. `run` is raised when it starts over, at `restart`."""

    id: DescriptorId
    version: int
    schema: str
    name: str
    type: SqlType
    increment: int
    minimum: int
    maximum: int
    start: int
    cache: int = 1
    cycle: bool = False
    owner: tuple[TableId, ColumnId] | None = None
    restart: int | None = None
    run: int = 0
    database: str = DEFAULT_DATABASE
    access: Access = Access()  # noqa: RUF009 - a value


@dataclass(frozen=True, slots=True)
class Value:
    """A value of an enum; `rank` orders them. Rows hold it as `stored` (empty: as its label), whatever it is called."""

    id: int
    rank: float
    label: str
    stored: str = ""

    @property
    def held(self) -> str:
        return self.stored or self.label


@dataclass(frozen=True, slots=True)
class EnumType:
    id: DescriptorId
    version: int
    schema: str
    name: str
    values: tuple[Value, ...]
    next_value_id: int  # ids are never reused
    database: str = DEFAULT_DATABASE
    access: Access = Access()  # noqa: RUF009 - a value


@dataclass(frozen=True, slots=True)
class View:
    """`types` are those of its columns, in which nothing that it reads can change; of views of old, nobody knows."""

    id: DescriptorId
    version: int
    schema: str
    name: str
    query: str
    columns: tuple[str, ...]
    relation_ids: tuple[DescriptorId, ...]
    column_uses: tuple[tuple[TableId, ColumnId], ...]
    names: tuple[tuple[str, str, DescriptorId], ...] = ()
    column_names: tuple[str, ...] = ()
    database: str = DEFAULT_DATABASE
    access: Access = Access()  # noqa: RUF009 - a value
    types: tuple[SqlType, ...] = ()


@dataclass(frozen=True, slots=True)
class DefaultPrivileges:
    """What other roles may do with objects of a kind that the role will create, in one schema or in all (empty)."""

    kind: ObjectKind
    schema: str
    role: str
    privileges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoleSetting:
    """What sessions of a role begin with, in one database or in all (0)."""

    database: int
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Role:
    """`password` is a SCRAM-SHA-256 verifier as PostgreSQL keeps it; `member_of` are the roles whose privileges it
    has, `admin_of` those of them that it may give to others."""

    id: DescriptorId
    version: int
    name: str
    login: bool = False
    superuser: bool = False
    create_database: bool = False
    create_role: bool = False
    inherit: bool = True
    password: str | None = None
    member_of: tuple[str, ...] = ()
    admin_of: tuple[str, ...] = ()
    defaults: tuple[DefaultPrivileges, ...] = ()
    settings: tuple[RoleSetting, ...] = ()
    # How many sessions it may have, -1 for any; until when its password is good, None for ever.
    connection_limit: int = -1
    valid_until_us: int | None = None
    access: Access = Access()  # noqa: RUF009 - a value


Descriptor = Table | Database | Schema | Sequence | EnumType | View | Role


def is_within(descriptor: Descriptor, database: str) -> bool:
    """Whether sessions of that database see it. Databases and roles are everybody's."""
    return isinstance(descriptor, Database | Role) or descriptor.database == database


@dataclass(frozen=True, slots=True)
class PublishedDescriptor:
    """A descriptor as an entry of the commit log: `body` is None when it was dropped."""

    id: DescriptorId
    version: int
    body: Descriptor | None


@dataclass(frozen=True, slots=True)
class DroppedDescriptor:
    """What was dropped and is still kept: its last body, the version that the drop was published as, and the commit."""

    id: DescriptorId
    version: int
    body: Descriptor
    dropped_at: Seq


def is_relabelled(before: Descriptor, after: Descriptor) -> bool:
    """Whether the next version differs by owner, privileges and comments alone, from which nothing is planned. One that
    differs in nothing says that something refers to the object now, and so may one of several."""
    if after.version != before.version + 1 or after.access == before.access:
        return False
    return replace(after, version=before.version, access=before.access) == before


def qualified_name(descriptor: Descriptor) -> str:
    """What the log tells apart: no two live descriptors have the same. Types, schemas and databases have names of
    their own."""
    match descriptor:
        case Database():
            return f"database:{descriptor.name}"
        case Role():
            return f"role:{descriptor.name}"
        case Schema():
            return f"schema:{descriptor.database}.{descriptor.name}"
        case EnumType():
            return f"type:{descriptor.database}.{descriptor.schema}.{descriptor.name}"
        case Table() | Sequence() | View():
            return f"{descriptor.database}.{descriptor.schema}.{descriptor.name}"
