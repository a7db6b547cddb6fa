"""The entries of the rows that a transaction has written to one table, in the indexes of another version of the table.

Indexes whose entries are what the new version would have written are kept. For each of the others, the entry of the
row as it was before the transaction is removed and that of the row as it leaves it is added: for rows in memory one by
one, for rows of staged files by one query per index, into files that take the place of the earlier ones.

**Invariant:** a row is in memory or in a file, by its key in the old primary index. An entry that one of them removes
and another adds is in one place afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from seachange import errors
from seachange.engine.buffer.row_writer import RowWriter, duplicate_key
from seachange.engine.buffer.staged import merge_deleted
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.bulk.bulk_rows import unique_of
from seachange.engine.bulk.entry_files import EntryFiles, sorter_of
from seachange.engine.constraints.computed_values import record_failures
from seachange.engine.constraints.uncommitted import record_broken, record_duplicate, record_null, recording
from seachange.engine.encode.check_rows import RowChecks, violation
from seachange.engine.encode.derive import Failures
from seachange.engine.encode.write_plan import EntryPlan, WritePlan
from seachange.engine.transaction.rebase_files import NEW, OLD, StagedPairs
from seachange.engine.transaction.rebase_rows import Move, Pair, check_inserted, rebase_rows
from seachange.model.ids import ConstraintId, DescriptorId, IndexId, Seq
from seachange.model.scan import Scan
from seachange.model.schema.constraint import Check
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import EnumType
from seachange.model.segments import SegmentKind
from seachange.model.states import State
from seachange.storage.arrow import column_name
from seachange.storage.bulk import repeated_keys
from seachange.storage.image import SnapshotParts
from seachange.storage.keys import Key
from seachange.storage.plan import Overlay, plan_scan
from seachange.storage.sorter import Sorter

Row = tuple[Any, ...]


@dataclass(slots=True)
class RebasedTable:
    """What foreign keys are checked by: the pairs in memory, and of those in files the keys that new foreign keys refer
    by, and the keys of indexes that the rows no longer have."""

    move: Move
    pairs: list[Pair]
    referred: dict[ConstraintId, pa.Table] = field(default_factory=dict)
    left: dict[IndexId, list[Key]] = field(default_factory=dict)

    @property
    def table(self) -> Table:
        return self.move.now

    @property
    def new(self) -> list[Row]:
        return [pair.new for pair in self.pairs if pair.new is not None]


class TableRebase:
    def __init__(self, txn: TransactionState, move: Move, at: Seq) -> None:
        self._txn = txn
        self._move = move
        self._at = at
        self._before = txn.parts.write_plan(move.old)
        self._after = _checking_anew(txn.parts.write_plan(move.now), self._before)
        self._is_new = txn.pending.is_new(move.now)
        known = {plan.index.id: plan for plan in self._before.entries if move.fits(plan)}
        self._kept = {plan.index.id for plan in self._after.entries} & known.keys()
        self._added = [plan for plan in self._after.entries if plan.index.id not in known]
        # Kept indexes that refuse or record duplicates from now on.
        self._checked = [
            p
            for p in self._after.entries
            if p.looks_for_duplicates
            and p.index.id in known
            and p.behaviour.checks is not known[p.index.id].behaviour.checks
        ]

    def run(self, parent_indexes: Collection[IndexId]) -> RebasedTable:
        """`parent_indexes`: new foreign keys refer to them."""
        buffer = self._txn.buffer.indexes[self._move.old.primary.id]
        found = RebasedTable(self._move, rebase_rows(self._txn, buffer, self._move, self._at))
        if self._after.primary in self._added:
            check_inserted(self._txn, found.pairs, self._move, self._at)
        if not (buffer.staged or buffer.removed) or self._leaves_files(parent_indexes):
            self._write(found.pairs)
            return found
        with sorter_of(self._txn) as sorter:
            pairs = StagedPairs(self._txn, sorter, self._move, buffer)
            pairs.carry(self._at)
            self._record(pairs.failed)
            pairs.derive(self._record)
            files = _Files(self, sorter, pairs)
            files.check_values()
            files.note_references(found, parent_indexes)
            self._write(found.pairs, files)
        return found

    def _leaves_files(self, parent_indexes: Collection[IndexId]) -> bool:
        """Whether the new version asks nothing of rows in files that the old one did not."""
        old, now = self._before, self._after
        return not (
            self._added
            or self._checked
            or parent_indexes
            or now.table.enum_places
            or now.required != old.required
            or now.recorded_nulls != old.recorded_nulls
            or _rules(now.checks) != _rules(old.checks)
            or _rules(now.recorded_checks) != _rules(old.recorded_checks)
            or now.table.foreign_keys != old.table.foreign_keys
            or (now.derivation is not None and now.derivation.fills)
        )

    @property
    def after(self) -> WritePlan:
        return self._after

    def _record(self, failed: Failures) -> None:
        record_failures(self._txn, self._move.now, failed)

    def _write(self, pairs: Sequence[Pair], files: _Files | None = None) -> None:
        txn, after = self._txn, self._after
        duck, failed = txn.parts.duck, Failures()
        gone = after.derive([pair.old for pair in pairs if pair.old is not None], duck)
        new = after.derive([pair.new for pair in pairs if pair.new is not None], duck, failed)
        bases_gone = [pair.base for pair in pairs if pair.old is not None]
        bases_new = [pair.base for pair in pairs if pair.new is not None]
        self._record(failed)
        txn.buffer.rebase(after, self._kept, self._at, txn.pending.soft_indexes(after.table.id))
        interrupts, record = txn.client.interrupts, recording(txn)
        parts, at, is_new = txn.parts, self._at, self._is_new
        writer = RowWriter(after, txn.buffer, parts, at, is_new, interrupts, record, txn.block)
        writer.check(new)
        for place in after.table.enum_places:
            self.check_enum(place, (row[place] for row in new))
        # Keys are freed before they are taken.
        for writer.base, row in zip(bases_gone, gone, strict=True):
            writer.remove_entries(self._added, row)
        if files is not None:
            files.write(self._added, self._checked)
        for writer.base, row in zip(bases_new, new, strict=True):
            writer.check_required(row)
            writer.add_entries(self._added, row)
        for plan in self._checked:
            for row in new:
                if plan.has_entry(row):
                    writer.check_unique(plan, plan.stored(row))

    def check_enum(self, place: int, values: Iterable[Any]) -> None:
        """Values of enum types that have gone since, with the checks that had kept them out."""
        column = self._after.table.columns[place]
        committed = self._txn.epoch.schema(self._at)
        type_ = self._txn.pending.find_object(DescriptorId(column.type.enum), committed)
        held = {None, *(value.held for value in type_.values)} if isinstance(type_, EnumType) else set()
        each = (one for value in values for one in (value if isinstance(value, list) else [value]))
        gone = next((value for value in each if value not in held), None)
        if gone is not None:
            raise errors.InvalidTextRepresentation(type=f"enum of column {column.name}", value=gone)


def _checking_anew(after: WritePlan, before: WritePlan) -> WritePlan:
    """Without checks that are NOT VALID and were so before: a row may be older than the check."""
    if after.checks is None:
        return after
    known = [check for check in _rules(before.checks) if check.not_valid and check.state is State.ENFORCED]
    rules = tuple(rule for rule in after.checks.rules if rule[0] not in known)
    return replace(after, checks=replace(after.checks, rules=rules) if rules else None)


def _rules(checks: RowChecks | None) -> tuple[Check, ...]:
    return () if checks is None else tuple(check for check, _ in checks.rules)


class _Files:
    """The entries of pairs from files."""

    def __init__(self, rebase: TableRebase, sorter: Sorter, pairs: StagedPairs) -> None:
        self._rebase = rebase
        self._txn = rebase._txn
        self._sorter = sorter
        self._pairs = pairs
        self._files = EntryFiles(self._txn, sorter)

    def check_values(self) -> None:
        after, pairs = self._rebase.after, self._pairs
        for place, column in after.required:
            if place != after.rowid and pairs.has_null(column):
                raise errors.NotNullViolation(column=column.name, relation=after.table.name)
        for _, column in after.recorded_nulls:
            if pairs.has_null(column):
                record_null(self._txn, after.table, column)
        for check, row in self._find_broken(after.checks):
            raise violation(after.table, check, row)
        record_broken(self._txn, after.table, self._find_broken(after.recorded_checks))
        for place in after.table.enum_places:
            self._rebase.check_enum(place, pairs.values(after.table.columns[place]))

    def _find_broken(self, checks: RowChecks | None) -> Iterator[tuple[Check, Row]]:
        if checks is not None:
            yield from checks.name_broken(self._sorter.fetch(checks.find_broken(self._pairs.new_rows())))

    def note_references(self, found: RebasedTable, parent_indexes: Collection[IndexId]) -> None:
        table = found.table
        known = {(key.id, key.state) for key in found.move.old.foreign_keys}
        for key in table.foreign_keys:
            if (key.id, key.state) not in known:
                found.referred[key.id] = self._pairs.keys([table.column_by_id[c] for c in key.columns])
        for index_id in parent_indexes:
            columns = [table.column_by_id[c] for c in table.index_by_id[index_id].key]
            left = self._pairs.keys(columns, OLD, without=NEW)
            rows = zip(*(column.to_pylist() for column in left.columns), strict=True)
            found.left[index_id] = [key for key in rows if None not in key]

    def write(self, added: Sequence[EntryPlan], checked: Sequence[EntryPlan]) -> None:
        with self._files.abandoned_on_failure():
            groups = self._pairs.groups()
            for plan in self._txn.client.interrupts.each(added):
                for base, replaces in groups:
                    self._write_group(plan, base, replaces)
            for plan in self._txn.client.interrupts.each([*added, *checked]):
                if plan.looks_for_duplicates:
                    self._check_unique(plan)

    def _write_group(self, plan: EntryPlan, base: Seq, replaces: bool) -> None:
        pairs, buffer = self._pairs, self._txn.buffer.of(plan)
        # An entry that a committed row has, and leaves as it is, is in a secondary index already.
        changed = plan.behaviour.writes and not plan.holds_rows
        if plan.behaviour.writes:
            entries = pairs.entries(plan, NEW, base, changed=changed)
            written = self._files.write(plan, entries, SegmentKind.DATA, fresh=not replaces)
            # Whether a unique key is free is looked up at the version that the rows are rebased on.
            checked_at = base if plan.holds_rows else self._rebase._at
            staged = [self._files.stage(plan, segment, checked_at, moves=True) for segment in written]
            for file in staged:
                self._txn.buffer.stage(buffer, file)
            merge_deleted(self._txn.parts.warehouse, self._txn.buffer, buffer, staged)
        if replaces:
            gone = pairs.entries(plan, OLD, base, whole=False, changed=changed)
            if plan.behaviour.writes:
                key = [column_name(c) for c, _ in plan.columns[: plan.key_width]]
                same = " AND ".join(f"w.{c} IS NOT DISTINCT FROM t.{c}" for c in key)
                taken = pairs.entries(plan, NEW, whole=False)
                gone = f"SELECT w.* FROM ({gone}) w ANTI JOIN ({taken}) t ON {same}"  # noqa: S608 - named by id
            for segment in self._files.write(plan, gone, SegmentKind.TOMBSTONES):
                self._txn.buffer.stage(buffer, self._files.stage(plan, segment, base, moves=True))

    def _check_unique(self, plan: EntryPlan) -> None:
        """Among the rows of the files, and against committed ones that the transaction leaves as they are. Rows in
        memory are checked against the files when they are added."""
        after, table = self._rebase.after, self._rebase.after.table
        unique = unique_of(after, plan)
        if unique is None:
            return
        names = [column_name(c) for c in unique.columns]
        entries = self._pairs.entries(plan, NEW, whole=False)
        key = [column_name(c) for c, _ in plan.columns[: plan.key_width]]
        columns = [replace(table.column_by_id[c], name=column_name(c)) for c, _ in plan.columns[: plan.key_width]]
        rest = plan_scan(
            table, plan.index, columns, self._committed(plan), self._hidden(plan), self._txn.parts.warehouse, "existing"
        )
        equals = "=" if unique.nulls_distinct else "IS NOT DISTINCT FROM"
        same = " AND ".join(f"n.{name} {equals} e.{name}" for name in names)
        shown = ", ".join(f"n.{name}" for name in names)
        own = " AND ".join(f"r.{name} IS NOT DISTINCT FROM o.{name}" for name in key)
        before = self._pairs.entries(plan, OLD, whole=False)
        others = f"SELECT r.* FROM ({rest.sql}) r ANTI JOIN ({before}) o ON {own}"  # noqa: S608 - named by id
        existing = f"SELECT {shown} FROM ({entries}) n JOIN ({others}) e ON {same} LIMIT 1"  # noqa: S608 - named by id
        scan = Scan(existing, rest.parameters, rest.relations)
        for hit in (*self._sorter.fetch(repeated_keys(entries, unique)), *self._sorter.fetch(existing, scan)):
            if plan.checks:
                raise duplicate_key(table, plan, hit)
            record_duplicate(self._txn, plan, duplicate_key(table, plan, hit))

    def _committed(self, plan: EntryPlan) -> SnapshotParts:
        if self._rebase._is_new:
            return SnapshotParts((), ())
        at = self._rebase._at
        return self._txn.block.image(self._rebase.after.table, plan.index, at).parts(at)

    def _hidden(self, plan: EntryPlan) -> Overlay:
        """The committed entries of rows in memory, which are removed by now and not added yet. Those of rows in files
        are known from the pairs: a file may have the key of another row in a primary index."""
        return Overlay(hidden_keys=self._txn.buffer.of(plan).overlay().hidden_keys)
