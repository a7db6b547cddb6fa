"""Who a session is: its role, the roles that it may go on as, and the database that it uses."""

from __future__ import annotations

from collections.abc import Collection

from seachange import errors
from seachange.engine.claims import Claims
from seachange.engine.client import Client
from seachange.engine.database_use import DatabaseUse
from seachange.engine.epoch import EpochState
from seachange.engine.node import Node
from seachange.engine.role_place import RolePlace
from seachange.engine.transaction import Transaction
from seachange.model.access import DEFAULT_ROLE
from seachange.model.actor import ROOT, Actor, actor_of, find_roles, memberships, role_exists
from seachange.model.objects import DEFAULT_DATABASE, Descriptor, Role
from seachange.sql.session_settings import SessionSettings
from seachange.sql.settings import check_privilege, is_of_node
from seachange.sql.stored_settings import find_database, settings_of


class Admission:
    def __init__(self, node: Node, user: str, database: str, client: Client, settings: SessionSettings) -> None:
        self._node = node
        self._user = user
        self._database = database
        self._settings = settings
        self._use = DatabaseUse(database, client.actor)
        self._place = RolePlace(user, client.actor, node.parts.catalog.expire_nodes)

    def check_login(self) -> None:
        """Whether there is a role of the user's name that may have a session. It begins with what is kept for it."""
        objects = self._objects()
        role = find_roles(objects).get(self._user)
        if self._user != DEFAULT_ROLE and (role is None or not role.login):
            detail = f'role "{self._user}" does not exist' if role is None else f'role "{self._user}" may not log in'
            raise errors.InvalidAuthorization(detail=detail)
        database = find_database(self._database, objects)
        may_connect = database is None or actor_of(self._user, find_roles(objects)).holds(database.access, "CONNECT")
        if not may_connect:
            raise errors.InsufficientPrivilege(detail=f"permission denied for database {self._database}")
        self._settings.add_defaults(settings_of(role, database))

    def begin(self, claims: Claims) -> None:
        """Whatever a transaction needs that others could take away; taken again in every epoch."""
        self._use.begin(claims)
        self._place.begin(claims)

    @property
    def is_limited(self) -> bool:
        """Whether there may be no place for the session."""
        role = self._roles().get(self._user)
        return self._database != DEFAULT_DATABASE or (role is not None and role.connection_limit >= 0)

    def end(self) -> None:
        self._use.end()
        self._place.end()

    def check_role(self, name: str, of_session: bool, transaction: Transaction | None) -> None:
        """Whether the session may go on as another role."""
        roles = self._roles() if transaction is None else find_roles(transaction.objects())
        if name in ("none", "default"):
            return
        if not role_exists(name, roles):
            raise errors.UndefinedObject(kind="role", name=name)
        own = actor_of(self._user if of_session else self._session_user(), roles)
        if not own.superuser and (of_session or name not in memberships(own.user, roles)):
            detail = f'permission denied to set {"session authorization" if of_session else "role"} "{name}"'
            raise errors.InsufficientPrivilege(detail=detail)

    def check_setting(self, name: str, value: str | None, transaction: Transaction | None) -> None:
        """Whether a client may set it; None: back to what it was."""
        if value is None:
            return
        if is_of_node(name):
            raise errors.SettingOfNode(name=name)
        if name in ("role", "session_authorization"):
            self.check_role(value, name == "session_authorization", transaction)
            return
        roles = self._roles() if transaction is None else find_roles(transaction.objects())
        check_privilege(name, self._named(roles).superuser)

    def actor(self, transaction: Transaction) -> Actor:
        name = self._name()
        return ROOT if name == DEFAULT_ROLE else actor_of(name, find_roles(transaction.objects()))

    def _named(self, roles: dict[str, Role]) -> Actor:
        return actor_of(self._name(), roles)

    def _name(self) -> str:
        role = self._settings.get("role")
        return self._session_user() if role == "none" else role

    def _roles(self) -> dict[str, Role]:
        return find_roles(self._objects())

    def _objects(self) -> Collection[Descriptor]:
        """As of now: all that other nodes have committed is applied first."""

        def find(epoch: EpochState) -> Collection[Descriptor]:
            epoch.catch_up()
            return epoch.schemas.newest.objects.values()

        return self._node.in_epoch(find)

    def _session_user(self) -> str:
        name = self._settings.get("session_authorization")
        return self._user if name == "default" else name
