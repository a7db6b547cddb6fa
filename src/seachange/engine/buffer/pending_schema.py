"""The pending descriptor changes of a transaction: visible to itself at once, to others when it commits.

**Invariant:** what a published version refers to (a sequence, type, schema, or relation of a view) is shared by its
commit, so of it and a concurrent drop at most one commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from seachange import errors
from seachange.engine.replica.schema_history import Contents, Relation, SchemaVersion
from seachange.model.codecs.object_json import encode_descriptor
from seachange.model.ids import DescriptorId, IndexId
from seachange.model.log import DescriptorChange, GenerationChange
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.access import merge_access
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor, Role, Sequence, View, is_relabelled, is_within, qualified_name
from seachange.model.schema.rights import takes_rights
from seachange.model.schema.synthetic import follow_published
from seachange.model.states import State

_Change = tuple[Descriptor | None, Descriptor | None]


class PendingSchema:
    """The newest pending version of each descriptor, with the committed version that the first change started from."""

    def __init__(self) -> None:
        # Id -> (committed before, pending now). The journal holds earlier values, to undo a failed statement.
        self._changes: dict[DescriptorId, _Change] = {}
        self._journal: list[tuple[DescriptorId, _Change | None]] = []
        # Tables of UNDROP: other transactions see them as dropped, so the commit compares with the version of the drop.
        self._revived: set[DescriptorId] = set()

    def __bool__(self) -> bool:
        return bool(self._changes)

    def changes(self, table: Table) -> bool:
        return table.id in self._changes

    def changed(self, id_: DescriptorId) -> bool:
        return id_ in self._changes

    @property
    def ids(self) -> tuple[DescriptorId, ...]:
        return tuple(self._changes)

    def change(self, id_: DescriptorId) -> _Change | None:
        """The committed version when the transaction first changed the descriptor, and the pending one."""
        return self._changes.get(id_)

    @property
    def has_roles(self) -> bool:
        return bool(self._changes) and any(isinstance(a or b, Role) for b, a in self._changes.values())

    def role_changes(self) -> Iterator[tuple[Role | None, Role | None]]:
        for before, after in self._changes.values():
            if isinstance(before, Role | None) and isinstance(after, Role | None):
                yield before, after

    def narrowed(self) -> set[DescriptorId]:
        """Descriptors for which the transaction publishes a version with fewer privileges than the one before."""
        return {
            id_
            for id_, (before, after) in self._changes.items()
            if before is not None and after is not None and takes_rights(before, after)
        }

    def created(self) -> Iterator[Descriptor]:
        yield from (after for before, after in self._changes.values() if before is None and after is not None)

    def is_new(self, table: Table) -> bool:
        change = self._changes.get(table.id)
        return change is not None and change[0] is None

    def is_own(self, table_id: DescriptorId) -> bool:
        """Whether the transaction has created or emptied the table: its primary index is new, so that every row in it
        is the transaction's own."""
        before, after = self._changes.get(table_id, (None, None))
        known = before.index_by_id if isinstance(before, Table) else {}
        return isinstance(after, Table) and after.primary.id not in known

    def mark(self) -> int:
        return len(self._journal)

    def reset(self, mark: int) -> None:
        while len(self._journal) > mark:
            id_, before = self._journal.pop()
            if before is None:
                del self._changes[id_]
            else:
                self._changes[id_] = before

    def publish(self, before: Descriptor | None, after: Descriptor | None, published: Descriptor | None = None) -> None:
        """`published`: the version that child transactions of this transaction have published since."""
        descriptor = after or before
        if descriptor is None:
            raise errors.Bug(detail="a descriptor change without a descriptor")
        known = self._changes.get(descriptor.id)
        self._journal.append((descriptor.id, known))
        self._changes[descriptor.id] = (published or (known[0] if known else before), after)

    def follow(self, id_: DescriptorId, published: Descriptor) -> None:
        """Child transactions have published another version of a descriptor that it changes."""
        before, after = self._changes[id_]
        if before is not None and before.version != published.version:
            if isinstance(after, Table) and isinstance(published, Table):
                after = follow_published(after, published)
            self._changes[id_] = (published, after)

    def rebase(self, newest: Mapping[DescriptorId, Descriptor]) -> bool:
        """Rebases the pending versions on versions that others have published, which is possible where one of the two
        sides changed labels only (owner, grants, comments). Returns whether every conflicting version could be
        rebased."""
        moved: dict[DescriptorId, _Change] = {}
        for id_, (before, after) in self._changes.items():
            now = newest.get(id_)
            if before is None or (now is not None and now.version == before.version):
                continue
            if now is None or id_ in self._revived:
                return False
            rebased = _rebased(before, after, now)
            if rebased is None and after is not None:
                return False
            if after is None and not is_relabelled(before, now):
                return False
            moved[id_] = (now, rebased)
        self._changes |= moved
        return bool(moved)

    def revive(self, dropped: Table, after: Table) -> None:
        if dropped.id not in self._changes:
            self._revived.add(dropped.id)
        self.publish(dropped, after)

    def dropped(self) -> tuple[Table, ...]:
        return tuple(before for before, after in self._changes.values() if isinstance(before, Table) and after is None)

    def find(self, schema: str, name: str, committed: Contents) -> Relation | None:
        place = (committed.database, schema, name)
        for _, pending in self._changes.values():
            if not isinstance(pending, Table | Sequence | View):
                continue
            if (pending.database, pending.schema, pending.name) == place:
                return pending
        found = committed.relations.get((schema, name))
        return None if found is None or found.id in self._changes else found

    def find_by_id(self, table_id: DescriptorId, committed: SchemaVersion) -> Table | None:
        change = self._changes.get(table_id)
        if change is None:
            return committed.by_id.get(table_id)
        return change[1] if isinstance(change[1], Table) else None

    def find_object(self, id_: DescriptorId, committed: SchemaVersion) -> Descriptor | None:
        """A descriptor of any kind but a table."""
        change = self._changes.get(id_)
        return committed.objects.get(id_) if change is None else change[1]

    def tables(self, committed: Contents | SchemaVersion) -> tuple[Table, ...]:
        """The tables of one database, or of all."""
        if not self._changes:
            return tuple(committed.by_id.values())
        pending = [after for after in self._seen(committed) if isinstance(after, Table)]
        return (*(t for t in committed.by_id.values() if t.id not in self._changes), *pending)

    def objects(self, committed: Contents | SchemaVersion) -> tuple[Descriptor, ...]:
        """All descriptors that are not tables."""
        pending = [after for after in self._seen(committed) if not isinstance(after, Table)]
        return (*(o for o in committed.objects.values() if o.id not in self._changes), *pending)

    def _seen(self, committed: Contents | SchemaVersion) -> Iterator[Descriptor]:
        for _, after in self._changes.values():
            if after is not None and (isinstance(committed, SchemaVersion) or is_within(after, committed.database)):
                yield after

    def versions(self) -> dict[DescriptorId, int]:
        """The versions that the commit publishes for the descriptors that it changes."""
        return {
            id_: after.version
            for id_, (before, after) in self._changes.items()
            if before and after and id_ not in self._revived
        }

    def descriptor_changes(self) -> tuple[DescriptorChange, ...]:
        changed = ((id_, *change) for id_, change in self._changes.items() if change[0] is not change[1])
        return tuple(descriptor_change(id_, before, after) for id_, before, after in changed)

    def replaced(self) -> tuple[IndexId, ...]:
        """Primary indexes that the transaction drops or replaces."""
        return tuple(
            before.primary.id
            for before, after in self._changes.values()
            if isinstance(before, Table) and not (isinstance(after, Table) and after.primary.id == before.primary.id)
        )

    def new_indexes(self) -> tuple[GenerationChange, ...]:
        """An index that is created on an empty table is complete from the start: it gets an empty generation. An index
        that is not readable yet is built by a job."""
        created: list[IndexId] = []
        for before, after in self._changes.values():
            known = set(before.index_by_id) if isinstance(before, Table) else set()
            if isinstance(after, Table):
                created += [i.id for i in after.indexes if i.id not in known and i.state is State.PUBLIC]
        return tuple(GenerationChange(index_id, None, None, ()) for index_id in created)


