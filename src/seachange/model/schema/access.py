"""What every object has besides its shape: an owner, privileges, comments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from seachange.model.object_kind import ObjectKind

K = TypeVar("K")
V = TypeVar("V")

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
# What everybody may do with a new object, until it is revoked.
EVERYBODYS: dict[ObjectKind, tuple[str, ...]] = {ObjectKind.DATABASE: ("CONNECT", "TEMPORARY")}


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


# Of the schema and the database that are always there, before there is anything to say of them.
UNSAID_SCHEMA = Access(privileges=(RolePrivileges(PUBLIC_ROLE, ("USAGE",)),))
UNSAID_DATABASE = Access(privileges=(RolePrivileges(PUBLIC_ROLE, EVERYBODYS[ObjectKind.DATABASE]),))


def merge_access(before: Access, ours: Access, theirs: Access) -> Access | None:
    """What others have said of an object meanwhile, with what was said of `before`; None if both are about the same
    owner or the same role. Of two comments on one thing ours is the later."""
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
        if ours.get(key) == before.get(key):
            continue
        if theirs.get(key) != before.get(key) and not later_wins:
            return None
        merged.pop(key, None)
        if key in ours:
            merged[key] = ours[key]
    return merged
