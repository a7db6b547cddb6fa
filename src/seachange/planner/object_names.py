"""Which name leads to what in one database, by its descriptors.

**Invariant:** a name leads to one object. Tables, views, sequences and indexes share the names of their schema; types,
schemas and databases have names of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from seachange.model.change.elements import NamespaceElement
from seachange.model.ids import DescriptorId, IndexId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor
from seachange.model.states import State
from seachange.planner.object_parts import namespace_of

# Where the names of an object of that kind are kept: those of a schema, or all there are.
RELATIONS = "relations"
SPACES: dict[ObjectKind, str] = {
    ObjectKind.TYPE: "types",
    ObjectKind.SCHEMA: "schemas",
    ObjectKind.DATABASE: "databases",
}
# The space, the schema if there is one, and the name.
Place = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class FoundObject:
    """What a name leads to. Of an index, `id` is its table's."""

    kind: ObjectKind
    id: DescriptorId
    index_id: IndexId | None = None


@dataclass(frozen=True, slots=True)
class ObjectNames:
    database: str
    found: dict[Place, FoundObject] = field(default_factory=dict)
    # Where the names of a table's indexes are.
    indexes: dict[DescriptorId, dict[IndexId, Place]] = field(default_factory=dict)

    def is_ours(self, entry: NamespaceElement) -> bool:
        return entry.database in (self.database, "")

    def find_space(self, kind: ObjectKind, name: str) -> DescriptorId | None:
        """A schema or a database."""
        found = self.found.get((SPACES[kind], "", name))
        return found.id if found is not None else None

    def put(self, descriptor: Descriptor) -> None:
        entry = namespace_of(descriptor)
        if not self.is_ours(entry):
            return
        self.found[place_of(entry)] = FoundObject(entry.kind, entry.descriptor_id)
        if isinstance(descriptor, Table):
            places = {index.id: (RELATIONS, entry.schema, index.name) for index in descriptor.indexes}
            self.indexes[descriptor.id] = places
            # One that is to take the place of another has its name already, which leads to the other until then.
            for index in sorted(descriptor.indexes, key=lambda index: index.state is State.PUBLIC):
                self.found[places[index.id]] = FoundObject(ObjectKind.INDEX, descriptor.id, index.id)

    def remove(self, descriptor: Descriptor) -> None:
        for place in (place_of(namespace_of(descriptor)), *self.indexes.pop(descriptor.id, {}).values()):
            if place in self.found and self.found[place].id == descriptor.id:
                del self.found[place]


def names_of(descriptors: Iterable[Descriptor], database: str) -> ObjectNames:
    names = ObjectNames(database)
    for descriptor in descriptors:
        names.put(descriptor)
    return names


def follow_names(names: ObjectNames, changes: Iterable[tuple[Descriptor | None, Descriptor | None]]) -> ObjectNames:
    """The names after changes, each a descriptor before and after. All names that go do so first: two objects may swap
    theirs."""
    changes = tuple(changes)
    after = ObjectNames(names.database, dict(names.found), dict(names.indexes))
    for before, _ in changes:
        if before is not None:
            after.remove(before)
    for _, descriptor in changes:
        if descriptor is not None:
            after.put(descriptor)
    return after


def place_of(entry: NamespaceElement) -> Place:
    return (SPACES.get(entry.kind, RELATIONS), entry.schema, entry.name)
