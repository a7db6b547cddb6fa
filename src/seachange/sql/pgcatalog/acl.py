"""Privileges in PostgreSQL's aclitem format: role=letters/grantor, with a star after a privilege with grant option."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from seachange.model.object_kind import ObjectKind
from seachange.model.schema.access import EVERYBODYS, PRIVILEGES, PUBLIC_ROLE, Access

_LETTERS: Final[dict[str, str]] = {
    "INSERT": "a", "SELECT": "r", "UPDATE": "w", "DELETE": "d", "TRUNCATE": "D", "REFERENCES": "x", "TRIGGER": "t",
    "USAGE": "U", "CREATE": "C", "TEMPORARY": "T", "CONNECT": "c",
}  # fmt: skip


def acl(access: Access, kind: ObjectKind) -> list[str] | None:
    """None if nothing was granted or revoked: the kind's defaults apply. The owner has everything."""
    granted = {held.role: held for held in access.privileges if held.role != access.owner}
    public = granted.get(PUBLIC_ROLE)
    if (public.privileges if public is not None else ()) == EVERYBODYS.get(kind, ()) and set(granted) <= {PUBLIC_ROLE}:
        return None
    items = [_item(access.owner, PRIVILEGES[kind], (), access.owner)]
    for role, held in granted.items():
        item = _item("" if role == PUBLIC_ROLE else role, held.privileges, held.grantable, access.owner)
        # PUBLIC comes first where it has privileges by default.
        items.insert(0 if role == PUBLIC_ROLE and kind in EVERYBODYS else len(items), item)
    return items


def _item(role: str, privileges: Collection[str], grantable: Collection[str], grantor: str) -> str:
    letters = [
        letter + ("*" if privilege in grantable else "")
        for privilege, letter in _LETTERS.items()
        if privilege in privileges
    ]
    return f"{role}={''.join(letters)}/{grantor}"
