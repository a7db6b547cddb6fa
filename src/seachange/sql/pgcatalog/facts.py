"""The schema as of a statement, by OID: the source of all catalog relations and functions.

The OID of an object is the id of its descriptor or index plus an offset above PostgreSQL's own; it is the same in every
session and process, and never reused. Parts of a table have OIDs made of the table's id and their own.

**Invariant:** only PUBLIC elements are listed, and constraints that were added NOT VALID.
**Invariant:** the catalogs are pure functions of the descriptors as of the statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final
from zlib import crc32

from seachange.model.ids import ColumnId, DescriptorId, IndexId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.access import DEFAULT_ROLE, PUBLIC_ROLE, UNSAID_DATABASE, UNSAID_SCHEMA, Access
from seachange.model.schema.actor import ROOT, Actor, find_roles
from seachange.model.schema.constraint import Check, ForeignKey
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.objects import (
    DEFAULT_DATABASE,
    DEFAULT_SCHEMA,
    Database,
    Descriptor,
    EnumType,
    Role,
    Schema,
    View,
    view_of,
)
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.model.schema.temporary import is_temporary
from seachange.model.states import State
from seachange.sql.pgcatalog.builtin import (
    BOOTSTRAP_ROLE_OID,
    CATALOG_OID,
    DATABASE_OID,
    INFORMATION_OID,
    INFORMATION_SCHEMA,
    PG_CATALOG,
    PUBLIC_OID,
    TYPE_BY_OID,
)
from seachange.values.types import FIRST_ARRAY_OID, FIRST_USER_OID, MOMENTS, NAMES, Kind, SqlType

Relation = Table | View | SequenceObject
# Rows of a catalog relation: values by column, without those that have the default.
Rows = Iterator[dict[str, Any]]
# What a part of the facts has of the whole.
_FOUND_AMONG_ALL: Final = (
    *("by_id", "relation_by_name", "relation_by_oid", "namespaces", "namespace_oids", "databases", "role_objects"),
    *("roles", "role_names", "path", "shadowed", "parents", "_attributes", "_numbers"),
)
# pg_catalog and one schema: none of its relations has the name of one before it.
_PATH_PLAIN: Final = 2
# The first OID of parts of tables.
_PARTS: Final = 1 << 31
_PART_MAX: Final = 1 << 8
_OWNER_MAX: Final = 1 << 23


def object_oid(id_: DescriptorId | IndexId) -> int:
    return FIRST_USER_OID + id_


def array_oid(id_: DescriptorId) -> int:
    return FIRST_ARRAY_OID + id_


def part_oid(owner: int, part: int) -> int:
    """
    >>> part_oid(17, 1) != part_oid(1, 17)
    True
    """
    if part < _PART_MAX and owner < _OWNER_MAX:
        return _PARTS | (owner << 8) | part
    return _PARTS | (crc32(f"{owner}.{part}".encode()) & (_PARTS - 1))


def type_modifier(type_: SqlType) -> int:
    """
    >>> type_modifier(SqlType(Kind.NUMERIC, 10, 2)), type_modifier(SqlType(Kind.VARCHAR, length=5))
    (655366, 9)
    """
    if type_.element is not None:
        return type_modifier(type_.element)
    if type_.kind is Kind.NUMERIC and type_.precision:
        return ((type_.precision << 16) | type_.scale) + 4
    if type_.moment_digits is not None:
        return type_.moment_digits
    return type_.length + 4 if type_.length else -1


@dataclass(frozen=True, slots=True)
class PgAttribute:
    """A column of a relation, at its position among the visible ones."""

    number: int
    name: str
    type: SqlType
    column: Column | None = None

    @property
    def not_null(self) -> bool:
        return self.column is not None and not self.column.nullable and self.column.not_null is State.PUBLIC


@dataclass(frozen=True, slots=True)
class PgNamespace:
    oid: int
    name: str
    access: Access = Access()  # noqa: RUF009 - a value


def is_declared(table: Table) -> bool:
    """Whether the primary key was declared, rather than being the hidden row number."""
    return not any(table.column_by_id[c].hidden for c in table.primary.key)


@dataclass(frozen=True)
class Facts:
    """Not slotted: derived values are cached."""

    tables: tuple[Table, ...]
    objects: tuple[Descriptor, ...]
    database: str
    user: str
    search_path: tuple[str, ...]
    # The role of the statement: information_schema lists what the role has privileges on.
    actor: Actor = ROOT

    @cached_property
    def views(self) -> tuple[View, ...]:
        return tuple(o for o in self.objects if isinstance(o, View))

    @cached_property
    def materialized(self) -> tuple[View, ...]:
        """The materialized views, which are tables too."""
        return tuple(view for table in self.tables if (view := view_of(table)) is not None)

    @cached_property
    def plain_tables(self) -> tuple[Table, ...]:
        return tuple(table for table in self.tables if table.materialized is None)

    @cached_property
    def sequences(self) -> tuple[SequenceObject, ...]:
        return tuple(o for o in self.objects if isinstance(o, SequenceObject))

    @cached_property
    def enums(self) -> tuple[EnumType, ...]:
        return tuple(o for o in self.objects if isinstance(o, EnumType))

    @cached_property
    def relations(self) -> tuple[Relation, ...]:
        return (*self.tables, *self.views, *self.sequences)

    @cached_property
    def by_id(self) -> dict[int, Descriptor]:
        return {d.id: d for d in (*self.tables, *self.objects)}

    @cached_property
    def relation_by_name(self) -> dict[tuple[str, str], Relation]:
        return {(r.schema, r.name): r for r in self.relations}

    @cached_property
    def indexes(self) -> tuple[tuple[Table, Index], ...]:
        return tuple((table, index) for table in self.tables for index in shown_indexes(table))

    @cached_property
    def index_by_oid(self) -> dict[int, tuple[Table, Index]]:
        return {object_oid(index.id): (table, index) for table, index in self.indexes}

    @cached_property
    def relation_by_oid(self) -> dict[int, Relation]:
        return {object_oid(r.id): r for r in self.relations}

    @cached_property
    def constraint_by_oid(self) -> dict[int, tuple[Table, Index | Check | ForeignKey]]:
        return {constraint_oid(t, c): (t, c) for t in self.tables for c in shown_constraints(t)}

    @cached_property
    def namespaces(self) -> tuple[PgNamespace, ...]:
        created = [PgNamespace(object_oid(o.id), o.name, o.access) for o in self.objects if isinstance(o, Schema)]
        built_in = [PgNamespace(CATALOG_OID, PG_CATALOG), PgNamespace(INFORMATION_OID, INFORMATION_SCHEMA)]
        if not any(n.name == DEFAULT_SCHEMA for n in created):
            built_in.append(PgNamespace(PUBLIC_OID, DEFAULT_SCHEMA, UNSAID_SCHEMA))
        own = {r.schema for r in self.relations if is_temporary(r.schema)}
        temporary = [PgNamespace(_PARTS | (crc32(name.encode()) & (_PARTS - 1)), name) for name in own]
        return (*built_in, *created, *temporary)

    def owner_oid(self, access: Access) -> int:
        return self.roles[access.owner]

    @cached_property
    def namespace_oids(self) -> dict[str, int]:
        return {n.name: n.oid for n in self.namespaces}

    @cached_property
    def databases(self) -> tuple[tuple[int, str, Access], ...]:
        found = [(object_oid(o.id), o.name, o.access) for o in self.objects if isinstance(o, Database)]
        if not any(name == DEFAULT_DATABASE for _, name, _ in found):
            found.insert(0, (DATABASE_OID, DEFAULT_DATABASE, UNSAID_DATABASE))
        return tuple(found)

    @cached_property
    def role_objects(self) -> dict[str, Role]:
        return find_roles(self.objects)

    @cached_property
    def roles(self) -> dict[str, int]:
        """OIDs of all roles by name, including dropped roles that are still named somewhere."""
        found = {DEFAULT_ROLE: BOOTSTRAP_ROLE_OID}
        found |= {name: object_oid(r.id) for name, r in self.role_objects.items() if name != DEFAULT_ROLE}
        named = {self.user}
        for descriptor in (*self.tables, *self.objects):
            named.add(descriptor.access.owner)
            named |= {granted.role for granted in descriptor.access.privileges}
        for name in sorted(named - {*found, PUBLIC_ROLE}):
            found[name] = _PARTS | (crc32(f"role:{name}".encode()) & (_PARTS - 1))
        return found

    @cached_property
    def role_names(self) -> dict[int, str]:
        return {oid: name for name, oid in self.roles.items()}

    @cached_property
    def path(self) -> tuple[str, ...]:
        """The existing schemas of the search path, pg_catalog first."""
        return (PG_CATALOG, *(name for name in self.search_path if name in self.namespace_oids and name != PG_CATALOG))

    @cached_property
    def shadowed(self) -> frozenset[tuple[str, str]]:
        """The relations that a schema of the path has, and an earlier one too."""
        if len(self.path) <= _PATH_PLAIN:
            return frozenset()
        found = self.relation_by_name
        return frozenset(
            (schema, name)
            for schema, name in found
            if schema in self.path and any((each, name) in found for each in self.path[: self.path.index(schema)])
        )

    @cached_property
    def parents(self) -> frozenset[DescriptorId]:
        """The tables to which foreign keys refer."""
        return frozenset(key.parent for table in self.tables for key in table.foreign_keys)

    def attributes(self, relation: Relation) -> tuple[PgAttribute, ...]:
        found = self._attributes.get(relation.id)
        if found is None:
            found = self._attributes[relation.id] = tuple(_attributes(relation))
        return found

    @cached_property
    def _attributes(self) -> dict[int, tuple[PgAttribute, ...]]:
        """Of the relations that were asked for."""
        return {}

    def number(self, table: Table, column: ColumnId) -> int:
        """The position of a column; 0 for a key that is an expression."""
        found = self._numbers.get(table.id)
        if found is None:
            numbered = enumerate(table.visible_columns, 1)
            found = self._numbers[table.id] = {column.id: number for number, column in numbered}
        return found.get(column, 0)

    @cached_property
    def _numbers(self) -> dict[int, dict[int, int]]:
        return {}

    def is_visible(self, relation: Relation | EnumType) -> bool:
        """Whether its unqualified name finds it."""
        for schema in self.path:
            if schema == relation.schema:
                return True
            hidden_by = self.relation_by_name.get((schema, relation.name))
            if hidden_by is not None and not isinstance(relation, EnumType):
                return False
        return False

    def find_relation(self, schema: str | None, name: str) -> int | None:
        """The OID of a relation or index."""
        for each in (schema,) if schema is not None else self.path:
            found = self.relation_by_name.get((each, name))
            if found is not None:
                return object_oid(found.id)
            for table, index in self.indexes:
                if (table.schema, index.name) == (each, name):
                    return object_oid(index.id)
        return None

    def part(self, tables: tuple[Table, ...], objects: tuple[Descriptor, ...]) -> Facts:
        """Lists only these, and finds what they refer to among all."""
        part = replace(self, tables=tables, objects=objects)
        vars(part).update((name, getattr(self, name)) for name in _FOUND_AMONG_ALL)
        return part

    def comment(self, access: Access, kind: ObjectKind | None = None, part: int = 0) -> str | None:
        wanted = None if kind is None else (kind, part)
        return next((c.text for c in access.comments if c.part == wanted), None)


def shown_indexes(table: Table) -> Iterator[Index]:
    if is_declared(table):
        yield table.primary
    yield from (index for index in table.secondary if index.state is State.PUBLIC)


def shown_constraints(table: Table) -> Iterator[Index | Check | ForeignKey]:
    yield from (index for index in shown_indexes(table) if index.constraint or index.id == table.primary.id)
    yield from (check for check in table.checks if _is_shown(table, check))
    yield from (key for key in table.foreign_keys if _is_shown(table, key))


def _is_shown(table: Table, constraint: Check | ForeignKey) -> bool:
    """A NOT VALID constraint may itself be under construction, for a column that replaces another."""
    if constraint.state is State.PUBLIC:
        return True
    late = constraint.not_valid and constraint.state is State.ENFORCED
    return late and all(table.column_by_id[c].state is State.PUBLIC for c in constraint.columns)


def constraint_oid(table: Table, constraint: Index | Check | ForeignKey) -> int:
    return object_oid(constraint.id) if isinstance(constraint, Index) else part_oid(table.id, constraint.id)


_SEQUENCE_COLUMNS: Final = (("last_value", Kind.BIGINT), ("log_cnt", Kind.BIGINT), ("is_called", Kind.BOOLEAN))


def _attributes(relation: Relation) -> Iterator[PgAttribute]:
    match relation:
        case Table():
            for number, column in enumerate(relation.visible_columns, 1):
                yield PgAttribute(number, column.name, column.type, column)
        case View():
            types: Sequence[SqlType] = relation.types or (SqlType(Kind.TEXT),) * len(relation.columns)
            for number, (name, type_) in enumerate(zip(relation.columns, types, strict=True), 1):
                yield PgAttribute(number, name, type_)
        case SequenceObject():
            for number, (name, kind) in enumerate(_SEQUENCE_COLUMNS, 1):
                yield PgAttribute(number, name, SqlType(kind))


def type_name(facts: Facts, oid: int, modifier: int | None = None) -> str:
    """The result of format_type.

    >>> type_name(Facts((), (), "d", "u", ()), 1700, 655366)
    'numeric(10,2)'
    """
    created = facts.by_id.get(oid - FIRST_USER_OID)
    if isinstance(created, EnumType | Table | View):
        name = quote_name(created.name)
        return name if created.schema in facts.path else f"{quote_name(created.schema)}.{name}"
    element = facts.by_id.get(oid - FIRST_ARRAY_OID)
    if isinstance(element, EnumType):
        return type_name(facts, object_oid(element.id)) + "[]"
    known = TYPE_BY_OID.get(oid)
    if known is None:
        return "???" if oid else "-"
    if known.element and known.name.startswith("_"):
        return type_name(facts, known.element, modifier) + "[]"
    if modifier is None or modifier < 0:
        return known.formatted if oid != NAMES_BPCHAR or modifier is None else "bpchar"
    if oid in _MOMENT_OIDS:
        first, space, rest = known.formatted.partition(" ")
        return f"{first}({modifier}){space}{rest}"
    return known.formatted + _modifier_text(oid, modifier)


NAMES_BPCHAR: Final = 1042
_NUMERIC_OID: Final = NAMES[Kind.NUMERIC].oid
_MOMENT_OIDS: Final = tuple(NAMES[kind].oid for kind in MOMENTS)
_LENGTHS: Final = (NAMES_BPCHAR, NAMES[Kind.VARCHAR].oid)


def _modifier_text(oid: int, modifier: int) -> str:
    if oid == _NUMERIC_OID:
        return f"({(modifier - 4) >> 16},{(modifier - 4) & 0xFFFF})"
    return f"({modifier - 4})" if oid in _LENGTHS else ""


def quote_name(name: str) -> str:
    """
    >>> quote_name("a_b"), quote_name("A b"), quote_name("order")
    ('a_b', '"A b"', '"order"')
    """
    plain = name.isascii() and name.replace("_", "a").isalnum() and name == name.lower() and not name[:1].isdigit()
    return name if plain and name not in _RESERVED else '"' + name.replace('"', '""') + '"'


# Words that must be quoted as names.
_WORDS: Final = """
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case cast
    char character check coalesce collate collation column concurrently constraint create cross current_catalog
    current_date current_role current_schema current_time current_timestamp current_user dec decimal default deferrable
    desc distinct do else end except exists extract false fetch float for foreign freeze from full grant greatest group
    grouping having ilike in initially inner inout int integer intersect interval into is isnull join lateral leading
    least left like limit localtime localtimestamp national natural nchar none normalize not notnull null nullif numeric
    offset on only or order out outer overlaps overlay placing position precision primary real references returning
    right row select session_user setof similar smallint some substring symmetric system_user table tablesample then
    time timestamp to trailing treat trim true union unique user using values varchar variadic verbose when where window
    with xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize
    xmltable
"""
_RESERVED: Final = frozenset(_WORDS.split())
