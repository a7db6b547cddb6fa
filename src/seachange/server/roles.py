"""The passwords of the roles in the catalog, as the node knows them now."""

from __future__ import annotations

from seachange.engine.node import Node
from seachange.model.actor import find_roles
from seachange.server.auth import Verifier, read_verifier


def find_verifier(node: Node, user: str) -> Verifier | None:
    """None for a role without a password, or with one that is good no longer: nobody logs in as it."""
    role = find_roles(node.epoch.schemas.newest.objects.values()).get(user)
    if role is None or role.password is None:
        return None
    has_expired = role.valid_until_us is not None and role.valid_until_us <= node.parts.clock.wall_us()
    return None if has_expired else read_verifier(role.password)
