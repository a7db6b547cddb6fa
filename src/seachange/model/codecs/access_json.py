"""Owner, privileges and comments as JSON values."""

from __future__ import annotations

from typing import Any

from seachange.model.object_kind import ObjectKind
from seachange.model.schema.access import Access, PartComment, RolePrivileges


def encode_access(access: Access) -> dict[str, Any]:
    return {
        "owner": access.owner,
        "privileges": [[p.role, list(p.privileges), list(p.grantable)] for p in access.privileges],
        "comments": [[c.text, list(c.part) if c.part is not None else None] for c in access.comments],
    }


def decode_access(body: dict[str, Any] | None) -> Access:
    """None: a body from before objects had owners."""
    if body is None:
        return Access()
    return Access(
        body["owner"],
        tuple(RolePrivileges(role, tuple(may), tuple(passes)) for role, may, passes in body["privileges"]),
        tuple(
            PartComment(text, (ObjectKind(part[0]), part[1]) if part is not None else None)
            for text, part in body["comments"]
        ),
    )
