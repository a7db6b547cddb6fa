"""What every object has besides its shape: an owner, privileges, comments."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.object_statements import ObjectKind

DEFAULT_ROLE = "seachange"
# Everybody.
PUBLIC_ROLE = "public"

# What can be granted on which kind of object, in the order in which it is listed.
PRIVILEGES: dict[ObjectKind, tuple[str, ...]] = {
    ObjectKind.TABLE: ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"),
    ObjectKind.SEQUENCE: ("USAGE", "SELECT", "UPDATE"),
    ObjectKind.SCHEMA: ("CREATE", "USAGE"),
    ObjectKind.DATABASE: ("CREATE", "CONNECT", "TEMPORARY"),
    ObjectKind.TYPE: ("USAGE",),
}


@dataclass(frozen=True, slots=True)
class RolePrivileges:
    """What one role may do with the object, and what of it may be passed on."""

    role: str
    privileges: tuple[str, ...]
    grantable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartComment:
    """A comment on the object, or on the part of it with that kind and id."""

    text: str
    part: tuple[ObjectKind, int] | None = None


@dataclass(frozen=True, slots=True)
class Access:
    owner: str = DEFAULT_ROLE
    privileges: tuple[RolePrivileges, ...] = ()
    comments: tuple[PartComment, ...] = ()
