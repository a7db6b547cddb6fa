"""The pending descriptor changes of a transaction: visible to itself at once, to others when it commits.

**Invariant:** what a published version refers to (a sequence, type, schema, or relation of a view) is shared by its
commit, so of it and a concurrent drop at most one commits.
**Invariant:** a pending version has all that the committed one has which it says it comes after: whatever takes the
place of the committed one is merged into it.

**Invariant:** a transaction that replaces an index conflicts, by the keys that it gives up, with rows of other sessions
that refer to them by the published index, and locks rows by the key that other sessions lock them by.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from seachange import errors
from seachange.engine.replica.contents import Contents, follow_contents
from seachange.engine.replica.schema_history import SchemaVersion
from seachange.model.codecs.descriptor_json import encode_descriptor
from seachange.model.ids import ConstraintId, DescriptorId, IndexId, TableId
from seachange.model.log import DescriptorChange, GenerationChange
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.access import merge_access
from seachange.model.schema.descriptor import Index, Table
from seachange.model.schema.objects import Descriptor, Role, is_relabelled, qualified_name
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
        # Pending versions that differ from the committed ones in labels at most.
        self._labelled: list[Descriptor] = []
        # What was committed of a database, and the same with all changes: a cache.
        self._overlay: tuple[Contents, Contents] | None = None

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

    def own_tables(self) -> dict[TableId, Table]:
        """Those that it has created or emptied."""
        changed = ((id_, after) for id_, (_, after) in self._changes.items() if self.is_own(id_))
        return {TableId(id_): after for id_, after in changed if isinstance(after, Table)}

    def published_primary(self, table: Table) -> Index:
        """The primary index by which other sessions know the rows, and which the block may be about to replace."""
        before, _ = self._changes.get(table.id, (None, None))
        known = isinstance(before, Table) and table.primary.id in before.index_by_id
        return before.primary if known and isinstance(before, Table) else table.primary

    def adds_keys(self, table_id: DescriptorId, index_id: IndexId) -> bool:
        """Whether the transaction makes the keys of an index unique: other sessions know it as uncommitted."""
        before, _ = self._changes.get(table_id, (None, None))
        index = before.index_by_id.get(index_id) if isinstance(before, Table) else None
        return index is not None and index.uncommitted

    def soft_indexes(self, table_id: DescriptorId) -> set[IndexId]:
        """The indexes whose keys the transaction makes unique, or has made so before it dropped them."""
        before, _ = self._changes.get(table_id, (None, None))
        known = before.index_by_id if isinstance(before, Table) else {}
        return {id_ for id_, index in known.items() if index.uncommitted}

    def adds_reference(self, child_id: DescriptorId, key_id: ConstraintId) -> bool:
        """The same of a foreign key."""
        before, _ = self._changes.get(child_id, (None, None))
        known = before.foreign_keys if isinstance(before, Table) else ()
        return any(key.id == key_id and key.uncommitted for key in known)

    def drops_reference(self, child_id: DescriptorId, key_id: ConstraintId) -> bool:
        """Whether it has added a foreign key and dropped it again."""
        _, after = self._changes.get(child_id, (None, None))
        left = after.foreign_keys if isinstance(after, Table) else ()
        return self.adds_reference(child_id, key_id) and all(key.id != key_id for key in left)

    def published_keys(self) -> dict[IndexId, IndexId]:
        """By indexes whose keys other sessions rely on by another index, as long as the transaction is open: that
        other one."""
        found: dict[IndexId, IndexId] = {}
        for before, after in self._changes.values():
            if not isinstance(before, Table) or not isinstance(after, Table):
                continue
            known = {key.id: key.parent_index for key in before.foreign_keys}
            pairs = ((key.parent_index, known.get(key.id, key.parent_index)) for key in after.foreign_keys)
            found |= {index: published for index, published in pairs if index != published}
        return found

    def is_labelled(self, id_: DescriptorId) -> bool:
        """Whether the transaction has given no more than labels (owner, privileges, comments) to a descriptor, if
        that."""
        return id_ in self._changes and any(self._changes[id_][1] is made for made in self._labelled)

    def mark(self) -> int:
        return len(self._journal)

    def reset(self, mark: int) -> None:
        self._overlay = None
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
        is_first = known is None or self.is_labelled(descriptor.id)
        if is_first and before is not None and after is not None and (after is before or is_relabelled(before, after)):
            self._labelled.append(after)
        if published is not None and after is not None:
            after = _with_labels(known[0] if known else before, after, published)
        self._set(descriptor.id, (published or (known[0] if known else before), after))

    def _set(self, id_: DescriptorId, change: _Change) -> None:
        self._journal.append((id_, self._changes.get(id_)))
        self._changes[id_] = change
        self._overlay = None

    def follow(self, id_: DescriptorId, published: Descriptor) -> None:
        """Child transactions have published another version of a descriptor that it changes."""
        before, after = self._changes[id_]
        if before is not None and before.version != published.version:
            is_labelled = self.is_labelled(id_)
            if after is not None:
                after = _with_labels(before, after, published)
            if isinstance(before, Table) and isinstance(after, Table) and isinstance(published, Table):
                after = follow_published(_with_replaced(before, after, published), published)
            if is_labelled and after is not None:
                self._labelled.append(after)
            self._changes[id_] = (published, after)
            self._overlay = None

    def rebase(self, newest: Mapping[DescriptorId, Descriptor], relabelled: Collection[DescriptorId]) -> bool:
        """Rebases the pending versions on versions that others have published, which is possible where one of the two
        sides changed labels only; `relabelled` are those of which others have. Returns whether every conflicting
        version could be rebased."""
        moved: dict[DescriptorId, _Change] = {}
        for id_, (before, after) in self._changes.items():
            now = newest.get(id_)
            if before is None or (now is not None and now.version == before.version):
                continue
            if now is None or id_ in self._revived:
                return False
            rebased = self._rebased(before, after, now, id_ in relabelled)
            if rebased is None and (after is not None or id_ not in relabelled):
                return False
            moved[id_] = (now, rebased)
        for id_, (now, rebased) in moved.items():
            if self.is_labelled(id_) and rebased is not None:
                self._labelled.append(rebased)
            self._set(id_, (now, rebased))
        return bool(moved)

    def _rebased(
        self, before: Descriptor, after: Descriptor | None, now: Descriptor, is_relabelled_only: bool
    ) -> Descriptor | None:
        if after is None:
            return None
        access = merge_access(before.access, after.access, now.access)
        if access is None:
            return None
        if is_relabelled_only:
            return replace(after, version=now.version + after.version - before.version, access=access)
        parts = {comment.part for comment in access.comments}
        if self.is_labelled(after.id) and isinstance(now, Table) and parts <= {None, *_parts(now)}:
            return replace(now, version=now.version + after.version - before.version, access=access)
        return None

    def revive(self, dropped: Descriptor, after: Descriptor) -> None:
        if dropped.id not in self._changes:
            self._revived.add(dropped.id)
        self.publish(dropped, after)

    def dropped(self) -> tuple[Table, ...]:
        return tuple(before for before, after in self._changes.values() if isinstance(before, Table) and after is None)

    def overlay(self, committed: Contents) -> Contents:
        """What was committed of a database, as the transaction has changed it."""
        if not self._changes:
            return committed
        if self._overlay is None or self._overlay[0] is not committed:
            changes = [(committed.find(id_), after) for id_, (_, after) in self._changes.items()]
            self._overlay = (committed, follow_contents(committed, changes))
        return self._overlay[1]

    def find_by_id(self, table_id: DescriptorId, committed: SchemaVersion) -> Table | None:
        change = self._changes.get(table_id)
        if change is None:
            return committed.by_id.get(table_id)
        return change[1] if isinstance(change[1], Table) else None

    def find_object(self, id_: DescriptorId, committed: SchemaVersion) -> Descriptor | None:
        """A descriptor of any kind but a table."""
        change = self._changes.get(id_)
        return committed.objects.get(id_) if change is None else change[1]

    def tables(self, committed: SchemaVersion) -> tuple[Table, ...]:
        """The tables of all databases."""
        pending = [after for _, after in self._changes.values() if isinstance(after, Table)]
        return (*(t for t in committed.by_id.values() if t.id not in self._changes), *pending)

    def objects(self, committed: SchemaVersion) -> tuple[Descriptor, ...]:
        """All descriptors that are not tables."""
        pending = [after for _, after in self._changes.values() if after is not None and not isinstance(after, Table)]
        return (*(o for o in committed.objects.values() if o.id not in self._changes), *pending)

    def versions(self) -> dict[DescriptorId, int]:
        """The versions that the commit publishes for the descriptors that it changes, or that it drops."""
        return {
            id_: (after or before).version
            for id_, (before, after) in self._changes.items()
            if before and id_ not in self._revived
        }

    def published(self) -> list[_Change]:
        """What the commit publishes: each descriptor before and after."""
        return [change for change in self._changes.values() if change[0] is not change[1]]

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


def _with_replaced(before: Table, after: Table, published: Table) -> Table:
    """A pending version with the primary indexes that child transactions have put in the place of its own one, and of
    those that it refers to."""
    if after.primary.id == before.primary.id != published.primary.id:
        if after.primary.key != published.primary.key:
            raise errors.SerializationFailure(detail=f"the rows of {after.name} have been rewritten")
        after = replace(after, primary=replace(after.primary, id=published.primary.id))
    known = {key.id: key.parent_index for key in before.foreign_keys}
    now = {key.id: key.parent_index for key in published.foreign_keys if key.parent_index != known.get(key.id)}
    stale = {key.id for key in after.foreign_keys if key.id in now and key.parent_index == known.get(key.id)}
    if not stale:
        return after
    keys = (replace(key, parent_index=now[key.id]) if key.id in stale else key for key in after.foreign_keys)
    return replace(after, foreign_keys=tuple(keys))


def _with_labels(before: Descriptor | None, after: Descriptor, published: Descriptor) -> Descriptor:
    """With the labels that others have given to the descriptor since."""
    access = merge_access(before.access, after.access, published.access) if before is not None else after.access
    if access is None:
        raise errors.SerializationFailure(detail=f"the privileges of {after.name} were changed by others")
    return after if access == after.access else replace(after, access=access)


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
