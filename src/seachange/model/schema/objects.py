"""Descriptors of objects other than tables, one version each."""

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
    """`settings` are the defaults of its sessions. They are not elements: the planner passes them along."""

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
    """`owner` is the column with which it is dropped. `run` is raised when it restarts, at `restart`."""

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
    """A value of an enum; `rank` orders them. Rows store it as `stored` (empty: as its label), whatever its label is
    now."""

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
    """`types` are those of its columns, which cannot change; unknown for views of old releases."""

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


def view_of(table: Table) -> View | None:
    """A materialized view as the view that its query would make."""
    if table.materialized is None:
        return None
    found = {name: getattr(table.materialized, name) for name in MATERIALIZED_FIELDS}
    place = (table.id, table.version, table.schema, table.name)
    return View(*place, database=table.database, access=table.access, **found)


# What a materialized view has in common with a view.
MATERIALIZED_FIELDS = ("query", "columns", "relation_ids", "column_uses", "names", "column_names", "types")


# The default database, which has an id only once an attribute of it is set; it is never renamed.
DEFAULT_PLACE = -1


@dataclass(frozen=True, slots=True)
class DefaultPrivileges:
    """The default privileges of other roles on future objects of the role, in one schema or in all (empty).
    `database` is the id of the one that they are for, DEFAULT_PLACE for the default one; 0 was written by old releases
    and is for all."""

    kind: ObjectKind
    schema: str
    role: str
    privileges: tuple[str, ...]
    database: int = 0


@dataclass(frozen=True, slots=True)
class RoleSetting:
    """The default of a setting for sessions of a role, in one database or in all (0)."""

    database: int
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Role:
    """`password` is a SCRAM-SHA-256 verifier as PostgreSQL stores it; `member_of` are the roles whose privileges it
    has, `admin_of` those of them that it may grant to others."""

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
    # The maximum number of sessions, -1 for any; the expiry of its password, None for never.
    connection_limit: int = -1
    valid_until_us: int | None = None
    access: Access = Access()  # noqa: RUF009 - a value


@dataclass(frozen=True, slots=True)
class Shape:
    """The tables of a database as they were at a moment, under a name: `tables` are their definitions as JSON text, as
    far as a program sees of them, so that they last as long as the shape does."""

    id: DescriptorId
    version: int
    name: str
    database: str
    seq: Seq
    tables: tuple[str, ...]
    access: Access = Access()  # noqa: RUF009 - a value


Descriptor = Table | Database | Schema | Sequence | EnumType | View | Role | Shape
# What is published as it is: no change of it is planned.
UNPLANNED = (Role, Shape)


def is_within(descriptor: Descriptor, database: str) -> bool:
    """Whether sessions of that database see it. Databases and roles are shared."""
    return isinstance(descriptor, Database | Role) or descriptor.database == database


# The database of what no session sees.
_NO_DATABASE = ""


def hide_sequence(sequence: Sequence) -> Sequence:
    """A sequence that sessions draw from by its id, without a name by which they could find it."""
    return replace(sequence, database=_NO_DATABASE, name=str(sequence.id))


@dataclass(frozen=True, slots=True)
class PublishedDescriptor:
    """A descriptor as an entry of the commit log: `body` is None when it was dropped."""

    id: DescriptorId
    version: int
    body: Descriptor | None


@dataclass(frozen=True, slots=True)
class DroppedDescriptor:
    """A dropped object that is still kept: its last body, the version that the drop was published as, and the
    commit."""

    id: DescriptorId
    version: int
    body: Descriptor
    dropped_at: Seq


def is_relabelled(before: Descriptor, after: Descriptor) -> bool:
    """Whether the next version differs only in owner, privileges and comments, on which no plan depends. An equal
    version means that something references the object now, and so may one of several."""
    if after.version != before.version + 1 or after.access == before.access:
        return False
    return replace(after, version=before.version, access=before.access) == before


def qualified_name(descriptor: Descriptor) -> str:
    """The key of the log: no two live descriptors have the same. Types, schemas and databases have separate
    namespaces."""
    match descriptor:
        case Database():
            return f"database:{descriptor.name}"
        case Role():
            return f"role:{descriptor.name}"
        case Shape():
            return f"shape:{descriptor.database}.{descriptor.name}"
        case Schema():
            return f"schema:{descriptor.database}.{descriptor.name}"
        case EnumType():
            return f"type:{descriptor.database}.{descriptor.schema}.{descriptor.name}"
        case Table() | Sequence() | View():
            return f"{descriptor.database}.{descriptor.schema}.{descriptor.name}"
