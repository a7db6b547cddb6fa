"""Database scope: the planner sees the session's database, and others only for statements about databases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from seachange import errors
from seachange.model.ids import DescriptorId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import UNPLANNED, Database, Descriptor
from seachange.model.statements import DdlStatement, DropObjects, RenameObject
from seachange.planner.known_schema import KnownSchema, TableSize
from seachange.sql.parsing.parse import Parsed, TreeStatement
from seachange.sql.port.port import TransactionPort

# What names no relation.
_PLAIN = (str, int, type(None))


def known_schema(
    statements: Iterable[DdlStatement],
    port: TransactionPort,
    sizes_of: Callable[[Mapping[DescriptorId, Descriptor]], Mapping[TableId, TableSize]],
) -> KnownSchema:
    """What the planner is to know of the session's database, or of all of them."""
    is_whole = any(map(_takes_whole, statements))
    descriptors, names, users = (_whole_schema(port), None, None) if is_whole else port.schema.planned
    path, database = port.statement.search_path, port.statement.session.database
    return KnownSchema(descriptors, sizes_of(descriptors), (), path, database, names=names, users=users)


def _whole_schema(port: TransactionPort) -> Mapping[DescriptorId, Descriptor]:
    every = (*port.schema.every_table(), *port.schema.every_object())
    return {found.id: found for found in every if not isinstance(found, UNPLANNED)}


def table_of(descriptors: Mapping[DescriptorId, Descriptor], table_id: TableId) -> Table:
    """Raises KeyError if it is none."""
    found = descriptors[table_id]
    if not isinstance(found, Table):
        raise KeyError(table_id)
    return found


def hold_database(statement: DdlStatement, known: Iterable[Descriptor], port: TransactionPort) -> None:
    """Takes an exclusive lock on a database that is dropped or renamed."""
    if not _takes_whole(statement):
        return
    names = {name.name for name in relations_named(statement)}
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
