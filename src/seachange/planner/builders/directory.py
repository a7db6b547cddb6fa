"""Which name leads to what, in one database, as the draft has it.

**Invariant:** a name leads to one object. Tables, views, sequences and indexes share the names of their schema; types,
schemas and databases have names of their own.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from seachange.model.change import elements
from seachange.model.ids import DescriptorId, IndexId
from seachange.model.object_kind import ObjectKind

# Where the names of an object of that kind are kept: those of a schema, or all there are.
_RELATIONS = "relations"
_SPACES: dict[ObjectKind, str] = {
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


class Directory:
    def __init__(self, database: str) -> None:
        self._database = database
        self._found: dict[Place, FoundObject] = {}
        # Where the names of a table's indexes stand.
        self._indexes: dict[DescriptorId, dict[IndexId, Place]] = {}

    def find(self, schema: str, name: str) -> FoundObject | None:
        return self._found.get((_RELATIONS, schema, name))

    def find_type(self, schema: str, name: str) -> FoundObject | None:
        return self._found.get((_SPACES[ObjectKind.TYPE], schema, name))

    def find_space(self, kind: ObjectKind, name: str) -> FoundObject | None:
        """A schema or a database."""
        return self._found.get((_SPACES[kind], "", name))

    def names_in(self, schema: str) -> Container[str]:
        return _Taken(self._found, schema)

    def objects_in(self, schema: str) -> list[FoundObject]:
        """All but the indexes, which come and go with their tables."""
        return [
            found
            for (_, where, _), found in self._found.items()
            if where == schema and found.kind is not ObjectKind.INDEX
        ]

    def put(self, entry: elements.NamespaceElement) -> None:
        if self._is_ours(entry):
            self._found[_place(entry)] = FoundObject(entry.kind, entry.descriptor_id)

    def put_indexes(self, entry: elements.NamespaceElement, indexes: Iterable[tuple[IndexId, str]]) -> None:
        """Indexes of the table of this entry, with their names."""
        if self._is_ours(entry):
            for index_id, name in indexes:
                found = FoundObject(ObjectKind.INDEX, entry.descriptor_id, index_id)
                place = (_RELATIONS, entry.schema, name)
                self._found[place] = found
                self._indexes.setdefault(entry.descriptor_id, {})[index_id] = place

    def remove(self, entry: elements.NamespaceElement) -> None:
        found = self._found.get(_place(entry))
        if found is not None and found.id == entry.descriptor_id:
            del self._found[_place(entry)]
        for place in self._indexes.pop(entry.descriptor_id, {}).values():
            self._found.pop(place, None)

    def remove_index(self, index: elements.IndexName) -> None:
        place = self._indexes.get(index.table_id, {}).pop(index.index_id, None)
        if place is not None and self._found[place].index_id == index.index_id:
            del self._found[place]

    def _is_ours(self, entry: elements.NamespaceElement) -> bool:
        return entry.database in (self._database, "")


def _place(entry: elements.NamespaceElement) -> Place:
    return (_SPACES.get(entry.kind, _RELATIONS), entry.schema, entry.name)


class _Taken:
    """The names of the relations of one schema."""

    def __init__(self, found: dict[Place, FoundObject], schema: str) -> None:
        self._found = found
        self._schema = schema

    def __contains__(self, name: object) -> bool:
        return (_RELATIONS, self._schema, name) in self._found
