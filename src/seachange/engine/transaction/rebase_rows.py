"""The rows that a transaction has in memory of those that it writes to a table, as the newest version of the table
sees them. Those in staged files go the same way in DuckDB (`rebase_files.py`).

**Invariant:** a value that others can see stays what it is. What was drawn for a row when rows were written again
is read from there; only for rows that come with the transaction are values drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seachange import errors
from seachange.engine.buffer.row_locks import claim_key
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import IndexBuffer, RowsFit
from seachange.engine.buffer.write_locks import LockedRow
from seachange.engine.encode.derive import Failures, compile_derivation
from seachange.engine.encode.write_plan import EntryPlan, compile_read, is_drawn_unseen, pick_columns
from seachange.model.ids import ColumnId, LayoutId, Seq
from seachange.model.schema.defaults import constant_value
from seachange.model.schema.descriptor import Column, Table
from seachange.model.states import State
from seachange.sql.duck.default_text import is_drawn
from seachange.storage.keys import Key
from seachange.storage.projection import compile_row

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """What a commit cannot be made to fit, and why."""

    what: str
    reason: str


# Everything else fits: indexes and constraints that come, go or change their state, columns that come, go or are
# converted, another primary key, names.
GONE = Refused("a table that is gone", "there is nothing left to write to")
OWN_CHANGE = Refused("a table that the transaction changes itself", "its own version was made from the older one")
OTHER_COLUMN = Refused("a column in the place of another", "a row has no value for it")
ACTION = Refused("a foreign key with an action", "rows of other tables would have to change with the commit")
ROW_GONE = Refused("a table without a row that it changes", "the row has gone with TRUNCATE")
KEY_TAKEN = Refused("a table with another row of the same key", "a concurrent transaction has inserted it")
LOCKED = Refused("a table without a row that it has locked", "others may have relied on its absence")


def refused(table: str, refusal: Refused) -> errors.SerializationFailure:
    return errors.SerializationFailure(
        detail=f"{table} has changed since the transaction planned its writes, which cannot be made to fit "
        f"{refusal.what}: {refusal.reason}"
    )


@dataclass(frozen=True, slots=True)
class Move:
    """The versions through which rows of a table go: from `old`, to which they conform, through each of `versions`, of
    which the last is the new one. The old version is current at `seq`. The versions need not be published."""

    old: Table
    versions: tuple[Table, ...]
    seq: Seq

    @property
    def now(self) -> Table:
        return self.versions[-1]

    @property
    def computed(self) -> frozenset[ColumnId]:
        """The columns whose values come from others, on the way from version to version."""
        columns = [column for table in self.versions for column in table.columns]
        return frozenset(c.id for c in columns if c.conversion is not None or (c.origin and self._came(c)))

    @property
    def lacking(self) -> list[Column]:
        """The columns that the rows have no, or other, values for, and that are not computed."""
        computed = self.computed
        return [column for column in self.now.columns if column.id not in computed and self._is_lacking(column)]

    def _is_lacking(self, column: Column) -> bool:
        before = self.old.column_by_id.get(column.id)
        if before is not None:
            # What a writer has drawn for a row that was there, others may have seen otherwise by now.
            return is_drawn_unseen(before) and self._has_values(column)
        if column.id in self._restored:
            return True
        has_value = column.default is not None or column.generated is not None or column.identity is not None
        return (has_value or column.is_row_id) and not column.virtual and column.frozen is None

    def _has_values(self, column: Column) -> bool:
        """Whether committed rows have values of a column that the old version did not show."""
        return column.state is State.PUBLIC or column.id in self._stored or column.id in self._restored

    @property
    def _restored(self) -> frozenset[ColumnId]:
        """Dropped columns that have come back on the way, with the values that rows had."""
        columns = [column for table in self.versions for column in table.columns]
        return frozenset(c.id for c in columns if c.restored_as_of is not None and self._came(c))

    @property
    def _stored(self) -> frozenset[ColumnId]:
        """The hidden columns whose values were drawn, once and for all, when the rows were written again on the way."""
        ends = [span[-1] for before, span in self.spans() if span[-1].primary.id != before.primary.id]
        return frozenset(column.id for table in ends for column in table.columns if is_drawn_unseen(column))

    def filled(self) -> Iterator[tuple[bool, list[Column]]]:
        """The columns that are lacking and not generated, by whether committed rows have values of them."""
        lacking = [column for column in self.lacking if column.generated is None]
        for has_values in (True, False):
            columns = [column for column in lacking if self._has_values(column) is has_values]
            if columns:
                yield has_values, columns

    def drawn_places(self, now: Table) -> dict[int, Column]:
        """The columns, by position, of which each row of a new primary index has a value of its own, in the version on
        the way with which it has become the primary one."""
        lacking = {column.id for column in self.lacking}
        return {
            place: column
            for place, column in enumerate(now.columns)
            if is_drawn_unseen(column) or (column.state is State.PUBLIC and column.id in lacking)
        }

    @property
    def absent(self) -> frozenset[ColumnId]:
        """The columns that rows in the old layout have no place for, or other values."""
        came = {c.id for c in self.now.columns if c.origin is not None and self._came(c)}
        return frozenset(came | {column.id for column in self.lacking})

    def _came(self, column: Column) -> bool:
        return column.id not in self.old.column_by_id

    def fits(self, plan: EntryPlan) -> bool:
        """Whether the entries of an index are what they should be; a row that lies in an older layout has no place for
        what it lacks."""
        stored = {column_id for column_id, _ in plan.columns}
        absent = self.absent
        return not absent or not (plan.holds_rows or absent & stored)

    def as_read(self, table: Table) -> Table:
        """A version on the way that knows the layouts of all rows that are committed by now."""
        later = (layout for layout in self.now.layouts if layout.id not in table.layout_by_id)
        # A later one may lack columns of its key: its own stays the last.
        return replace(table, layouts=(*later, *table.layouts))

    def spans(self) -> Iterator[tuple[Table, Sequence[Table]]]:
        """The versions in runs, each with the version before it, of which all but the last end where another index has
        become the primary one."""
        before, begun = self.old, 0
        for place, table in enumerate(self.versions):
            if table.primary.id != before.primary.id:
                yield before, self.versions[begun : place + 1]
                before, begun = table, place + 1
        if begun < len(self.versions):
            yield before, self.versions[begun:]


def move_of(txn: TransactionState, fit: RowsFit, now: Table) -> Move:
    """From the version that rows conform to, to a published one."""
    later = txn.epoch.schemas.versions(now.id, fit.table.version)
    return Move(fit.table, (*(table for table in later if table.version < now.version), now), fit.seq)


@dataclass(frozen=True, slots=True)
class Pair:
    """A row as it was before the transaction and as it leaves it, None where there is none; `base` is the snapshot at
    which it was written."""

    base: Seq
    old: Row | None
    new: Row | None


def rebase_rows(txn: TransactionState, buffer: IndexBuffer, move: Move, at: Seq) -> list[Pair]:
    """As the new version is at `at`, which the node has applied."""
    pairs = _bring(txn, list(_pairs(txn, move, buffer)), move, at, ROW_GONE)
    for has_values, lacking in move.filled():
        # A sequence may be as new as its column.
        with txn.snapshot.reading_at(at):
            pairs = _filled(txn, pairs, move.now, lacking, at if has_values else None)
    return pairs


def _bring(txn: TransactionState, pairs: list[Pair], move: Move, at: Seq, gone: Refused) -> list[Pair]:
    """Rows of an old version as the newest one sees them. The key of one primary index may have been drawn when the
    one before it was built: so from each to the next."""
    for before, span in move.spans():
        pairs, failed = _carry_pairs(txn, pairs, before, span)
        check_converted(txn, move.now, failed)
        if span[-1].primary.id != before.primary.id:
            pairs = _find_again(txn, pairs, move, span[-1], at, gone)
    return pairs


def _find_again(
    txn: TransactionState, pairs: Sequence[Pair], move: Move, now: Table, at: Seq, gone: Refused
) -> list[Pair]:
    """Another primary index knows nothing of what was written before it came: a row that it does not have would be
    back with the commit. One that was written since is a conflict. What was drawn for a row is known from there."""
    drawn, table = move.drawn_places(now), move.as_read(now)
    found = []
    for pair in txn.client.interrupts.each(_keyed(pairs, now)):
        seen = _seen(txn, table, pair.old, at) if pair.old is not None else None
        if seen is None and pair.old is not None:
            raise refused(now.name, gone)
        values = {place: seen[place] for place in drawn} if seen is not None else {}
        found.append(Pair(pair.base, _with(pair.old, values), _with(pair.new, values)))
    return found


def _keyed(pairs: Iterable[Pair], now: Table) -> Iterator[Pair]:
    """A row without a value for the new key is in no index that ends in it."""
    pick = pick_columns(now, now.primary.key)
    for pair in pairs:
        old = None if pair.old is None or None in pick(pair.old) else pair.old
        if old is not None or pair.new is not None:
            yield replace(pair, old=old)


def check_inserted(txn: TransactionState, pairs: Sequence[Pair], move: Move, at: Seq) -> None:
    """A row with a key that was free when it was written, and is not in an index with the same key, is a conflict: its
    statement, run again, would meet the other row."""
    if move.old.primary.key != move.now.primary.key or txn.pending.is_new(move.now):
        return
    for pair in txn.client.interrupts.each(pairs):
        if pair.old is None and pair.new is not None and _seen(txn, move.now, pair.new, at) is not None:
            raise refused(move.now.name, KEY_TAKEN)


# Rows that were locked.


def keep_locks(txn: TransactionState, locked: Sequence[LockedRow], now: Table, at: Seq) -> None:
    """Others know the rows by another primary key by now: a change of theirs is a conflict all the same."""
    plan = txn.parts.write_plan(now).primary
    for lock in txn.client.interrupts.each(locked):
        old = lock.table
        found = _committed(txn, old, txn.parts.write_plan(old).primary, lock.key, lock.snapshot)
        pairs = [Pair(lock.snapshot, found, None)] if found is not None else []
        for pair in _bring(txn, pairs, move_of(txn, RowsFit(old, lock.snapshot), now), at, LOCKED):
            assert pair.old is not None
            key = plan.stored(pair.old)[: plan.key_width]
            txn.write_locks.declare([claim_key(plan, key, lock.strength)], lock.snapshot)


# Rows of the buffer.


def _pairs(txn: TransactionState, move: Move, buffer: IndexBuffer) -> Iterator[Pair]:
    """As the old version sees them. The index may be younger than the statement that read a row: what was changed in
    between is a conflict."""
    table = move.old
    for _, _, entry in txn.client.interrupts.each(list(buffer.final())):
        seen = txn.block.whole_at(buffer.plan.index.id, max(entry.base, move.seq))
        old = _committed(txn, table, buffer.plan, entry.key, seen) if entry.existed else None
        yield Pair(entry.base, old, entry.row and _project(table, buffer.plan.layout_id, entry.row))


def _committed(txn: TransactionState, table: Table, plan: EntryPlan, key: Key, base: Seq) -> Row | None:
    found = txn.epoch.image(table, plan.index, base).get(key, base)
    return None if found is None else _project(table, found.layout_id, found.row)


def _project(table: Table, layout_id: LayoutId, row: Row) -> Row:
    project = compile_read(table, table.primary, layout_id)
    return row if project is None else project(row)


# From version to version.


def _carry_pairs(
    txn: TransactionState, pairs: Sequence[Pair], old: Table, versions: Sequence[Table]
) -> tuple[list[Pair], Failures]:
    gone, _ = carry(txn, [pair.old for pair in pairs if pair.old is not None], old, versions)
    new, failed = carry(txn, [pair.new for pair in pairs if pair.new is not None], old, versions)
    olds, news = iter(gone), iter(new)
    return [
        Pair(p.base, None if p.old is None else next(olds), None if p.new is None else next(news)) for p in pairs
    ], failed


def carry(txn: TransactionState, rows: list[Row], old: Table, versions: Sequence[Table]) -> tuple[list[Row], Failures]:
    """Rows of an old version as the newest one sees them: what was converted, by the expression in between, or by that
    of the old version, which files know nothing of."""
    failed = Failures()
    rows = _converted(txn, old, rows, failed)
    for table in versions:
        old, rows = _replace_columns(txn, old, table, rows, failed)
        project = compile_row(tuple((c.id, c.type) for c in old.columns), table.columns)
        rows = _converted(txn, table, rows if project is None else [project(row) for row in rows], failed)
        old = table
    return rows, failed


def _converted(txn: TransactionState, table: Table, rows: list[Row], failed: Failures) -> list[Row]:
    if all(column.conversion is None for column in table.columns):
        return rows
    return list(txn.parts.write_plan(table).derive(rows, txn.parts.duck, failed))


def _replace_columns(
    txn: TransactionState, old: Table, new: Table, rows: list[Row], failed: Failures
) -> tuple[Table, list[Row]]:
    """Columns that took the place of others in one version, when the table had no rows: no row has both."""
    came = [c for c in new.columns if c.origin is not None and c.id not in old.column_by_id]
    if not came or not rows:
        return old, rows
    inputs = {column_id for c in came if c.origin is not None for column_id in c.origin.columns}
    if inputs - old.column_by_id.keys():
        # A transaction has converted the column twice, and only the second way is known.
        raise refused(new.name, OTHER_COLUMN)
    hidden = [replace(c, conversion=c.origin, generated=None, state=State.VALIDATING) for c in came]
    both = replace(old, columns=(*old.columns, *hidden), secondary=())
    derivation = compile_derivation(both)
    assert derivation is not None
    return both, derivation.derive([(*row, *(None for _ in came)) for row in rows], txn.parts.duck, failed)


def check_converted(txn: TransactionState, now: Table, failed: Failures) -> None:
    """As long as a column is not in view, its change fails for a row without a value, and not the row."""
    for column_id, problem in failed.items():
        column = now.column_by_id.get(column_id)
        if column is not None and column.state is State.PUBLIC:
            # A statement in autocommit is run again.
            raise refused(now.name, OTHER_COLUMN) if txn.mode.autocommit else problem


# Values that are in no row of the buffer.


def _filled(
    txn: TransactionState, pairs: Sequence[Pair], now: Table, lacking: list[Column], at: Seq | None
) -> list[Pair]:
    """`at`: as of when rows that are there have values; None if they have none."""
    known = [
        _seen(txn, now, pair.old, at) if pair.old is not None and at is not None else None
        for pair in txn.client.interrupts.each(pairs)
    ]
    # All values of a column at once: some are computed by a query.
    own = sum(row is None for row in known)
    drawn = {now.columns.index(column): iter(_defaults(txn, column, own)) for column in lacking}
    filled = []
    for pair, row in zip(pairs, known, strict=True):
        values = {place: next(drawn[place]) if row is None else row[place] for place in drawn}
        filled.append(Pair(pair.base, _with(pair.old, values), _with(pair.new, values)))
    return filled


def _seen(txn: TransactionState, now: Table, old: Row, at: Seq) -> Row | None:
    """The row as it is committed now. If it is another by now, the commit is a conflict."""
    key = pick_columns(now, now.primary.key)(old)
    found = txn.epoch.image(now, now.primary, at).get(key, at)
    return None if found is None else _project(now, found.layout_id, found.row)


def _defaults(txn: TransactionState, column: Column, count: int) -> list[Any]:
    is_own = is_drawn(column) or column.is_row_id
    return txn.sequences.defaults(column, count) if is_own else [constant_value(column.type, column.default)] * count


def _with(row: Row | None, values: dict[int, Any]) -> Row | None:
    return None if row is None else tuple([values.get(place, value) for place, value in enumerate(row)])
