"""What a transaction has buffered, rebased on a newer version of its tables: while it is open, or when it commits and
the version that it was planned with is older than its tables allow.

The buffered rows stay as they are: a newer version reads the layout that they are in. What the newer version asks for
besides, entries of indexes that have come since, the primary one among them, and constraints that are enforced now, is
derived from the rows as they were before the transaction and as it leaves them. A column that was converted has its
values by the expression of a version in between.

**Invariant:** the entries that a rebase adds are those that the statements would have written, had they been planned
with the newest version; uniqueness and references are checked at what the node has applied, and from there on by the
commit. What it takes out of an index, and the rows that it puts into a new primary one, conflict with whatever was
written since the statements read them.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from seachange import errors
from seachange.engine.buffer.row_writer import RowWriter
from seachange.engine.buffer.write_buffer import RowsFit
from seachange.engine.constraints.computed_values import record_failures
from seachange.engine.constraints.foreign_key import ForeignKeys, WritingTransaction
from seachange.engine.encode.derive import Failures
from seachange.engine.encode.write_plan import EntryPlan, WritePlan
from seachange.engine.transaction.rebase_rows import (
    ACTION,
    GONE,
    OWN_CHANGE,
    RebasedRows,
    fit_rows,
    keep_locks,
    refused,
)
from seachange.model.ids import ConstraintId, DescriptorId, IndexId, Seq
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import EnumType
from seachange.model.schema.shape import has_same_plan
from seachange.model.states import State

Row = tuple[Any, ...]
_Reference = tuple[DescriptorId, ConstraintId, State]


class Rebase:
    def __init__(self, txn: WritingTransaction, used: dict[DescriptorId, int], foreign_keys: ForeignKeys) -> None:
        self._txn = txn
        self._used = used
        self._foreign_keys = foreign_keys

    def _check_objects(self, newest: Container[DescriptorId]) -> None:
        """What the tables of this transaction draw from or are made of may have been dropped."""
        for id_ in self._txn.declared.relied:
            if id_ not in newest:
                raise errors.SerializationFailure(detail=f"object {id_}, which a change refers to, was dropped")

    def run(self) -> tuple[list[IndexId], list[IndexId]]:
        """Brings the buffer up to the newest version; gives the indexes that it writes to in addition, and those that
        it does so no longer."""
        epoch = self._txn.epoch
        at = epoch.catch_up()
        newest = epoch.schema(at).by_id
        self._check_objects({*newest, *epoch.schema(at).objects})
        before = {id_: self._plan_of(id_) for id_ in self._used}
        planned = {id_: self._version_of(id_) for id_ in self._used}
        outdated = [id_ for id_, version in planned.items() if id_ not in newest or newest[id_].version != version]
        for id_ in outdated:
            if id_ in newest:
                self._follow(newest[id_], at)
        added: list[IndexId] = []
        removed = [index_id for id_ in outdated if id_ not in newest for index_id in self._drop(id_)]
        written = [
            self._fitted(plan, newest[id_], at)
            for id_ in outdated
            if id_ in newest and (plan := before[id_]) is not None and not self._fits_as_it_is(newest[id_], at)
        ]
        known = {rows.table.id: self._known_references(rows.table) for rows, _ in written}
        for rows, old in written:
            after = self._txn.parts.write_plan(rows.table)
            came, went = self._write(rows, old, after, at)
            added += came
            removed += [*went, *self._forget(old, after)]
        for id_ in outdated:
            if id_ in newest:
                self._used[id_] = newest[id_].version
                # It may be fenced again.
                self._txn.buffer.relabel(newest[id_], at)
            else:
                # It was only read, as of the snapshot.
                del self._used[id_]
        self._check_references([rows for rows, _ in written], known, at)
        self._settle_deferred(at)
        return added, removed

    def _fits_as_it_is(self, now: Table, at: Seq) -> bool:
        """Whether rows that were written with the version before are as they would be with this one, and no other
        foreign key refers to the table."""
        fit = self._txn.buffer.fits.get(now.id) or self._at_snapshot(now.id)
        return (
            fit is not None
            and has_same_plan(fit.table, now)
            and self._references(fit.seq, now) == self._references(at, now)
        )

    def _at_snapshot(self, table_id: DescriptorId) -> RowsFit | None:
        snapshot = self._txn.snapshot
        before = self._txn.epoch.schema(snapshot).by_id.get(table_id)
        return None if before is None else RowsFit(before, snapshot)

    def move(self, tables: Sequence[Table], at: Seq) -> None:
        """The same for a transaction that goes on: these versions, as of `at`, are what it plans with from now on."""
        for table in tables:
            self._follow(table, at)
        written = [self._fitted(plan, now, at) for now in tables if (plan := self._plan_of(now.id)) is not None]
        known = {rows.table.id: self._known_references(rows.table) for rows, _ in written}
        for rows, old in written:
            after = self._txn.parts.write_plan(rows.table)
            self._txn.buffer.rebase(old, after, at)
            self._write(rows, old, after, at)
        self._check_references([rows for rows, _ in written], known, at)

    def _version_of(self, table_id: DescriptorId) -> int:
        fit = self._txn.buffer.fits.get(table_id)
        return self._used[table_id] if fit is None or self._plan_of(table_id) is None else fit.table.version

    def _plan_of(self, table_id: DescriptorId) -> EntryPlan | None:
        """The plan that the rows of a table were written with; None if none were."""
        for buffer in self._txn.buffer.indexes.values():
            if buffer.plan.table_id == table_id and buffer.plan.is_primary and not buffer.is_empty:
                return buffer.plan
        return None

    def _drop(self, table_id: DescriptorId) -> list[IndexId]:
        """Rows of a dropped table that only foreign keys have changed may be lost with it."""
        indexes = self._txn.buffer.indexes
        gone = [index_id for index_id, b in indexes.items() if b.plan.table_id == table_id and not b.is_empty]
        if gone and table_id in self._txn.declared.addressed:
            raise refused(self._name_of(table_id), GONE)
        for index_id in gone:
            del indexes[index_id]
        return gone

    def _name_of(self, table_id: DescriptorId) -> str:
        """The name of a table that has rows in the buffer. Rows of a table that this transaction has changed conform to
        its own version, and are not among the fits."""
        fit, change = self._txn.buffer.fits.get(table_id), self._txn.pending.change(table_id)
        known = fit.table if fit is not None else change and change[1]
        return known.name if known else f"table {table_id}"

    def _fitted(self, plan: EntryPlan, now: Table, at: Seq) -> tuple[RebasedRows, WritePlan]:
        if self._txn.pending.changes(now):
            raise refused(now.name, OWN_CHANGE)
        fit, buffer = self._txn.buffer.fits[now.id], self._txn.buffer.indexes[plan.index.id]
        return fit_rows(self._txn, buffer, fit, now, at), self._txn.parts.write_plan(fit.table)

    # Rows that were locked.

    def _follow(self, now: Table, at: Seq) -> None:
        """What holds the rows now may be another index than the one by which they are known to have been locked."""
        declared = self._txn.declared
        for table in {row.table.version: row.table for row in declared.locked if row.table.id == now.id}.values():
            later = self._txn.epoch.schemas.versions(now.id, table.version)
            if any(t.primary.id != table.primary.id for t in later if t.version <= now.version):
                rows = [row for row in declared.locked if row.table.id == now.id and row.table.version == table.version]
                keep_locks(self._txn, rows, now, at)

    # Entries.

    def _write(
        self, rows: RebasedRows, old: WritePlan, after: WritePlan, at: Seq
    ) -> tuple[list[IndexId], list[IndexId]]:
        duck, failed = self._txn.parts.duck, Failures()
        gone = after.derive([pair.old for pair in rows.pairs if pair.old is not None], duck)
        new = after.derive(rows.new, duck, failed)
        bases_gone = [pair.base for pair in rows.pairs if pair.old is not None]
        bases_new = [pair.base for pair in rows.pairs if pair.new is not None]
        record_failures(self._txn, rows.table, failed)
        writer = RowWriter(
            after, self._txn.buffer, self._txn.epoch, self._txn.parts, at, False, self._txn.client.interrupts
        )
        writer.check(new)
        self._check_values(rows.table, rows.new, at)
        # Entries with values that the buffer does not have yet are written again.
        known = {plan.index.id: plan for plan in old.entries if rows.fits(plan)}
        kept = {plan.index.id for plan in after.entries}
        stale = [plan.index.id for plan in old.entries if plan.index.id in kept and plan.index.id not in known]
        removed = [index_id for index_id in stale if self._txn.buffer.indexes.pop(index_id, None) is not None]
        added = [plan for plan in after.entries if plan.index.id not in known]
        for writer.base, row in zip(bases_gone, gone, strict=True):
            writer.remove_entries(added, row)
        for writer.base, row in zip(bases_new, new, strict=True):
            writer.check_required(row)
            writer.add_entries(added, row)
        for plan in after.entries:
            if plan.index.id in known and plan.checks and not known[plan.index.id].checks:
                self._check_unique(writer, plan, new)
        return [plan.index.id for plan in added if plan.index.id in self._txn.buffer.indexes], removed

    def _check_values(self, table: Table, rows: Sequence[Row], at: Seq) -> None:
        """Values of enum types that have gone since, with the checks that had kept them out."""
        types = self._txn.epoch.schema(at).objects
        for place in table.enum_places:
            type_ = types.get(DescriptorId(table.columns[place].type.enum))
            held = {None, *(value.held for value in type_.values)} if isinstance(type_, EnumType) else set()
            values = (row[place] for row in rows)
            each = (one for value in values for one in (value if isinstance(value, list) else [value]))
            gone = next((value for value in each if value not in held), None)
            if gone is not None:
                raise errors.InvalidTextRepresentation(type=f"enum of column {table.columns[place].name}", value=gone)

    def _check_unique(self, writer: RowWriter, plan: EntryPlan, new: Sequence[Row]) -> None:
        for row in new:
            if plan.has_entry(row):
                writer.check_unique(plan, plan.stored(row))

    def _forget(self, old: WritePlan, after: WritePlan) -> list[IndexId]:
        kept = {plan.index.id for plan in after.entries}
        gone = [plan.index.id for plan in old.entries if plan.index.id not in kept]
        primary = self._txn.buffer.indexes.get(after.primary.index.id)
        if primary is not None:
            # It may have been written as one that was yet to come.
            primary.plan = replace(primary.plan, is_primary=True)
        return [index_id for index_id in gone if self._txn.buffer.indexes.pop(index_id, None) is not None]

    # References.

    def _check_references(
        self, written: Sequence[RebasedRows], known: Mapping[DescriptorId, Collection[_Reference]], at: Seq
    ) -> None:
        """At what is committed then, under the transaction's own rows."""
        txn = self._txn
        snapshot, txn.snapshot = txn.snapshot, at
        try:
            for rows in written:
                self._foreign_keys.inserted(rows.table, rows.new)
            for rows in written:
                pairs = [(pair.old, pair.new) for pair in rows.pairs]
                for child, key in txn.references_to(rows.table):
                    is_new = (child.id, key.id, key.state) not in known[rows.table.id]
                    if is_new and self._foreign_keys.needs_action(rows.table, child, key, pairs):
                        raise refused(child.name, ACTION)
        finally:
            txn.snapshot = snapshot

    def _settle_deferred(self, at: Seq) -> None:
        txn = self._txn
        snapshot, txn.snapshot = txn.snapshot, at
        try:
            self._foreign_keys.check_deferred()
        finally:
            txn.snapshot = snapshot

    def _known_references(self, table: Table) -> set[_Reference]:
        """The foreign keys that the statements knew of which wrote the rows."""
        return self._references(self._txn.buffer.fits[table.id].seq, table)

    def _references(self, at: Seq, table: Table) -> set[_Reference]:
        references = self._txn.epoch.schema(at).references.get(table.id, ())
        return {(child.id, key.id, key.state) for child, key in references}
