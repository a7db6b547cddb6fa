"""The passwords of the roles in the catalog, as the node knows them now.

**Invariant:** a login that arrives after ALTER ROLE or DROP ROLE has returned, on any node, is checked against the new
state: the node reads the catalog's head before it asks for the password, and again before the session begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from seachange.engine.node.node import Node
from seachange.server.auth import Verifier, read_verifier


def find_verifier(node: Node, user: str, defaults: Mapping[str, Verifier] = MappingProxyType({})) -> Verifier | None:
    """None if the role cannot log in: it has no password, here or in `defaults`, or its password has expired."""
    role = node.epoch.schemas.newest.roles.get(user)
    if role is None:
        return defaults.get(user)
    if role.valid_until_us is not None and role.valid_until_us <= node.parts.clock.wall_us():
        return None
    return defaults.get(user) if role.password is None else read_verifier(role.password)
