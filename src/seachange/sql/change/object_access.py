"""Privilege and ownership checks of a planned schema change.

What a statement names is checked before it is planned (`sql/change/privilege_checks.py`), what it reads and writes when
it does so (`TransactionPort.check_access`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from seachange import errors
from seachange.model import statements
from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.ids import DescriptorId
from seachange.model.object_kind import VIEWS, ObjectKind
from seachange.model.schema.access import DEFAULT_ROLE, PRIVILEGES, PUBLIC_ROLE, Access, RolePrivileges
from seachange.model.schema.actor import find_roles, role_exists
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import (
    UNPLANNED,
    Database,
    Descriptor,
    EnumType,
    Role,
    Schema,
    Sequence,
    Shape,
    View,
)
from seachange.model.schema.rights import OWNER, OnObject, OnUnsaid, Right, RoleAttribute
from seachange.model.schema.temporary import is_temporary
from seachange.planner.plan import ChangePlan
from seachange.sql.port.port import TransactionPort
from seachange.sql.settings.stored_settings import database_place

Kept = TypeVar("Kept", bound=Descriptor)

_KINDS: dict[type[Descriptor], ObjectKind] = {
    View: ObjectKind.VIEW,
    Sequence: ObjectKind.SEQUENCE,
    EnumType: ObjectKind.TYPE,
    Schema: ObjectKind.SCHEMA,
    Database: ObjectKind.DATABASE,
}
DROPS = (statements.DropTable, statements.DropIndex, statements.DropObjects)
# Privileges on a view have the names of table privileges.
_GRANTED_AS = dict.fromkeys(VIEWS, ObjectKind.TABLE)


def describe(descriptor: Descriptor) -> str:
    if isinstance(descriptor, UNPLANNED):
        return f"{type(descriptor).__name__.lower()} {descriptor.name}"
    return f"{kind_of(descriptor).value} {descriptor.name}"


def kind_of(descriptor: Descriptor) -> ObjectKind:
    if isinstance(descriptor, Table):
        return ObjectKind.TABLE if descriptor.materialized is None else ObjectKind.MATERIALIZED_VIEW
    return _KINDS[type(descriptor)]


def check_roles(names: Iterable[str], port: TransactionPort) -> None:
    """Raises UndefinedObject unless the roles that a statement names exist."""
    roles = find_roles(port.schema.objects())
    for name in names:
        if name != PUBLIC_ROLE and not role_exists(name, roles):
            raise errors.UndefinedObject(kind="role", name=name)


def check_named_roles(statement: statements.DdlStatement, port: TransactionPort) -> None:
    match statement:
        case statements.Grant(roles=roles):
            check_roles(roles, port)
        case statements.ChangeOwner(role=role):
            check_roles([role], port)
        case statements.CreateSchema(owner=owner) | statements.CreateDatabase(owner=owner) if owner is not None:
            check_roles([owner], port)
        case _:
            pass


def _require(descriptor: Descriptor, privilege: str, port: TransactionPort, grantable: bool = False) -> None:
    what = describe(descriptor)
    denial = f"must be owner of {what}" if privilege == OWNER else f"permission denied for {what}"
    port.rights.require(OnObject(descriptor.id, (privilege,), grantable), denial)


def check_plan(
    statement: statements.DdlStatement,
    plan: ChangePlan,
    known: Mapping[DescriptorId, Descriptor],
    port: TransactionPort,
) -> None:
    """Raises InsufficientPrivilege unless the role may make every change of the plan."""
    touched: dict[DescriptorId, list[Element]] = {}
    for target in plan.change.targets:
        # Dropping a reference to a table needs no REFERENCES privilege, which may have been revoked since.
        if isinstance(target.element, elements.ForeignKeyParent) and not target.adds:
            continue
        touched.setdefault(descriptor_of(target.element), []).append(target.element)
    for id_, parts in touched.items():
        before = known.get(id_)
        if before is None:
            _check_creation(parts, statement, known, port)
        else:
            _check_touched(before, parts, statement, port)


def _check_touched(
    before: Descriptor, parts: list[Element], statement: statements.DdlStatement, port: TransactionPort
) -> None:
    if isinstance(statement, statements.TruncateTables) and isinstance(before, Table):
        _require(before, "TRUNCATE", port)
    elif isinstance(statement, statements.Grant):
        kind = kind_of(before)
        wanted = PRIVILEGES[_GRANTED_AS.get(kind, kind)] if statement.privileges == ("ALL",) else statement.privileges
        for privilege in wanted:
            _require(before, privilege, port, grantable=True)
    elif all(isinstance(part, elements.ForeignKeyParent) for part in parts):
        _require(before, "REFERENCES", port)
    elif isinstance(statement, DROPS):
        port.rights.require(drop_right(before, port), f"must be owner of {describe(before)}")
    else:
        _require(before, OWNER, port)


def drop_right(found: Descriptor, port: TransactionPort) -> Right:
    """The owner of a schema may drop the objects in it."""
    own = OnObject(found.id, (OWNER,))
    if isinstance(found, Schema | Database | Role | Shape):
        return own
    schema = port.rights.schema_right(found.schema, OWNER)
    return schema if schema is not None and port.rights.allows(schema) else own


def _check_creation(
    parts: list[Element],
    statement: statements.DdlStatement,
    known: Mapping[DescriptorId, Descriptor],
    port: TransactionPort,
) -> None:
    entry = next((part for part in parts if isinstance(part, elements.NamespaceElement)), None)
    if entry is None or entry.kind is ObjectKind.DATABASE:
        return
    if entry.kind is ObjectKind.SCHEMA:
        # The default schema gets a descriptor when one of its attributes is first set.
        if isinstance(statement, statements.CreateSchema):
            denial = f"permission denied for database {entry.database}"
            port.rights.require(_database_right(entry.database, "CREATE", known), denial)
        else:
            port.rights.require(RoleAttribute("superuser"), f"permission denied for schema {entry.name}")
        return
    if is_temporary(entry.schema):
        denial = f'permission denied to create temporary tables in database "{entry.database}"'
        port.rights.require(_database_right(entry.database, "TEMPORARY", known), denial)
        return
    denial = f"permission denied for schema {entry.schema}"
    port.rights.require(port.rights.schema_right(entry.schema, "CREATE") or RoleAttribute("superuser"), denial)


def _database_right(name: str, privilege: str, known: Mapping[DescriptorId, Descriptor]) -> Right:
    database = next((d for d in known.values() if isinstance(d, Database) and d.name == name), None)
    if database is None:
        return OnUnsaid(ObjectKind.DATABASE, name, name, privilege)
    return OnObject(database.id, (privilege,))


def without_lost_roles(kept: Kept, port: TransactionPort) -> Kept:
    """A dropped object does not prevent its roles from being dropped. If its owner was dropped, the role that brings it
    back owns it."""
    roles, access = find_roles(port.schema.objects()), kept.access
    owner = access.owner if role_exists(access.owner, roles) else port.rights.actor.user
    left = tuple(p for p in access.privileges if p.role == PUBLIC_ROLE or role_exists(p.role, roles))
    return replace(kept, access=replace(access, owner=owner, privileges=left))


def give_to_creator(created: Descriptor, port: TransactionPort) -> Descriptor:
    """A new object is owned by the role that creates it, with that role's default privileges."""
    actor = port.rights.actor
    access = created.access
    owner = actor.user if access.owner == DEFAULT_ROLE else access.owner
    granted = _default_privileges(created, owner, port)
    if owner == access.owner and not granted:
        return created
    return replace(created, access=Access(owner, (*access.privileges, *granted), access.comments))


def _default_privileges(created: Descriptor, owner: str, port: TransactionPort) -> tuple[RolePrivileges, ...]:
    creator = find_roles(port.schema.objects()).get(owner)
    if creator is None or not creator.defaults or isinstance(created, (*UNPLANNED, Database)):
        return ()
    kind = _GRANTED_AS.get(kind_of(created), kind_of(created))
    schema = "" if isinstance(created, Schema) else created.schema
    held: dict[str, list[str]] = {}
    places = {0, database_place(created.database, port.schema.objects())}
    for default in creator.defaults:
        if default.kind is kind and default.schema in ("", schema) and default.database in places:
            held.setdefault(default.role, []).extend(default.privileges)
    order = PRIVILEGES[kind]
    return tuple(RolePrivileges(role, tuple(p for p in order if p in names)) for role, names in held.items())
