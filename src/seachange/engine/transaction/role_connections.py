"""CONNECTION LIMIT: a session of a role holds one of as many places as the role may have sessions, on all nodes.

**Invariant:** a place is held by one session at a time, in the epoch of its transactions; it is free again when the
session ends, or its epoch does.
"""

from __future__ import annotations

from collections.abc import Callable

from seachange import errors
from seachange.engine.buffer.write_locks import WriteLocks
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.replica.epoch import EpochState
from seachange.model.locking import LockOwner, LockPolicy, LockStrength, LockWish
from seachange.model.schema.access import DEFAULT_ROLE
from seachange.model.schema.objects import Role
from seachange.storage.keys import place_hash

# What the place ends with, apart from the locks of the session's transactions.
_SCOPE = -4


class RoleConnection:
    def __init__(self, role: str, actor: int, expire: Callable[[], object]) -> None:
        """`expire` ends the epochs of nodes that are silent for too long."""
        self._role = role
        self._expire = expire
        self._owner = LockOwner(actor, _SCOPE)
        # Where it was asked for, and where one is held.
        self._asked: EpochState | None = None
        self._held: EpochState | None = None

    def begin(self, write_locks: WriteLocks) -> None:
        """53300 unless a place is free. Superusers need none."""
        epoch = write_locks.epoch
        if self._role == DEFAULT_ROLE or self._asked is epoch:
            return
        role = epoch.schemas.newest.roles.get(self._role)
        if role is not None and not role.superuser and role.connection_limit >= 0:
            if not self._take(role, epoch):
                # A process that was killed holds none; the catalog learns it from its expiry.
                self._expire()
                if not self._take(role, epoch):
                    raise errors.TooManyOfRole(role=self._role)
            self._held = epoch
        self._asked = epoch

    def _take(self, role: Role, epoch: EpochState) -> bool:
        keys = [place_hash(role.id, number) for number in range(role.connection_limit)]
        wishes = [LockWish(key, LockStrength.UPDATE, key) for key in keys]
        taken = epoch.shared.take(self._owner, wishes, LockPolicy.SKIP, SessionInterrupts(), most=1)
        return any(taken.granted)

    def end(self) -> None:
        if self._held is not None:
            self._held.shared.release_all(self._owner)
        self._held = self._asked = None
