"""Privileges as PostgreSQL writes them: role=letters/grantor, a star after what may be passed on."""

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
    """None where nothing was granted or revoked: what that means goes by the kind. Of the owner it says everything."""
    granted = {held.role: held for held in access.privileges if held.role != access.owner}
    public = granted.get(PUBLIC_ROLE)
    if (public.privileges if public is not None else ()) == EVERYBODYS.get(kind, ()) and set(granted) <= {PUBLIC_ROLE}:
        return None
    items = [_item(access.owner, PRIVILEGES[kind], (), access.owner)]
    for role, held in granted.items():
        item = _item("" if role == PUBLIC_ROLE else role, held.privileges, held.grantable, access.owner)
        # Everybody comes first where everybody may do something from the start.
        items.insert(0 if role == PUBLIC_ROLE and kind in EVERYBODYS else len(items), item)
    return items


def _item(role: str, privileges: Collection[str], grantable: Collection[str], grantor: str) -> str:
    letters = [
        letter + ("*" if privilege in grantable else "")
        for privilege, letter in _LETTERS.items()
        if privilege in privileges
    ]
    return f"{role}={''.join(letters)}/{grantor}"
