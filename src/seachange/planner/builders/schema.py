"""CREATE SCHEMA and CREATE DATABASE."""

from __future__ import annotations

from seachange import errors
from seachange.model.change import elements
from seachange.model.object_kind import ObjectKind
from seachange.model.statements import CreateDatabase, CreateSchema
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.lookup import ALWAYS, add_space

# Schemas of the system's own views, which have no descriptors.
_SYSTEM = frozenset({"information_schema", "seachange"})


def create_schema(draft: Draft, statement: CreateSchema) -> None:
    name = statement.name
    check_schema_name(name)
    if is_taken(draft, ObjectKind.SCHEMA, name):
        if not statement.if_not_exists:
            raise errors.DuplicateSchema(name=name)
        draft.notices.append(f'schema "{name}" already exists, skipping')
        return
    id_ = add_space(draft, ObjectKind.SCHEMA, name)
    if statement.owner is not None:
        draft.add(elements.Owner(id_, statement.owner))


def create_database(draft: Draft, statement: CreateDatabase) -> None:
    if is_taken(draft, ObjectKind.DATABASE, statement.name):
        raise errors.DuplicateDatabase(name=statement.name)
    id_ = add_space(draft, ObjectKind.DATABASE, statement.name)
    if statement.owner is not None:
        draft.add(elements.Owner(id_, statement.owner))


def check_schema_name(name: str) -> None:
    if name.startswith("pg_"):
        raise errors.ReservedName(name=name, detail='the prefix "pg_" is reserved for system schemas')


def is_taken(draft: Draft, kind: ObjectKind, name: str) -> bool:
    """Whether a schema or database of that name exists."""
    system = kind is ObjectKind.SCHEMA and name in _SYSTEM
    return system or name == ALWAYS[kind] or draft.directory.find_space(kind, name) is not None
