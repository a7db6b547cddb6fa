"""Stored defaults of settings: ALTER ROLE ... SET and ALTER DATABASE ... SET.

**Invariant:** a stored value is valid for its setting, and in its canonical form.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from seachange import errors
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.objects import (
    DEFAULT_DATABASE,
    DEFAULT_PLACE,
    Database,
    Descriptor,
    Role,
    RoleSetting,
)
from seachange.model.schema.rights import OWNER, OnObject, RoleAttribute
from seachange.model.statements import ChangeSettings
from seachange.sql.port.port import TransactionPort
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.settings.settings import is_free, is_of_node

# They identify the session, or belong to one transaction.
_NOT_KEPT = frozenset({"role", "session_authorization", "transaction_isolation"})


def settings_of(role: Role | None, database: Database | None) -> dict[str, str]:
    """The initial settings of a session. Those of the role in this database take precedence, then those of the role,
    then those of the database."""
    found = dict(database.settings) if database is not None else {}
    kept = role.settings if role is not None else ()
    for place in (0, database.id if database is not None else 0):
        found |= {each.name: each.value for each in kept if each.database == place}
    return found


def with_setting(statement: ChangeSettings, held: dict[str, str], port: TransactionPort) -> dict[str, str]:
    name = statement.name
    if name is None:
        return {}
    if name in _NOT_KEPT or is_of_node(name):
        raise errors.SettingFixed(name=name, value=port.statement.session.setting(name))
    if not is_free(name):
        port.rights.require(RoleAttribute("superuser"), f'permission denied to set parameter "{name}"')
    value = port.statement.session.setting(name) if statement.current else statement.value
    rest = {other: kept for other, kept in held.items() if other != name}
    if value is None:
        return rest
    checked = SessionSettings()
    checked.set(name, value)
    return {**rest, name: checked.get(name)}


def change_database_settings(statement: ChangeSettings, database: Database, port: TransactionPort) -> None:
    port.rights.require(OnObject(database.id, (OWNER,)), f"must be owner of {ObjectKind.DATABASE} {database.name}")
    settings = tuple(with_setting(statement, dict(database.settings), port).items())
    if settings != database.settings:
        port.definitions.publish(database, replace(database, version=database.version + 1, settings=settings))


def changed_role_settings(
    statement: ChangeSettings, role: Role, database: Database | None, port: TransactionPort
) -> tuple[RoleSetting, ...]:
    place = database.id if database is not None else 0
    others = [each for each in role.settings if each.database != place]
    held = {each.name: each.value for each in role.settings if each.database == place}
    own = [RoleSetting(place, name, value) for name, value in with_setting(statement, held, port).items()]
    return (*others, *own)


def database_place(name: str, objects: Iterable[Descriptor]) -> int:
    """By which default privileges know a database."""
    found = None if name == DEFAULT_DATABASE else find_database(name, objects)
    return found.id if found is not None else DEFAULT_PLACE


def find_database(name: str, objects: Iterable[Descriptor]) -> Database | None:
    return next((found for found in objects if isinstance(found, Database) and found.name == name), None)
