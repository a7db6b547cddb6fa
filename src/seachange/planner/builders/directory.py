"""Which name leads to what, in one database, as the draft has it."""

from __future__ import annotations

from collections.abc import Container, Iterable

from seachange.model.change import elements
from seachange.model.ids import IndexId
from seachange.model.object_kind import ObjectKind
from seachange.planner.object_names import RELATIONS, SPACES, FoundObject, ObjectNames, Place, place_of


class Directory:
    def __init__(self, names: ObjectNames) -> None:
        self._is_ours = names.is_ours
        self._found = dict(names.found)
        # Where the names of a table's indexes are. What it holds is shared with `names`, and replaced as a whole.
        self._indexes = dict(names.indexes)

    def find(self, schema: str, name: str) -> FoundObject | None:
        return self._found.get((RELATIONS, schema, name))

    def find_type(self, schema: str, name: str) -> FoundObject | None:
        return self._found.get((SPACES[ObjectKind.TYPE], schema, name))

    def find_space(self, kind: ObjectKind, name: str) -> FoundObject | None:
        """A schema or a database."""
        return self._found.get((SPACES[kind], "", name))

    def names_in(self, schema: str) -> Container[str]:
        return _Taken(self._found, schema)

    def objects_in(self, schema: str) -> list[FoundObject]:
        """All but the indexes, which come and go with their tables."""
        inside = [found for (_, where, _), found in self._found.items() if where == schema]
        inside = [found for found in inside if found.kind is not ObjectKind.INDEX]
        return sorted(inside, key=lambda found: (found.kind is not ObjectKind.TABLE, found.id))

    def put(self, entry: elements.NamespaceElement) -> None:
        if self._is_ours(entry):
            self._found[place_of(entry)] = FoundObject(entry.kind, entry.descriptor_id)

    def put_indexes(self, entry: elements.NamespaceElement, indexes: Iterable[tuple[IndexId, str]]) -> None:
        """Indexes of the table of this entry, with their names."""
        places = {index_id: (RELATIONS, entry.schema, name) for index_id, name in indexes}
        if self._is_ours(entry) and places:
            for index_id, place in places.items():
                self._found[place] = FoundObject(ObjectKind.INDEX, entry.descriptor_id, index_id)
            self._indexes[entry.descriptor_id] = {**self._indexes.get(entry.descriptor_id, {}), **places}

    def remove(self, entry: elements.NamespaceElement) -> None:
        found = self._found.get(place_of(entry))
        if found is not None and found.id == entry.descriptor_id:
            del self._found[place_of(entry)]
        for place in self._indexes.pop(entry.descriptor_id, {}).values():
            self._found.pop(place, None)

    def remove_index(self, index: elements.IndexName) -> None:
        places = dict(self._indexes.get(index.table_id, {}))
        place = places.pop(index.index_id, None)
        if place is not None:
            self._indexes[index.table_id] = places
            if self._found[place].index_id == index.index_id:
                del self._found[place]


class _Taken:
    """The names of the relations of one schema."""

    def __init__(self, found: dict[Place, FoundObject], schema: str) -> None:
        self._found = found
        self._schema = schema

    def __contains__(self, name: object) -> bool:
        return (RELATIONS, self._schema, name) in self._found
