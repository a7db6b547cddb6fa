"""On whose behalf a statement runs, and what that role may do.

Privileges are those of PostgreSQL: an owner may do everything with what it owns, a superuser with everything, and a
member of a role what the role may. `public` is everybody.

**Invariant:** a statement runs as one role, and checks privileges where it reads and writes (`check_access`). What a
definition names is checked before it is planned (`sql/change/privilege_checks.py`), and what it touches before it is
published (`sql/change/object_access.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seachange.model.schema.access import DEFAULT_ROLE, PUBLIC_ROLE, Access
from seachange.model.schema.objects import Descriptor, Role


@dataclass(frozen=True, slots=True)
class Actor:
    """`roles` are those whose privileges it has: its own, those that it is a member of, and everybody's."""

    user: str = DEFAULT_ROLE
    superuser: bool = True
    create_database: bool = True
    create_role: bool = True
    roles: frozenset[str] = frozenset({DEFAULT_ROLE, PUBLIC_ROLE})

    def owns(self, access: Access) -> bool:
        return self.superuser or access.owner in self.roles

    def holds(self, access: Access, privilege: str) -> bool:
        if self.owns(access):
            return True
        return any(held.role in self.roles and privilege in held.privileges for held in access.privileges)

    def holds_any(self, access: Access) -> bool:
        return self.owns(access) or any(held.role in self.roles for held in access.privileges)

    def may_grant(self, access: Access, privilege: str) -> bool:
        if self.owns(access):
            return True
        return any(held.role in self.roles and privilege in held.grantable for held in access.privileges)


# Whoever opens the database without saying who it is: the role that everything belongs to at first.
ROOT = Actor()


def find_roles(objects: Iterable[Descriptor]) -> dict[str, Role]:
    return {found.name: found for found in objects if isinstance(found, Role)}


def role_exists(name: str, roles: Mapping[str, Role]) -> bool:
    return name == DEFAULT_ROLE or name in roles


def actor_of(name: str, roles: Mapping[str, Role]) -> Actor:
    """A role that is not there, or is there no longer, has no privileges but everybody's."""
    role = roles.get(name)
    if name == DEFAULT_ROLE:
        return ROOT
    if role is None:
        return Actor(name, False, False, False, frozenset({name, PUBLIC_ROLE}))
    held = {*memberships(name, roles, inherited=True), PUBLIC_ROLE}
    return Actor(name, role.superuser, role.create_database, role.create_role, frozenset(held))


def memberships(name: str, roles: Mapping[str, Role], inherited: bool = False) -> set[str]:
    """The role itself, and all that it is a member of, directly or not; with `inherited` those whose privileges it has
    without becoming them first, as a role with NOINHERIT must."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            role = roles.get(each)
            waiting += role.member_of if role is not None and (role.inherit or not inherited) else ()
    return found
