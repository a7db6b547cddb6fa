"""The role of a session, the roles that it may become, and the database that it uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from seachange import errors
from seachange.engine.buffer.write_locks import WriteLocks
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.node.node import Node
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.schema_history import SchemaVersion
from seachange.engine.session.session_state import BlockState
from seachange.engine.transaction.database_use import DatabaseUse
from seachange.model.ids import DescriptorId
from seachange.model.locking import LockOwner, LockPolicy, LockStrength, LockWish
from seachange.model.schema.access import DEFAULT_ROLE
from seachange.model.schema.actor import Actor, actor_of, role_exists
from seachange.model.schema.objects import DEFAULT_DATABASE, Role
from seachange.model.schema.rights import SessionIdentity, may_become
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.settings.settings import check_privilege, is_of_node
from seachange.sql.settings.stored_settings import find_database, settings_of
from seachange.storage.keys import place_hash

# What the place ends with, apart from the locks of the session's transactions.
_SCOPE = -4


class Admission:
    def __init__(
        self, node: Node, user: str, database: str, client: SessionContext, settings: SessionSettings, block: BlockState
    ) -> None:
        self._node = node
        self._user = user
        self._database = database
        self._settings = settings
        self._block = block
        self._login_id: DescriptorId | None = None
        self._use = DatabaseUse(database, client.actor)
        self._place = RoleConnection(user, client.actor, node.parts.catalog.expire_nodes)

    def check_login(self) -> None:
        """Whether the user is a role that may log in. The session begins with the settings of the role."""
        head = self._head()
        role = head.roles.get(self._user)
        if self._user != DEFAULT_ROLE and (role is None or not role.login):
            detail = f'role "{self._user}" does not exist' if role is None else f'role "{self._user}" may not log in'
            raise errors.InvalidAuthorization(detail=detail)
        database = find_database(self._database, head.objects.values())
        if database is not None and not actor_of(self._user, head.roles).holds(database.access, "CONNECT"):
            raise errors.InsufficientPrivilege(detail=f"permission denied for database {self._database}")
        if self._user != DEFAULT_ROLE:
            self._login_id = role.id if role is not None else None
        self._settings.add_defaults(settings_of(role, database))

    def begin(self, write_locks: WriteLocks) -> None:
        """Takes the locks that protect the database and the role's connection; again in every epoch."""
        self._use.begin(write_locks)
        self._place.begin(write_locks)

    @property
    def is_limited(self) -> bool:
        """Whether a limit on connections may refuse the session."""
        role = self._roles().get(self._user)
        return self._database != DEFAULT_DATABASE or (role is not None and role.connection_limit >= 0)

    def end(self) -> None:
        self._use.end()
        self._place.end()

    def check_role(self, name: str, of_session: bool) -> None:
        """Whether the session may become another role."""
        roles = self._roles_now()
        if name in ("none", "default"):
            return
        if not role_exists(name, roles):
            raise errors.InvalidParameterValue(detail=f'role "{name}" does not exist')
        session = self._session_user()
        may = actor_of(self._user, roles).superuser if of_session else may_become(session, name, roles)
        if not may:
            detail = f'permission denied to set {"session authorization" if of_session else "role"} "{name}"'
            raise errors.InsufficientPrivilege(detail=detail)

    def check_setting(self, name: str, value: str | None) -> None:
        """Whether a client may set it; None resets it."""
        if value is None:
            return
        if is_of_node(name):
            raise errors.SettingOfNode(name=name)
        if name in ("role", "session_authorization"):
            self.check_role(value, name == "session_authorization")
            return
        check_privilege(name, self._named(self._roles_now()).superuser)

    def _roles_now(self) -> Mapping[str, Role]:
        transaction = self._block.transaction
        return self._roles() if transaction is None else transaction.state.rights.roles

    @property
    def identity(self) -> SessionIdentity:
        return SessionIdentity(self._user, self._session_user(), self._name(), self._login_id)

    def _named(self, roles: Mapping[str, Role]) -> Actor:
        return actor_of(self._name(), roles)

    def _name(self) -> str:
        role = self._settings.typed.role
        return self._session_user() if role is None else role

    def _roles(self) -> Mapping[str, Role]:
        return self._head().roles

    def _head(self) -> SchemaVersion:
        """As of now: all that other nodes have committed is applied first."""

        def find(epoch: EpochState) -> SchemaVersion:
            epoch.catch_up()
            return epoch.schemas.newest

        return self._node.in_epoch(find)

    def _session_user(self) -> str:
        name = self._settings.typed.session_user
        return self._user if name is None else name


class RoleConnection:
    """CONNECTION LIMIT: a session of a role holds one of as many places as the role may have sessions, on all nodes.

    **Invariant:** a place is held by one session at a time, in the epoch of its transactions; it is free again when the
    session ends, or its epoch does.
    """

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
