"""The passwords of the roles in the catalog, as the node knows them now."""

from __future__ import annotations

from seachange.engine.node import Node
from seachange.model.actor import find_roles
from seachange.server.auth import Verifier, read_verifier


def find_verifier(node: Node, user: str) -> Verifier | None:
    """None for a role without a password, which nobody logs in as."""
    role = find_roles(node.epoch.schemas.newest.objects.values()).get(user)
    return read_verifier(role.password) if role is not None and role.password is not None else None
