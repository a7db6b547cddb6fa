"""Rights that a statement requires of its role, as values.

A right that a write or a definition required is kept with the transaction and evaluated again at COMMIT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seachange import errors
from seachange.model.ids import DescriptorId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.access import DEFAULT_ROLE, UNSAID_DATABASE, UNSAID_SCHEMA, Access, RolePrivileges
from seachange.model.schema.actor import READ_SERVER_FILES, ROOT, Actor, actor_of, memberships, role_exists
from seachange.model.schema.objects import Descriptor, Role

# Besides the privileges that can be granted.
OWNER = "OWNER"

# Of the default schema and database while they have no descriptor.
UNSAID: dict[ObjectKind, Access] = {ObjectKind.SCHEMA: UNSAID_SCHEMA, ObjectKind.DATABASE: UNSAID_DATABASE}


@dataclass(frozen=True, slots=True)
class SessionIdentity:
    """The roles of a session: the one that logged in, that of SET SESSION AUTHORIZATION, and that of SET ROLE.
    `login_id` distinguishes the first from a later role of the same name."""

    login: str = DEFAULT_ROLE
    session: str = DEFAULT_ROLE
    current: str = DEFAULT_ROLE
    login_id: DescriptorId | None = None


ROOT_IDENTITY = SessionIdentity()


@dataclass(frozen=True, slots=True)
class OnObject:
    """One of the privileges on an object; `grantable`: with grant option. `of` is the role that must have it, if it is
    not the statement's."""

    id: DescriptorId
    privileges: tuple[str, ...]
    grantable: bool = False
    of: str | None = None


@dataclass(frozen=True, slots=True)
class OnUnsaid:
    """A privilege on the default schema or database while it has no descriptor."""

    kind: ObjectKind
    database: str
    name: str
    privilege: str
    of: str | None = None


@dataclass(frozen=True, slots=True)
class RoleAttribute:
    """An attribute of the role, by its name in `Actor`. A superuser has every attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class MemberOf:
    """The privileges of another role."""

    role: str


@dataclass(frozen=True, slots=True)
class AdminOf:
    """The right to change a role's members: ADMIN OPTION, or CREATEROLE unless the role is a superuser."""

    role: str


Right = OnObject | OnUnsaid | RoleAttribute | MemberOf | AdminOf


def find_actor(identity: SessionIdentity, roles: Mapping[str, Role]) -> Actor:
    """Raises 42501 if a role of the session no longer exists, or may no longer act as the next one."""
    if identity == ROOT_IDENTITY:
        return ROOT
    is_another = identity.login_id is not None and _id_of(identity.login, roles) != identity.login_id
    for name in (identity.login, identity.session, identity.current):
        if is_another or not role_exists(name, roles):
            raise errors.InsufficientPrivilege(detail=f'permission denied: role "{name}" does not exist')
    if identity.session != identity.login and not actor_of(identity.login, roles).superuser:
        detail = f'permission denied to set session authorization "{identity.session}"'
        raise errors.InsufficientPrivilege(detail=detail)
    if not may_become(identity.session, identity.current, roles):
        raise errors.InsufficientPrivilege(detail=f'permission denied to set role "{identity.current}"')
    return actor_of(identity.current, roles)


def _id_of(name: str, roles: Mapping[str, Role]) -> DescriptorId | None:
    return roles[name].id if name in roles else None


def may_become(session: str, current: str, roles: Mapping[str, Role]) -> bool:
    if current == session or actor_of(session, roles).superuser:
        return True
    return current in memberships(session, roles)


def deciding_roles(identity: SessionIdentity, roles: Mapping[str, Role]) -> list[Role]:
    """The roles whose descriptors decide the privileges of a session."""
    names = {
        name for start in (identity.login, identity.session, identity.current) for name in memberships(start, roles)
    }
    return [roles[name] for name in sorted(names) if name in roles]


def grants(access: Access, actor: Actor, right: OnObject) -> bool:
    allows = actor.may_grant if right.grantable else actor.holds
    return any(actor.owns(access) if name == OWNER else allows(access, name) for name in right.privileges)


def may_administer(actor: Actor, granted: str, roles: Mapping[str, Role]) -> bool:
    own = roles.get(actor.user)
    if actor.superuser or (own is not None and granted in own.admin_of):
        return True
    is_superuser = granted in (DEFAULT_ROLE, READ_SERVER_FILES) or (granted in roles and roles[granted].superuser)
    return actor.create_role and not is_superuser


def takes_rights(before: Descriptor, after: Descriptor) -> bool:
    """Whether a version of a descriptor grants less, to any role, than the one before."""
    if isinstance(before, Role) and isinstance(after, Role):
        return _takes_from_role(before, after)
    if before.access.owner != after.access.owner:
        return True
    held = {given.role: given for given in after.access.privileges}
    nothing = RolePrivileges("", ())
    return any(
        not set(given.privileges) <= set(held.get(given.role, nothing).privileges)
        or not set(given.grantable) <= set(held.get(given.role, nothing).grantable)
        for given in before.access.privileges
    )


_ATTRIBUTES = ("superuser", "create_database", "create_role", "inherit")


def _takes_from_role(before: Role, after: Role) -> bool:
    if before.name != after.name or any(getattr(before, a) and not getattr(after, a) for a in _ATTRIBUTES):
        return True
    return not (set(before.member_of) <= set(after.member_of) and set(before.admin_of) <= set(after.admin_of))