def _rebased(before: Descriptor, after: Descriptor | None, now: Descriptor) -> Descriptor | None:
    if after is None:
        return None
    access = merge_access(before.access, after.access, now.access)
    if access is None:
        return None
    if is_relabelled(before, now):
        return replace(after, version=now.version + after.version - before.version, access=access)
    parts = {comment.part for comment in access.comments}
    if is_relabelled(before, after) and isinstance(now, Table) and parts <= {None, *_parts(now)}:
        return replace(now, version=now.version + 1, access=access)
    return None


def _parts(table: Table) -> Iterator[tuple[ObjectKind, int]]:
    """The parts of a table that can have a comment of their own."""
    yield from ((ObjectKind.COLUMN, column.id) for column in table.columns)
    yield from ((ObjectKind.INDEX, index.id) for index in table.indexes)
    yield from ((ObjectKind.CONSTRAINT, check.id) for check in table.checks)
    yield from ((ObjectKind.CONSTRAINT, key.id) for key in table.foreign_keys)


def descriptor_change(id_: DescriptorId, before: Descriptor | None, after: Descriptor | None) -> DescriptorChange:
    descriptor = after or before
    assert descriptor is not None
    following = before.version + 1 if before is not None else 1
    return DescriptorChange(
        id=id_,
        expected=before.version if before is not None else 0,
        version=after.version if after is not None else following,
        name=qualified_name(descriptor),
        body=encode_descriptor(after) if after is not None else None,
    )
