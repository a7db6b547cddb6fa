"""The descriptors that a node knows, at every sequence that one of its snapshots may have.

**Invariant:** `at(S)` is the schema as of S: a transaction plans with what its snapshot sees, never with a newer cache.

**Invariant:** `within(database)` has the descriptors of one database, and the databases and roles, which are shared.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter

from seachange.model.ids import DescriptorId, IndexId, Seq
from seachange.model.schema.actor import Actor, find_roles
from seachange.model.schema.descriptor import Index, Table
from seachange.model.schema.objects import (
    DEFAULT_DATABASE,
    Descriptor,
    EnumType,
    PublishedDescriptor,
    Role,
    Schema,
    Sequence,
    View,
    is_within,
)
from seachange.model.schema.references import Reference, references_to
from seachange.model.schema.rights import SessionIdentity, find_actor

Relation = Table | Sequence | View


@dataclass(frozen=True, slots=True)
class Contents:
    """The descriptors that a session of one database sees: those in it, and those that all databases share."""

    database: str
    by_id: dict[DescriptorId, Table]
    objects: dict[DescriptorId, Descriptor]
    by_name: dict[tuple[str, str], Table]
    # Tables, sequences and views, by schema and name.
    relations: dict[tuple[str, str], Relation]
    # The schemas that have a descriptor, by name.
    schemas: dict[str, Schema]
    has_enums: bool


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """All live descriptors as of one sequence; tables are kept separately."""

    seq: Seq
    by_id: dict[DescriptorId, Table]
    objects: dict[DescriptorId, Descriptor]
    # The foreign keys that refer to each table, with their own tables.
    references: dict[DescriptorId, tuple[Reference, ...]]
    roles: dict[str, Role]
    # Caches.
    _within: dict[str, Contents] = field(default_factory=dict, compare=False, repr=False)
    _actors: dict[SessionIdentity, Actor] = field(default_factory=dict, compare=False, repr=False)

    def find(self, id_: DescriptorId) -> Descriptor | None:
        return self.by_id.get(id_) or self.objects.get(id_)

    def actor(self, identity: SessionIdentity) -> Actor:
        """Raises 42501 if there is no such role."""
        found = self._actors.get(identity)
        if found is None:
            found = self._actors[identity] = find_actor(identity, self.roles)
        return found

    def within(self, database: str = DEFAULT_DATABASE) -> Contents:
        found = self._within.get(database)
        if found is None:
            # Two threads may compute the same value.
            found = self._within[database] = _contents(self, database)
        return found


def schema_of(seq: Seq, descriptors: Iterable[Descriptor]) -> SchemaVersion:
    by_id: dict[DescriptorId, Table] = {}
    objects: dict[DescriptorId, Descriptor] = {}
    for descriptor in descriptors:
        if isinstance(descriptor, Table):
            by_id[descriptor.id] = descriptor
        else:
            objects[descriptor.id] = descriptor
    parents = {key.parent for table in by_id.values() for key in table.foreign_keys}
    references = {id_: references_to(by_id.values(), by_id[id_]) for id_ in parents if id_ in by_id}
    return SchemaVersion(seq, by_id, objects, references, find_roles(objects.values()))


def _contents(schema: SchemaVersion, database: str) -> Contents:
    by_id = {id_: table for id_, table in schema.by_id.items() if table.database == database}
    objects = {id_: o for id_, o in schema.objects.items() if is_within(o, database)}
    by_name = {(table.schema, table.name): table for table in by_id.values()}
    others = {(o.schema, o.name): o for o in objects.values() if isinstance(o, Sequence | View)}
    named = {o.name: o for o in objects.values() if isinstance(o, Schema)}
    has_enums = any(isinstance(o, EnumType) for o in objects.values())
    return Contents(database, by_id, objects, by_name, {**by_name, **others}, named, has_enums)


def _has_same_key(before: Table, table: Table) -> bool:
    key = before.primary.key
    if key != table.primary.key:
        return False
    return all(before.column_by_id[column].type == table.column_by_id[column].type for column in key)


class SchemaHistory:
    """The schemas since the node's oldest snapshot, oldest first. Replaced as a whole, so that readers need no lock."""

    def __init__(self, first: SchemaVersion) -> None:
        self._history: tuple[SchemaVersion, ...] = (first,)

    @property
    def newest(self) -> SchemaVersion:
        return self._history[-1]

    @property
    def oldest_seq(self) -> Seq:
        return self._history[0].seq

    def at(self, snapshot: Seq) -> SchemaVersion:
        history = self._history
        return history[bisect_right(history, snapshot, key=attrgetter("seq")) - 1]

    def last_known(self, id_: DescriptorId) -> Descriptor | None:
        """The newest known version of a descriptor, even if it has been dropped."""
        return next((found for s in reversed(self._history) if (found := s.find(id_)) is not None), None)

    def versions(self, table_id: DescriptorId, after: int) -> list[Table]:
        """The known versions of a table above `after`, oldest first."""
        found = [schema.by_id[table_id] for schema in self._history if table_id in schema.by_id]
        return list({table.version: table for table in found if table.version > after}.values())

    def later(self, table_id: DescriptorId, version: int) -> list[tuple[Seq, Table | None]]:
        """The known changes of a table after a version, oldest first; None where it was dropped."""
        found: list[tuple[Seq, Table | None]] = []
        is_there = False
        for schema in self._history:
            table = schema.by_id.get(table_id)
            if table is None and is_there:
                found.append((schema.seq, None))
            elif table is not None and table.version > version:
                found.append((schema.seq, table))
                version = table.version
            is_there = table is not None
        return found

    def primaries(self, table_id: DescriptorId, after: Seq, upto: Seq) -> list[tuple[Seq, IndexId | None]]:
        """The primary indexes of a table in (after, upto], each with the sequence at which it became the primary one;
        None where the table was dropped."""
        found: list[tuple[Seq, IndexId | None]] = []
        for schema in self._history:
            table = schema.by_id.get(table_id)
            index_id = table.primary.id if table is not None else None
            if after < schema.seq <= upto and (not found or found[-1][1] != index_id):
                found.append((schema.seq, index_id))
        return found

    def replaced_primaries(self, table: Table) -> list[Index]:
        """The primary indexes that a table had before, with the key that it has now: transactions that began with one
        of them have locked rows by it. Oldest first."""
        found: dict[IndexId, Index] = {}
        for schema in self._history if len(self._history) > 1 else ():
            before = schema.by_id.get(table.id)
            if before is None or before.version >= table.version:
                continue
            if before.primary.id not in table.index_by_id and _has_same_key(before, table):
                found[before.primary.id] = before.primary
        return list(found.values())

    def unchanged_since(self, ids: Iterable[DescriptorId]) -> Seq:
        """The known sequence since which these descriptors are unchanged."""
        history, wanted = self._history, tuple(ids)
        since = newest = history[-1]
        for schema in reversed(history):
            if any(schema.by_id.get(id_) is not newest.by_id.get(id_) for id_ in wanted):
                break
            since = schema
        return since.seq

    def apply(self, seq: Seq, changes: Iterable[PublishedDescriptor]) -> None:
        descriptors: dict[DescriptorId, Descriptor] = {**self.newest.by_id, **self.newest.objects}
        for change in changes:
            if change.body is None:
                descriptors.pop(change.id, None)
            else:
                descriptors[change.id] = change.body
        self._history = (*self._history, schema_of(seq, descriptors.values()))

    def forget_below(self, mark: Seq) -> None:
        keep = bisect_right(self._history, mark, key=attrgetter("seq")) - 1
        if keep > 0:
            self._history = self._history[keep:]
