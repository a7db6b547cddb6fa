"""The catalog as the binder sees it: relations and types at the statement's snapshot.

**Invariant:** a plan that depends on what was found here is current only while the same is found again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from seachange import errors
from seachange.model.ids import DescriptorId
from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import EnumType, View
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.sql.bind.scope import BoundColumn, Columns
from seachange.sql.bind.types import BIGINT, BOOLEAN, BoundType, bound
from seachange.sql.compile.feed_calls import FEED
from seachange.sql.compile.system_relations import is_system, is_virtual_relation
from seachange.sql.compile.type_holes import find_enum
from seachange.sql.pgcatalog.facts import quote_name
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.system_columns import FEED_COLUMNS, SYSTEM_SCHEMA, SYSTEM_VIEWS
from seachange.sql.text.scope import GIVEN_SCHEMA
from seachange.values.types import Kind, SqlType

_SEQUENCE: Final = (
    BoundColumn("last_value", BIGINT),
    BoundColumn("log_cnt", BIGINT),
    BoundColumn("is_called", BOOLEAN),
)
_Relation: TypeAlias = Table | SequenceObject | View | None
_Names = tuple[str | None, str]


@dataclass(frozen=True, slots=True)
class Resolved:
    """What names meant when a statement was bound."""

    relations: tuple[tuple[_Names, _Relation], ...] = ()
    types: tuple[tuple[_Names, EnumType | None], ...] = ()

    def __deepcopy__(self, memo: object) -> Resolved:
        """Copies of a tree share what was found for it."""
        return self

    def is_current(self, port: TransactionPort, but: _Names | None = None) -> bool:
        """`but`: a relation that has been compared already."""
        for name, relation in self.relations:
            if name != but and not _is_same(_find_relation(port, *name), relation):
                return False
        return all(_find_type(port, *name) == found for name, found in self.types)


NOTHING_RESOLVED: Final = Resolved()


class PortCatalog:
    """Keeps what it was asked for, and what it found."""

    def __init__(self, port: TransactionPort) -> None:
        self._port = port
        self._relations: dict[_Names, _Relation] = {}
        self._types: dict[_Names, EnumType | None] = {}

    @property
    def resolved(self) -> Resolved:
        return Resolved(tuple(self._relations.items()), tuple(self._types.items()))

    def columns(self, schema: str | None, name: str) -> Columns:
        if is_system(schema, name):
            return [BoundColumn(column, bound(type_)) for column, type_ in SYSTEM_VIEWS[name].items()]
        if (schema, name) == (SYSTEM_SCHEMA, FEED):
            return [BoundColumn(column, bound(type_)) for column, type_ in FEED_COLUMNS.items()]
        if schema == GIVEN_SCHEMA or is_virtual_relation(schema, name):
            return None
        if (schema, name) not in self._relations:
            self._relations[schema, name] = _find_relation(self._port, schema, name)
        return relation_columns(self._relations[schema, name])

    def user_type(self, schema: str | None, name: str) -> BoundType | None:
        found = self._types[schema, name] = _find_type(self._port, schema, name)
        return bound(SqlType(Kind.TEXT, enum=found.id)) if found is not None else None

    def enum_name(self, number: int) -> str:
        found = self._port.schema.object_by_id(DescriptorId(number))
        if not isinstance(found, EnumType):
            return str(number)
        is_visible = _find_type(self._port, None, found.name) == found
        return quote_name(found.name) if is_visible else f"{quote_name(found.schema)}.{quote_name(found.name)}"


@dataclass(frozen=True, slots=True)
class KnownRelations:
    """Relations whose columns are known beforehand: those of a view, or rows that a statement passes in."""

    found: Mapping[tuple[str | None, str], Sequence[BoundColumn] | None]

    def columns(self, schema: str | None, name: str) -> Columns:
        return self.found.get((schema, name))

    def user_type(self, schema: str | None, name: str) -> BoundType | None:
        return None

    def enum_name(self, number: int) -> str:
        return str(number)


def relation_columns(relation: object) -> Sequence[BoundColumn] | None:
    match relation:
        case Table():
            return [
                BoundColumn(column.name, bound(column.type), (relation, column)) for column in relation.visible_columns
            ]
        case View() if len(relation.types) == len(relation.columns):
            return [BoundColumn(*each) for each in zip(relation.columns, map(bound, relation.types), strict=True)]
        case SequenceObject():
            return _SEQUENCE
        case _:
            return None


def _is_same(first: _Relation, second: _Relation) -> bool:
    return first is second or first == second


def _find_relation(port: TransactionPort, schema: str | None, name: str) -> _Relation:
    try:
        return port.names.relation(schema, name)
    except errors.Error:
        # The statement fails where it reads the relation.
        return None


def _find_type(port: TransactionPort, schema: str | None, name: str) -> EnumType | None:
    try:
        return find_enum(RelationName(schema, name), port)
    except errors.Error:
        return None
