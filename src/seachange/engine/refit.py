"""A commit that was planned with an older version than its tables allow, made to fit the newest one.

The buffered rows stay as they are: a newer version reads the layout that they are in. What the newer version asks for
besides, entries of indexes that have come since, the primary one among them, and constraints that are enforced now, is
derived from the rows as they were before the transaction and as it leaves them. A column that was converted has its
values by the expression of a version in between.

**Invariant:** the entries that a refit adds are those that the statements would have written, had they been planned
with the newest version; uniqueness and references are checked at what the node has applied, and from there on by the
commit. What it takes out of an index, and the rows that it puts into a new primary one, conflict with whatever was
written since the statements read them.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seachange import errors
from seachange.engine.buffer import IndexBuffer, StagedFile
from seachange.engine.derive import Failures
from seachange.engine.fill import record_failures
from seachange.engine.foreign_key import ForeignKeys, WritingTransaction
from seachange.engine.writeplan import EntryPlan, WritePlan, compile_read
from seachange.engine.writes import RowWriter
from seachange.model.descriptor import Table
from seachange.model.ids import DescriptorId, IndexId, LayoutId, Seq
from seachange.model.references import Reference
from seachange.model.segments import SegmentKind
from seachange.storage.keys import Key
from seachange.storage.projection import compile_row

Row = tuple[Any, ...]
# When it was written, the row as it was before, and as it is then.
_Pair = tuple[Seq, Row | None, Row | None]

# Rows of files that the transaction has staged are held in memory while they are fitted.
STAGED_ROWS_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Refused:
    """What a commit cannot be made to fit, and why."""

    what: str
    reason: str


# Everything else fits: indexes and constraints that come, go or change their state, columns that come, go or are
# converted, another primary key, names.
GONE = Refused("a table that is gone", "there is nothing left to write to")
OWN_CHANGE = Refused("a table that the transaction changes itself", "its own version was made from the older one")
OTHER_COLUMN = Refused("a column in the place of another", "what was written to the old one would be lost")
NO_VALUE = Refused("a column with a default", "rows that were planned without it have no value for it")
ACTION = Refused("a foreign key with an action", "rows of other tables would have to change with the commit")
MANY_ROWS = Refused("a large load", "its rows do not fit in memory")


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a table that a transaction writes, as the newest version sees them: before and after, None where
    there is none."""

    table: Table
    pairs: Sequence[tuple[Row | None, Row | None]]
    # Of each pair the snapshot at which it was written.
    bases: Sequence[Seq]

    @property
    def new(self) -> list[Row]:
        return [new for _, new in self.pairs if new is not None]


