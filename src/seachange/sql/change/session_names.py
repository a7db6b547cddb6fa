"""Names that mean something else in each session: `pg_temp`, and CURRENT_USER and others as the name of a role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from seachange.model import statements
from seachange.model.relation import RelationName
from seachange.model.schema.temporary import OWN_SCHEMA
from seachange.model.statements import SessionRole
from seachange.sql.port.port import TransactionPort

_T = TypeVar("_T")
_NAMES_ROLES = (
    statements.ChangeOwner,
    statements.CreateDatabase,
    statements.CreateSchema,
    statements.Grant,
    statements.RoleStatement,
)


def resolve_session_names(statement: _T, port: TransactionPort) -> _T:
    """The statement with the names that these are for the session."""
    schema = port.statement.temporary_schema
    if schema is None and not isinstance(statement, _NAMES_ROLES):
        return statement
    current, session = port.rights.actor.user, port.statement.session.session_user
    roles = dict.fromkeys(SessionRole, current) | {SessionRole.SESSION_USER: session}
    resolved: _T = _resolve(statement, schema, roles)
    return resolved


def _resolve(value: Any, schema: str | None, roles: Mapping[SessionRole, str]) -> Any:
    if isinstance(value, SessionRole):
        return roles[value]
    if isinstance(value, RelationName):
        is_own = value.schema == OWN_SCHEMA and schema is not None
        return replace(value, schema=schema) if is_own else value
    if isinstance(value, tuple):
        changed = tuple(_resolve(item, schema, roles) for item in value)
        return value if all(a is b for a, b in zip(value, changed, strict=True)) else changed
    if is_dataclass(value) and not isinstance(value, type):
        held = {each.name: getattr(value, each.name) for each in fields(value)}
        parts = {name: _resolve(old, schema, roles) for name, old in held.items()}
        changes = {name: new for name, new in parts.items() if new is not held[name]}
        return replace(value, **changes) if changes else value
    return value
