"""Attributes that every object has: owner, privileges, comments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from seachange.model.object_kind import ObjectKind

K = TypeVar("K")
V = TypeVar("V")

DEFAULT_ROLE = "seachange"
# All roles.
PUBLIC_ROLE = "public"

# The privileges of each kind of object, in the order in which they are listed.
PRIVILEGES: dict[ObjectKind, tuple[str, ...]] = {
    ObjectKind.TABLE: ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"),
    ObjectKind.SEQUENCE: ("USAGE", "SELECT", "UPDATE"),
    ObjectKind.SCHEMA: ("CREATE", "USAGE"),
    ObjectKind.DATABASE: ("CREATE", "CONNECT", "TEMPORARY"),
    ObjectKind.TYPE: ("USAGE",),
}
# The default privileges of PUBLIC on a new object.
EVERYBODYS: dict[ObjectKind, tuple[str, ...]] = {ObjectKind.DATABASE: ("CONNECT", "TEMPORARY")}


@dataclass(frozen=True, slots=True)
class RolePrivileges:
    """The privileges of one role on the object, and those that it may grant."""

    role: str
    privileges: tuple[str, ...]
    grantable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartComment:
    """A comment on the object, or on its part with that kind and id."""

    text: str
    part: tuple[ObjectKind, int] | None = None


@dataclass(frozen=True, slots=True)
class Access:
    owner: str = DEFAULT_ROLE
    privileges: tuple[RolePrivileges, ...] = ()
    comments: tuple[PartComment, ...] = ()


# Of the default schema and database while they have no descriptor.
UNSAID_SCHEMA = Access(privileges=(RolePrivileges(PUBLIC_ROLE, ("USAGE",)),))
UNSAID_DATABASE = Access(privileges=(RolePrivileges(PUBLIC_ROLE, EVERYBODYS[ObjectKind.DATABASE]),))


def merge_access(before: Access, ours: Access, theirs: Access) -> Access | None:
    """Merges concurrent changes of an object's owner, privileges and comments with ours; None if both change the owner
    or the same role, in different ways. Of two comments on one thing, ours is the later."""
    given = {p.role: p for p in before.privileges}, {p.role: p for p in ours.privileges}
    said = {c.part: c for c in before.comments}, {c.part: c for c in ours.comments}
    owner = _merge({None: before.owner}, {None: ours.owner}, {None: theirs.owner}, later_wins=False)
    privileges = _merge(*given, {p.role: p for p in theirs.privileges}, later_wins=False)
    comments = _merge(*said, {c.part: c for c in theirs.comments}, later_wins=True)
    if owner is None or privileges is None or comments is None:
        return None
    return Access(owner[None], tuple(privileges.values()), tuple(comments.values()))


def _merge(before: Mapping[K, V], ours: Mapping[K, V], theirs: Mapping[K, V], later_wins: bool) -> dict[K, V] | None:
    merged = dict(theirs)
    for key in dict.fromkeys((*before, *ours)):
        if ours.get(key) in (before.get(key), theirs.get(key)):
            continue
        if theirs.get(key) != before.get(key) and not later_wins:
            return None
        merged.pop(key, None)
        if key in ours:
            merged[key] = ours[key]
    return merged
