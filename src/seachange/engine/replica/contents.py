"""The descriptors that a session of one database sees, by what statements look for.

**Invariant:** contents that follow changes are those of the descriptors after them: a change costs what it changes, and
copies of dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from seachange.model.ids import DescriptorId
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import (
    UNPLANNED,
    Descriptor,
    EnumType,
    Schema,
    Sequence,
    View,
    is_within,
)
from seachange.planner.object_names import ObjectNames, follow_names, names_of
from seachange.planner.object_users import ObjectUsers, follow_users, users_of

K = TypeVar("K")
V = TypeVar("V", bound=Table | Sequence | View | Schema)

Relation = Table | Sequence | View
# A descriptor before and after a commit.
Change = tuple[Descriptor | None, Descriptor | None]


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in the database, and what all databases share."""

    database: str
    by_id: dict[DescriptorId, Table] = field(default_factory=dict)
    objects: dict[DescriptorId, Descriptor] = field(default_factory=dict)
    by_name: dict[tuple[str, str], Table] = field(default_factory=dict)
    # Tables, sequences and views, by schema and name.
    relations: dict[tuple[str, str], Relation] = field(default_factory=dict)
    # The schemas that have a descriptor, by name.
    schemas: dict[str, Schema] = field(default_factory=dict)
    enums: dict[DescriptorId, EnumType] = field(default_factory=dict)
    # What the planner works on.
    planned: dict[DescriptorId, Descriptor] = field(default_factory=dict)
    # A cache of one value: only schema changes need it.
    _links: list[tuple[ObjectNames, ObjectUsers]] = field(default_factory=list, compare=False, repr=False)

    @property
    def links(self) -> tuple[ObjectNames, ObjectUsers]:
        """The names of what the planner works on, and who refers to it."""
        if not self._links:
            # Two threads may compute the same value.
            self._links.append((names_of(self.planned.values(), self.database), users_of(self.planned.values())))
        return self._links[0]

    def find(self, id_: DescriptorId) -> Descriptor | None:
        return self.by_id.get(id_) or self.objects.get(id_)

    def put(self, descriptor: Descriptor) -> None:
        if isinstance(descriptor, Table):
            self.by_id[descriptor.id] = descriptor
            self.by_name[descriptor.schema, descriptor.name] = descriptor
        else:
            self.objects[descriptor.id] = descriptor
        if isinstance(descriptor, Relation):
            self.relations[descriptor.schema, descriptor.name] = descriptor
        elif isinstance(descriptor, Schema):
            self.schemas[descriptor.name] = descriptor
        elif isinstance(descriptor, EnumType):
            self.enums[descriptor.id] = descriptor
        if not isinstance(descriptor, UNPLANNED):
            self.planned[descriptor.id] = descriptor

    def remove_names(self, descriptor: Descriptor) -> None:
        if isinstance(descriptor, Schema):
            _remove(self.schemas, descriptor.name, descriptor)
        elif isinstance(descriptor, Relation):
            _remove(self.relations, (descriptor.schema, descriptor.name), descriptor)
            _remove(self.by_name, (descriptor.schema, descriptor.name), descriptor)

    def remove(self, id_: DescriptorId) -> None:
        for descriptors in (self.by_id, self.objects, self.enums, self.planned):
            descriptors.pop(id_, None)


def _remove(named: dict[K, V], name: K, descriptor: Descriptor) -> None:
    if name in named and named[name].id == descriptor.id:
        del named[name]


def contents_of(descriptors: Iterable[Descriptor], database: str) -> Contents:
    contents = Contents(database)
    for descriptor in descriptors:
        if is_within(descriptor, database):
            contents.put(descriptor)
    return contents


def follow_contents(contents: Contents, changes: Iterable[Change]) -> Contents:
    """All names that go do so first: two objects may swap theirs."""
    near = [_within(change, contents.database) for change in changes]
    near = [change for change in near if change != (None, None)]
    if not near:
        return contents
    after = Contents(
        contents.database,
        dict(contents.by_id),
        dict(contents.objects),
        dict(contents.by_name),
        dict(contents.relations),
        dict(contents.schemas),
        dict(contents.enums),
        dict(contents.planned),
    )
    for before, _ in near:
        if before is not None:
            after.remove_names(before)
    for before, descriptor in near:
        if descriptor is not None:
            after.put(descriptor)
        elif before is not None:
            after.remove(before.id)
    for names, users in contents._links[:1]:
        planned = tuple(map(_planned, near))
        after._links.append((follow_names(names, planned), follow_users(users, planned)))
    return after


def _within(change: Change, database: str) -> Change:
    before, after = change
    return (
        before if before is not None and is_within(before, database) else None,
        after if after is not None and is_within(after, database) else None,
    )


def _planned(change: Change) -> Change:
    before, after = change
    return (None if isinstance(before, UNPLANNED) else before, None if isinstance(after, UNPLANNED) else after)
