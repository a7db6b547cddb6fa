"""Which descriptors refer to each other, so that a statement about few of them need not look at all.

**Invariant:** whatever refers to an object, or is referred to by it, however indirectly, is connected with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from seachange.model.ids import DescriptorId
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor, Sequence, View


@dataclass(frozen=True, slots=True)
class ObjectUsers:
    """By what is referred to, those that do."""

    users: dict[DescriptorId, frozenset[DescriptorId]] = field(default_factory=dict)

    def put(self, descriptor: Descriptor) -> None:
        for id_ in referred_by(descriptor):
            self.users[id_] = self.users.get(id_, frozenset()) | {descriptor.id}

    def remove(self, descriptor: Descriptor) -> None:
        for id_ in referred_by(descriptor):
            left = self.users.get(id_, frozenset()) - {descriptor.id}
            if left:
                self.users[id_] = left
            else:
                self.users.pop(id_, None)

    def connected(
        self, ids: Iterable[DescriptorId], descriptors: Mapping[DescriptorId, Descriptor]
    ) -> set[DescriptorId]:
        """These and all that they are connected with."""
        found: set[DescriptorId] = set()
        pending = list(ids)
        while pending:
            id_ = pending.pop()
            if id_ in found:
                continue
            found.add(id_)
            pending += self.users.get(id_, ())
            if id_ in descriptors:
                pending += referred_by(descriptors[id_])
        return found


def users_of(descriptors: Iterable[Descriptor]) -> ObjectUsers:
    users = ObjectUsers()
    for descriptor in descriptors:
        users.put(descriptor)
    return users


def follow_users(users: ObjectUsers, changes: Iterable[tuple[Descriptor | None, Descriptor | None]]) -> ObjectUsers:
    """After changes, each a descriptor before and after."""
    following = ObjectUsers(dict(users.users))
    for before, after in changes:
        if before is not None:
            following.remove(before)
        if after is not None:
            following.put(after)
    return following


def referred_by(descriptor: Descriptor) -> set[DescriptorId]:
    """The objects that a descriptor refers to by their ids, without itself."""
    return {DescriptorId(id_) for id_ in _referred(descriptor)} - {descriptor.id}


def _referred(descriptor: Descriptor) -> Iterator[int]:
    match descriptor:
        case Table():
            yield from (key.parent for key in descriptor.foreign_keys)
            for column in descriptor.columns:
                yield from column.default_sequences
                if column.identity is not None:
                    yield column.identity.sequence_id
                if column.type.enum:
                    yield column.type.enum
            if descriptor.materialized is not None:
                yield from descriptor.materialized.relation_ids
                yield from (table_id for table_id, _ in descriptor.materialized.column_uses)
        case Sequence(owner=(table_id, _)):
            yield table_id
        case View():
            yield from descriptor.relation_ids
            yield from (table_id for table_id, _ in descriptor.column_uses)
        case _:
            pass
