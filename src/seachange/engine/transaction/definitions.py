"""What statements define: descriptors that the transaction publishes, and what they rely on.

**Invariant:** every name, table and role that a published descriptor depends on is declared with the commit, so that of
two changes that depend on each other at most one commits unseen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from seachange import errors
from seachange.engine.buffer.row_locks import WriteLock
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.reads.table_uses import TableUses
from seachange.engine.transaction.block_stages import check_current, is_outdated, may_be_outdated
from seachange.engine.transaction.transaction_locks import TransactionLocks
from seachange.model.ids import DescriptorId, KeyHash, Seq, TableId
from seachange.model.isolation import Isolation
from seachange.model.locking import LockPolicy, LockStrength
from seachange.model.schema.access import DEFAULT_ROLE, PUBLIC_ROLE
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor, EnumType, Role, View, is_relabelled
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.storage.keys import change_hash, name_hash, role_hash

_ALWAYS_THERE = frozenset({DEFAULT_ROLE, PUBLIC_ROLE})


@dataclass(frozen=True, slots=True)
class Definitions:
    """`DefinitionPort`."""

    state: TransactionState
    uses: TableUses
    locks: TransactionLocks

    def publish(self, before: Descriptor | None, after: Descriptor | None) -> None:
        self.declare(before, after)
        self.state.pending.publish(before, after)
        if isinstance(before, Table) and isinstance(after, Table):
            self._move_rows(after)

    def _move_rows(self, after: Table) -> None:
        buffer, seq = self.state.buffer, self.state.snapshot.seq
        if any(index.plan.table_id == after.id for index in buffer.indexes.values()):
            plan = self.state.parts.write_plan(after)
            soft = self.state.pending.soft_indexes(after.id)
            buffer.rebase(plan, [entry.index.id for entry in plan.entries], seq, soft)
        else:
            buffer.expect(after, seq)

    def revive(self, dropped: Descriptor, after: Descriptor) -> None:
        if isinstance(dropped, Table):
            self._refuse_lost_values(dropped)
        self.declare(None, after)
        self.state.pending.revive(dropped, after)

    def _refuse_lost_values(self, dropped: Table) -> None:
        """Its rows may have values of enum types that were not searched for in them when they were dropped."""
        if not dropped.enum_places:
            return
        drops = {found.id: found.dropped_at for found in self.state.parts.catalog.dropped()}
        # One that this transaction has dropped was as it is now until then.
        then = self.state.epoch.schema(
            Seq(drops[dropped.id] - 1) if dropped.id in drops else self.state.snapshot.seq
        ).objects
        for column in (dropped.columns[place] for place in dropped.enum_places):
            type_id = DescriptorId(column.type.enum)
            lost = _held(then.get(type_id)) - _held(self.state.schema.object_by_id(type_id))
            if lost:
                raise errors.FeatureNotSupported(
                    feature=f"UNDROP TABLE {dropped.name}, whose column {column.name} may have value {min(lost)}, "
                    "which was dropped since,",
                    instead="ALTER TYPE ... ADD VALUE brings the value back.",
                )

    def declare(self, before: Descriptor | None, after: Descriptor | None) -> None:
        """What the change conflicts by: the table, and every name that a relation or type is given or loses by it."""
        self.state.snapshot.check_writable()
        if isinstance(before, Table):
            self.uses.use(before)
        for role in _roles_named(after) - _roles_named(before):
            self.state.declared.shares.setdefault(role_hash(role), self.state.snapshot.seq)
        if isinstance(before, Role) and (after is None or after.name != before.name):
            self.state.declared.changed.setdefault(role_hash(before.name), self.state.snapshot.seq)
        if before is not None and after is not None and is_relabelled(before, after):
            # Beside any other change, which is then made of what it finds. As in PostgreSQL, GRANT waits for no lock.
            if isinstance(after, Table) and replace(after.access, privileges=before.access.privileges) != before.access:
                self.locks.await_table_locks(after)
            return
        table = after or before
        if table is not None:
            # It is planned on the newest version, in which the statements that follow see it.
            self.state.shapes.limits.pop(table.id, None)
        # A table that was taken over is newer than the snapshot, and so are the names that it had then.
        planned = (
            self.state.snapshot.seq if table is None else self.state.block.planned_at(table.id, self.state.snapshot.seq)
        )
        bases = {name_hash(*name): planned for name in _names(before) - _names(after)}
        bases |= {name_hash(*name): self.state.snapshot.seq for name in _names(after) - _names(before)}
        bases |= {change_hash(table.id): planned} if table is not None else {}
        if not self.state.mode.autocommit:
            if isinstance(before, Table):
                self.locks.begin_change(before)
            # It may stay open for long: others wait for its end, and are not surprised by it.
            new = {key: bases[key] for key in sorted(bases.keys() - self.state.declared.changed.keys())}
            self._lock(new)
            check_current(self.state, before, new)
        for key, base in bases.items():
            self.state.declared.changed.setdefault(key, base)

    def _lock(self, keys: Iterable[KeyHash]) -> None:
        """Waits for other blocks, and tells the client for which."""
        wanted = [WriteLock(key, LockStrength.UPDATE) for key in keys]
        children = self.state.statement.context.children
        if children is not None:
            try:
                self.state.write_locks.lock(wanted, LockPolicy.NOWAIT)
            except errors.LockRefused as refused:
                children.report(f"waits for {refused.fields['what']}. {refused.detail or ''}".rstrip())
            else:
                return
        self.state.write_locks.lock(wanted, LockPolicy.WAIT)

    def rely_on(self, objects: Iterable[Descriptor]) -> None:
        for descriptor in objects:
            if not self.state.pending.changed(descriptor.id):
                self.state.declared.relied[descriptor.id] = descriptor.version
                # A concurrent change of it was planned without knowing of this one.
                self.state.declared.shares.setdefault(change_hash(descriptor.id), self.state.snapshot.seq)

    def check_newest(self, ids: Collection[DescriptorId]) -> None:
        is_block = not self.state.mode.autocommit
        keeps_snapshot = is_block and self.state.isolation is not Isolation.READ_COMMITTED
        own = [id_ for id_ in ids if keeps_snapshot or self.state.pending.changed(id_)]
        if is_block and own:
            self._check_definitions(own)
        others = [id_ for id_ in ids if not self.state.pending.changed(id_)]
        if keeps_snapshot or not others:
            return
        head = self.state.epoch.catch_up()
        then, now = self.state.epoch.schema(self.state.snapshot.seq), self.state.epoch.schema(head)
        for id_ in others:
            known, newest = (schema.by_id.get(id_) or schema.objects.get(id_) for schema in (then, now))
            if known is not None and (newest is None or newest.version != known.version):
                raise errors.RowChanged(seq=head)

    def _check_definitions(self, ids: Iterable[DescriptorId]) -> None:
        """A block that keeps its snapshot, or has changed the labels of a table, plans a change of the table again with
        the newest definition, which is locked first. Whether another object was changed is found at the commit."""
        known = [self.state.schema.table_by_id(TableId(id_)) for id_ in sorted(ids)]
        tables = [table for table in known if table is not None and may_be_outdated(self.state, table)]
        if not tables:
            return
        head = self.state.epoch.catch_up()
        newest = self.state.epoch.schema(head).by_id
        for table in tables:
            if is_outdated(self.state, table, newest.get(table.id)):
                self.locks.begin_change(table)
                self._lock([change_hash(table.id)])
                self.state.block.outdated.add(table.id)
                raise errors.RowChanged(seq=head)

    def is_empty(self, table: Table) -> bool:
        index_id = table.primary.id
        own = self.state.buffer.indexes.get(index_id)
        if own is not None and (own.staged or own.removed or any(e.row is not None for e in own.entries.values())):
            return False
        if self.state.pending.is_new(table):
            return True
        at = self.state.snapshot.seq
        if self.state.isolation is Isolation.READ_COMMITTED:
            # An index that the same statement has built is newer than its snapshot.
            at = self.state.block.seen_at(index_id, at)
        return self.state.block.image(table, table.primary, at).is_empty(at)

    def rely_on_empty(self, table: Table) -> None:
        if not self.state.pending.is_new(table):
            self.state.declared.relied_empty[table.primary.id] = (table, self.state.snapshot.seq)

    def fence(self, table_ids: Collection[TableId]) -> None:
        self.state.declared.fenced |= set(table_ids)

    def allocate_ids(self, count: int) -> range:
        return self.state.parts.catalog.allocate_ids(count)

    @property
    def release(self) -> int:
        return self.state.epoch.release

    def salt(self, count: int) -> bytes:
        return self.state.parts.entropy.token(count)

    def has_fixed_password(self, role: str) -> bool:
        return role in self.state.parts.fixed_passwords


def _names(descriptor: Descriptor | None) -> set[tuple[str, str, str]]:
    """The names of relations, and of types: a relation has a type of its name. Those of other objects are looked at by
    the catalog alone."""
    if not isinstance(descriptor, Table | SequenceObject | View | EnumType):
        return set()
    place = (descriptor.database, descriptor.schema)
    indexes = descriptor.indexes if isinstance(descriptor, Table) else ()
    return {(*place, descriptor.name), *((*place, index.name) for index in indexes)}


def _roles_named(descriptor: Descriptor | None) -> set[str]:
    """The roles that must not be gone when it is published."""
    if descriptor is None:
        return set()
    if isinstance(descriptor, Role):
        return {*descriptor.member_of, *(default.role for default in descriptor.defaults)} - _ALWAYS_THERE
    return {descriptor.access.owner, *(held.role for held in descriptor.access.privileges)} - _ALWAYS_THERE


def _held(type_: Descriptor | None) -> set[str]:
    return {value.held for value in type_.values} if isinstance(type_, EnumType) else set()
