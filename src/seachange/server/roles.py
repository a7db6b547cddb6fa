"""The passwords of the roles in the catalog, as the node knows them now.

**Invariant:** a login that arrives after ALTER ROLE or DROP ROLE has returned, on any node, is checked with what it
says: the node reads the catalog's head before it asks for the password, and again before the session begins.
"""

from __future__ import annotations

from seachange.engine.node import Node
from seachange.server.auth import Verifier, read_verifier


def find_verifier(node: Node, user: str) -> Verifier | None:
    """None for a role without a password, or with one that is good no longer: nobody logs in as it."""
    role = node.epoch.schemas.newest.roles.get(user)
    if role is None or role.password is None:
        return None
    has_expired = role.valid_until_us is not None and role.valid_until_us <= node.parts.clock.wall_us()
    return None if has_expired else read_verifier(role.password)
