"""Database scope: the planner sees the session's database, and others only for statements about databases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from seachange import errors
from seachange.model.ids import DescriptorId
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import UNPLANNED, Database, Descriptor
from seachange.model.statements import DdlStatement, DropObjects, RenameObject
from seachange.sql.parsing.parse import Parsed, TreeStatement
from seachange.sql.port.port import TransactionPort

# What names no relation.
_PLAIN = (str, int, type(None))


def tables_of(statements: Iterable[DdlStatement], port: TransactionPort) -> tuple[Table, ...]:
    return port.schema.every_table() if any(map(_takes_whole, statements)) else port.names.tables()


def descriptors_of(statements: Iterable[DdlStatement], port: TransactionPort) -> dict[DescriptorId, Descriptor]:
    statements = tuple(statements)
    objects = port.schema.every_object() if any(map(_takes_whole, statements)) else port.schema.objects()
    every = (*tables_of(statements, port), *objects)
    return {found.id: found for found in every if not isinstance(found, UNPLANNED)}


def hold_database(statement: DdlStatement, known: Iterable[Descriptor], port: TransactionPort) -> None:
    """Takes an exclusive lock on a database that is dropped or renamed."""
    names = {name.name for name in relations_named(statement)} if _takes_whole(statement) else set()
    for found in known:
        if isinstance(found, Database) and found.name in names:
            port.locks.hold_alone(found)


def check_named_databases(statement: Parsed, port: TransactionPort) -> None:
    if isinstance(statement, TreeStatement):
        for name in statement.databases:
            check_database(name, port)
        return
    for relation in relations_named(statement):
        check_database(relation.database, port)


def relations_named(value: object) -> Iterator[RelationName]:
    """All relation names in a statement, at any depth."""
    if isinstance(value, RelationName):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from relations_named(item)
    else:
        kind: Any = type(value)
        for name in _field_names(kind):
            held = getattr(value, name)
            if not isinstance(held, _PLAIN):
                yield from relations_named(held)


@cache
def _field_names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def check_database(name: str | None, port: TransactionPort) -> None:
    """Rejects a three-part name of another database than the session's."""
    if name is not None and name != port.statement.session.database:
        raise errors.FeatureNotSupported(
            feature=f"a cross-database reference to {name}", instead="Connect to that database."
        )


def _takes_whole(statement: DdlStatement) -> bool:
    """Whether the statement may change any object of a database."""
    return isinstance(statement, DropObjects | RenameObject) and statement.kind is ObjectKind.DATABASE
