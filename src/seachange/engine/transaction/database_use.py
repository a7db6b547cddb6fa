"""The use of a database by a session, known to all nodes: it is neither dropped nor renamed meanwhile.

**Invariant:** a session holds a share of its database, in the epoch of its transactions, before it looks at anything in
it; a transaction that drops or renames the database holds it alone until the commit. The default database needs none.
"""

from __future__ import annotations

from seachange import errors
from seachange.engine.buffer.write_locks import WriteLocks
from seachange.engine.replica.epoch import EpochState
from seachange.model.locking import LockOwner, LockPolicy, LockStrength, LockWish
from seachange.model.schema.objects import DEFAULT_DATABASE, Database
from seachange.storage.keys import database_hash

# What the share ends with, apart from the locks of the session's transactions.
_SCOPE = -3


class DatabaseUse:
    def __init__(self, name: str, actor: int) -> None:
        self._name = name
        self._owner = LockOwner(actor, _SCOPE)
        # Where the share is held.
        self._epoch: EpochState | None = None

    def begin(self, write_locks: WriteLocks) -> None:
        """3D000 unless the database is there; from now on it stays."""
        epoch = write_locks.epoch
        if self._name == DEFAULT_DATABASE or self._epoch is epoch:
            return
        database = find_database(self._name, epoch)
        key = database_hash(database.id)
        write_locks.held.take_key(self._owner, LockWish(key, LockStrength.SHARE, key), LockPolicy.WAIT)
        self._epoch = epoch
        try:
            # It may have been dropped while this waited.
            find_database(self._name, epoch)
        except errors.InvalidDatabaseName:
            self.end()
            raise

    def end(self) -> None:
        if self._epoch is not None:
            self._epoch.shared.release_all(self._owner)
            self._epoch.locks.release_all(self._owner)
            self._epoch = None


def find_database(name: str, epoch: EpochState) -> Database:
    epoch.catch_up()
    for found in epoch.schemas.newest.objects.values():
        if isinstance(found, Database) and found.name == name:
            return found
    raise errors.InvalidDatabaseName(name=name)


def hold_alone(database: Database, write_locks: WriteLocks) -> None:
    """Until the end of the transaction no session begins to use the database; 55006 if one does already."""
    key = database_hash(database.id)
    wish = LockWish(key, LockStrength.UPDATE, key)
    if not write_locks.held.take_key(write_locks.owner, wish, LockPolicy.SKIP):
        raise errors.ObjectInUse(detail=f'database "{database.name}" is used by other sessions')
