"""The role of a statement, and its privileges.

Privileges are PostgreSQL's: an owner has all privileges on what it owns, a superuser on everything, and a member of a
role has the role's. `public` is all roles.

**Invariant:** a statement runs as one role, and checks privileges where it reads and writes (`check_access`). The names
in a definition are checked before it is planned (`sql/change/privilege_checks.py`), and the objects that it changes
before it is published (`sql/change/object_access.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seachange.model.schema.access import DEFAULT_ROLE, PUBLIC_ROLE, Access
from seachange.model.schema.objects import Descriptor, Role


@dataclass(frozen=True, slots=True)
class Actor:
    """`roles` are those whose privileges it has: its own, those that it is a member of, and PUBLIC."""

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


# The role of PostgreSQL whose members may read files of the server. It cannot log in, and only superusers grant it.
READ_SERVER_FILES = "pg_read_server_files"

# The bootstrap superuser, which owns everything at first; used where no role is given.
ROOT = Actor()


def find_roles(objects: Iterable[Descriptor]) -> dict[str, Role]:
    return {found.name: found for found in objects if isinstance(found, Role)}


def role_exists(name: str, roles: Mapping[str, Role]) -> bool:
    return name in (DEFAULT_ROLE, READ_SERVER_FILES) or name in roles


def actor_of(name: str, roles: Mapping[str, Role]) -> Actor:
    """A role that does not exist, or no longer does, has only PUBLIC's privileges."""
    role = roles.get(name)
    if name == DEFAULT_ROLE:
        return ROOT
    if role is None:
        return Actor(name, False, False, False, frozenset({name, PUBLIC_ROLE}))
    held = {*memberships(name, roles, inherited=True), PUBLIC_ROLE}
    return Actor(name, role.superuser, role.create_database, role.create_role, frozenset(held))


def memberships(name: str, roles: Mapping[str, Role], inherited: bool = False) -> set[str]:
    """The role itself, and all that it is a member of, directly or not; with `inherited` only those whose privileges it
    has without SET ROLE, which NOINHERIT excludes."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            role = roles.get(each)
            waiting += role.member_of if role is not None and (role.inherit or not inherited) else ()
    return found
