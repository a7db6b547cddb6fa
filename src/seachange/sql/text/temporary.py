"""`pg_temp` in statements: the temporary schema of the session."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from seachange.model.relation import RelationName
from seachange.model.schema.temporary import OWN_SCHEMA

T = TypeVar("T")


def localize(statement: T, schema: str | None) -> T:
    """The statement with `pg_temp` replaced by that schema."""
    return statement if schema is None else _localize(statement, schema)


def _localize(value: Any, schema: str) -> Any:
    if isinstance(value, RelationName):
        return RelationName(schema, value.name) if value.schema == OWN_SCHEMA else value
    if isinstance(value, tuple):
        changed = tuple(_localize(item, schema) for item in value)
        return value if all(a is b for a, b in zip(value, changed, strict=True)) else changed
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: (getattr(value, f.name), _localize(getattr(value, f.name), schema)) for f in fields(value)}
        changes = {name: new for name, (old, new) in parts.items() if new is not old}
        return replace(value, **changes) if changes else value
    return value
