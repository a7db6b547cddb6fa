"""The descriptors that a node knows, at every sequence that one of its snapshots may have.

**Invariant:** `at(S)` is the schema as of S: a transaction plans with what its snapshot sees, never with a newer cache.

**Invariant:** `within(database)` has the descriptors of one database, and the databases and roles, which are shared.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter

from seachange.engine.replica.contents import Change, Contents, contents_of, follow_contents
from seachange.model.ids import DescriptorId, IndexId, Seq
from seachange.model.schema.actor import Actor, find_roles
from seachange.model.schema.descriptor import Index, Table
from seachange.model.schema.objects import DEFAULT_DATABASE, Descriptor, PublishedDescriptor, Role
from seachange.model.schema.references import Reference, references_to
from seachange.model.schema.rights import SessionIdentity, find_actor


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """All live descriptors as of one sequence; tables are kept separately."""

    seq: Seq
    by_id: dict[DescriptorId, Table] = field(default_factory=dict)
    objects: dict[DescriptorId, Descriptor] = field(default_factory=dict)
    # The tables with foreign keys to each table, also by keys that it does not have yet.
    children: dict[DescriptorId, frozenset[DescriptorId]] = field(default_factory=dict)
    # The foreign keys that refer to each table, with their own tables.
    references: dict[DescriptorId, tuple[Reference, ...]] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=dict)
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
            every = (*self.by_id.values(), *self.objects.values())
            found = self._within[database] = contents_of(every, database)
        return found

    def after(self, seq: Seq, changes: Iterable[Change]) -> SchemaVersion:
        """The version that follows this one, at the cost of the changes and of copies."""
        changes = tuple(changes)
        by_id, objects = dict(self.by_id), dict(self.objects)
        for before, after in changes:
            if after is None and before is not None:
                by_id.pop(before.id, None)
                objects.pop(before.id, None)
            elif isinstance(after, Table):
                by_id[after.id] = after
            elif after is not None:
                objects[after.id] = after
        children, references = _follow_references(self, by_id, changes)
        has_roles = any(isinstance(each, Role) for change in changes for each in change)
        roles, actors = (find_roles(objects.values()), {}) if has_roles else (self.roles, self._actors)
        within = {name: follow_contents(contents, changes) for name, contents in tuple(self._within.items())}
        return SchemaVersion(seq, by_id, objects, children, references, roles, within, actors)

    def forget_contents(self) -> None:
        """Few sessions will ask again."""
        self._within.clear()


def schema_of(seq: Seq, descriptors: Iterable[Descriptor]) -> SchemaVersion:
    return SchemaVersion(seq).after(seq, ((None, descriptor) for descriptor in descriptors))


def _follow_references(
    schema: SchemaVersion, by_id: dict[DescriptorId, Table], changes: Iterable[Change]
) -> tuple[dict[DescriptorId, frozenset[DescriptorId]], dict[DescriptorId, tuple[Reference, ...]]]:
    tables = [table for change in changes for table in change if isinstance(table, Table)]
    # The changed tables with foreign keys to each table, before or after.
    referring: dict[DescriptorId, set[DescriptorId]] = {t.id: set() for t in tables if t.id in schema.children}
    for table in tables:
        for key in table.foreign_keys:
            referring.setdefault(key.parent, set()).add(table.id)
    if not referring:
        return schema.children, schema.references
    children, references = dict(schema.children), dict(schema.references)
    for parent, changed in referring.items():
        now = {id_ for id_ in changed if id_ in by_id and any(k.parent == parent for k in by_id[id_].foreign_keys)}
        children[parent] = (children.get(parent, frozenset()) - changed) | now
        references[parent] = ()
        if parent in by_id:
            references[parent] = references_to((by_id[id_] for id_ in sorted(children[parent])), by_id[parent])
        if not children[parent]:
            del children[parent], references[parent]
    return children, references


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
        newest = self.newest
        following = newest.after(seq, ((newest.find(change.id), change.body) for change in changes))
        self._history = (*self._history, following)
        newest.forget_contents()

    def forget_below(self, mark: Seq) -> None:
        keep = bisect_right(self._history, mark, key=attrgetter("seq")) - 1
        if keep > 0:
            self._history = self._history[keep:]