class Refit:
    def __init__(self, txn: WritingTransaction, used: dict[DescriptorId, int], foreign_keys: ForeignKeys) -> None:
        self._txn = txn
        self._used = used
        self._foreign_keys = foreign_keys
        # What the buffer has been made to fit already: it may be fenced again.
        self._fits: dict[DescriptorId, Table] = {}

    def _check_objects(self, newest: Container[DescriptorId]) -> None:
        """What the tables of this transaction draw from or are made of may have been dropped."""
        for id_ in self._txn.relied:
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
        outdated = [id_ for id_, version in self._used.items() if id_ not in newest or newest[id_].version != version]
        written = [self._fitted(plan, newest.get(id_)) for id_ in outdated if (plan := before[id_]) is not None]
        added: list[IndexId] = []
        removed: list[IndexId] = []
        for rows, old in written:
            after = self._txn.parts.write_plan(rows.table)
            added += self._write(rows, old, after, at)
            removed += self._forget(old, after)
            self._fits[rows.table.id] = rows.table
        for id_ in outdated:
            if id_ in newest:
                self._used[id_] = newest[id_].version
            else:
                # It was only read, as of the snapshot.
                del self._used[id_]
        self._check_references([(rows, old.table) for rows, old in written], at)
        return added, removed

    def _plan_of(self, table_id: DescriptorId) -> EntryPlan | None:
        """The plan that the rows of a table were written with; None if none were."""
        for buffer in self._txn.buffer.indexes.values():
            if buffer.plan.table_id == table_id and buffer.plan.is_primary and not buffer.is_empty:
                return buffer.plan
        return None

    def _fitted(self, plan: EntryPlan, now: Table | None) -> tuple[_Rows, WritePlan]:
        if now is None:
            raise refused(str(plan.table_id), GONE)
        if self._txn.pending.changes(now):
            raise refused(now.name, OWN_CHANGE)
        old = self._fits.get(now.id) or self._txn.epoch.schema(self._txn.snapshot).by_id[now.id]
        versions = [t for t in self._txn.epoch.schemas.versions(now.id, old.version) if t.version <= now.version]
        _check_columns(old, versions)
        found = list(self._pairs(old, self._txn.buffer.indexes[plan.index.id]))
        gone, _ = self._carry([o for _, o, _ in found if o is not None], old, versions)
        new, failed = self._carry([n for _, _, n in found if n is not None], old, versions)
        self._check_converted(now, failed)
        olds, news = iter(gone), iter(new)
        pairs = [(None if o is None else next(olds), None if n is None else next(news)) for _, o, n in found]
        return _Rows(now, pairs, [base for base, _, _ in found]), self._txn.parts.write_plan(old)

    def _carry(self, rows: list[Row], old: Table, versions: Sequence[Table]) -> tuple[list[Row], Failures]:
        """Rows of an old version as the newest one sees them."""
        failed = Failures()
        for table in versions:
            project = compile_row(tuple((c.id, c.type) for c in old.columns), table.columns)
            rows = rows if project is None else [project(row) for row in rows]
            if any(column.conversion is not None for column in table.columns):
                rows = list(self._txn.parts.write_plan(table).derive(rows, self._txn.parts.duck, failed))
            old = table
        return rows, failed

    def _check_converted(self, now: Table, failed: Failures) -> None:
        """As long as a column is not in view, its change fails for a row without a value, and not the row."""
        for column_id, problem in failed.items():
            column = now.column_by_id.get(column_id)
            if column is not None and column.conversion is None:
                # What stands for itself is run again.
                raise refused(now.name, OTHER_COLUMN) if self._txn.stands_alone else problem

    # Rows.

    def _pairs(self, table: Table, buffer: IndexBuffer) -> Iterator[_Pair]:
        """As the version sees them that the buffer fits."""
        each = self._txn.client.interrupts.each
        for _, _, entry in each(list(buffer.final())):
            old = self._committed(table, buffer.plan, entry.key, entry.base) if entry.existed else None
            yield entry.base, old, None if entry.row is None else _project(table, buffer.plan.layout_id, entry.row)
        files = [*buffer.staged, *buffer.removed]
        if sum(file.segment.rows for file in files) > STAGED_ROWS_MAX:
            raise refused(table.name, MANY_ROWS)
        for file in files:
            yield from each(self._staged(table, buffer.plan, file))

    def _staged(self, table: Table, plan: EntryPlan, file: StagedFile) -> Iterator[_Pair]:
        reader = self._txn.parts.warehouse.reader(file.segment, plan.columns[: plan.key_width])
        for position, key in enumerate(reader.keys()):
            if position in file.deleted:
                continue
            old = None if file.segment.fresh else self._committed(table, plan, key, file.base)
            if file.segment.kind is SegmentKind.TOMBSTONES:
                yield file.base, old, None
            else:
                yield file.base, old, _project(table, file.segment.layout_id, reader.row(position))

    def _committed(self, table: Table, plan: EntryPlan, key: Key, base: Seq) -> Row | None:
        found = self._txn.epoch.image(table, plan.index, base).get(key, base)
        return None if found is None else _project(table, found.layout_id, found.row)

    # Entries.

    def _write(self, rows: _Rows, old: WritePlan, after: WritePlan, at: Seq) -> list[IndexId]:
        duck, failed = self._txn.parts.duck, Failures()
        gone = after.derive([o for o, _ in rows.pairs if o is not None], duck)
        new = after.derive(rows.new, duck, failed)
        bases_gone = [base for base, (o, _) in zip(rows.bases, rows.pairs, strict=True) if o is not None]
        bases_new = [base for base, (_, n) in zip(rows.bases, rows.pairs, strict=True) if n is not None]
        record_failures(self._txn, rows.table, failed)
        writer = RowWriter(
            after, self._txn.buffer, self._txn.epoch, self._txn.parts, at, False, self._txn.client.interrupts
        )
        writer.check(new)
        known = {plan.index.id: plan for plan in old.entries}
        added = [plan for plan in after.entries if plan.index.id not in known]
        for writer.base, row in zip(bases_gone, gone, strict=True):
            writer.remove_entries(added, row)
        for writer.base, row in zip(bases_new, new, strict=True):
            writer.check_required(row)
            writer.add_entries(added, row)
        for plan in after.entries:
            if plan.index.id in known and plan.checks and not known[plan.index.id].checks:
                self._check_unique(writer, plan, new)
        return [plan.index.id for plan in added if plan.index.id in self._txn.buffer.indexes]

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

    def _check_references(self, written: Sequence[tuple[_Rows, Table]], at: Seq) -> None:
        """At what is committed now, under the transaction's own rows."""
        txn = self._txn
        snapshot, txn.snapshot = txn.snapshot, at
        try:
            for rows, _ in written:
                self._foreign_keys.inserted(rows.table, rows.new)
            for rows, before in written:
                known = {(child.id, key.id, key.state) for child, key in self._references_at(snapshot, before)}
                for child, key in txn.references_to(rows.table):
                    is_new = (child.id, key.id, key.state) not in known
                    if is_new and self._foreign_keys.needs_action(rows.table, child, key, rows.pairs):
                        raise refused(child.name, ACTION)
            self._foreign_keys.settle_deferred()
        finally:
            txn.snapshot = snapshot

    def _references_at(self, snapshot: Seq, table: Table) -> Sequence[Reference]:
        return self._txn.epoch.schema(snapshot).references.get(table.id, ())


def _check_columns(old: Table, versions: Sequence[Table]) -> None:
    """A row that was written without a column reads as its frozen value, which a column of an empty table lacks."""
    now = versions[-1]
    gone = {column.name for column in old.columns if column.id not in now.column_by_id}
    converted = {column.id for table in versions for column in table.columns if column.conversion is not None}
    for column in now.columns:
        if column.id in old.column_by_id or column.id in converted or column.generated is not None:
            continue
        if column.name in gone:
            raise refused(now.name, OTHER_COLUMN)
        if column.frozen is None and (column.default is not None or column.identity is not None):
            raise refused(now.name, NO_VALUE)


def _project(table: Table, layout_id: LayoutId, row: Row) -> Row:
    project = compile_read(table, table.primary, layout_id)
    return row if project is None else project(row)


def refused(table: str, refusal: Refused) -> errors.SerializationFailure:
    return errors.SerializationFailure(
        detail=f"{table} has changed since the transaction planned its writes, which cannot be made to fit "
        f"{refusal.what}: {refusal.reason}"
    )
