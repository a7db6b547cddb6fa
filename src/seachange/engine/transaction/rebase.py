"""What a transaction has written, rebased on another version of its tables: while it is open, or when it commits and
the version that it was planned with is older than its tables allow.

`rebase_writes` does it for everything that a transaction has of some tables: rows in memory and staged files of bulk
writes. Each table comes as a `Move`: the version that the rows conform to, a sequence at which that is current, and the
versions up to the new one, which need not be published. Entries that the new version would not have written otherwise
stay as they are: a newer version reads the layout that they are in. What it asks for besides, entries of indexes that
have come since, the primary one among them, and constraints that are enforced now, is derived from the rows as they
were before the transaction and as it leaves them. A column that was converted has its values by the expression of a
version in between. The buffers are replaced by new ones, which the journal undoes; the caller resets the buffer to a
mark of its own if the rebase fails.

**Invariant:** the entries that a rebase adds are those that the statements would have written, had they been planned
with the newest version; uniqueness and references are checked at what the node has applied, and from there on by the
commit. What it takes out of an index, and the rows that it puts into a new primary one, conflict with whatever was
written since the statements read them: the base of a write stays.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from seachange import errors
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import RowsFit
from seachange.engine.bulk.bulk_constraints import check_references
from seachange.engine.constraints.foreign_key import ForeignKeys, is_checked
from seachange.engine.encode.write_plan import EntryPlan, pick_columns
from seachange.engine.reads.row_reads import RowReads
from seachange.engine.transaction.rebase_entries import RebasedTable, TableRebase
from seachange.engine.transaction.rebase_rows import (
    ACTION,
    GONE,
    OWN_CHANGE,
    Move,
    keep_locks,
    move_of,
    refused,
)
from seachange.engine.transaction.undo import Undo
from seachange.model.ids import ConstraintId, DescriptorId, Seq
from seachange.model.scan import Scan
from seachange.model.schema.constraint import ForeignKey
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor, is_relabelled
from seachange.model.schema.references import Reference
from seachange.model.schema.shape import has_same_plan
from seachange.model.states import State
from seachange.storage.keys import Key

_Reference = tuple[DescriptorId, ConstraintId, State]


class Rebase:
    def __init__(self, txn: TransactionState, reads: RowReads, foreign_keys: ForeignKeys, undo: Undo) -> None:
        self._txn = txn
        self._used = txn.used
        self._reads = reads
        self._foreign_keys = foreign_keys
        self._undo = undo

    def _check_objects(self, newest: Container[DescriptorId]) -> None:
        """What the tables of this transaction draw from or are made of may have been dropped."""
        for id_ in self._txn.declared.relied:
            if id_ not in newest:
                raise errors.SerializationFailure(detail=f"object {id_}, which a change refers to, was dropped")

    def run(self) -> None:
        """Brings the buffer up to the newest versions, for a commit."""
        epoch = self._txn.epoch
        at = epoch.catch_up()
        newest = epoch.schema(at).by_id
        self._check_objects({*newest, *epoch.schema(at).objects})
        planned = {id_: self._version_of(id_) for id_ in self._used}
        # A version of its own is compared with the published one by the catalog.
        outdated = [
            id_
            for id_, version in planned.items()
            if not self._txn.pending.changed(id_) and (id_ not in newest or newest[id_].version != version)
        ]
        for id_ in outdated:
            if id_ in newest:
                self._follow(newest[id_], at)
            else:
                self._drop(id_)
        written = [newest[id_] for id_ in outdated if id_ in newest and self._plan_of(id_) is not None]
        self._rebase([table for table in written if not self._fits_as_it_is(table, at)], at)
        for id_ in outdated:
            if id_ in newest:
                self._used[id_] = newest[id_].version
                # It may be fenced again.
                self._txn.buffer.relabel(newest[id_], at)
            else:
                # It was only read, as of the snapshot.
                del self._used[id_]
        with self._txn.snapshot.reading_at(at):
            self._foreign_keys.check_deferred()

    def move(self, tables: Sequence[Table], at: Seq) -> None:
        """The same for a transaction that goes on: these versions, as of `at`, are what it plans with from now on. If
        that cannot be, all is left as it was."""
        mark = self._undo.mark()
        try:
            for table in tables:
                self._follow(table, at)
            self._rebase([table for table in tables if self._plan_of(table.id) is not None], at)
        except BaseException:
            self._undo.reset(mark)
            raise

    def adopt(self, changes: Sequence[tuple[Table, tuple[Table, ...]]], at: Seq) -> None:
        """The transaction itself has changed tables, each by these versions: what it has written conforms to the one
        before."""
        moves = []
        for before, versions in changes:
            if self._plan_of(before.id) is None:
                soft = self._txn.pending.soft_indexes(before.id)
                self._txn.buffer.rebase(self._txn.parts.write_plan(versions[-1]), (), at, soft)
                continue
            fit = self._txn.buffer.fits.get(before.id)
            moves.append(Move(before, versions, fit.seq if fit is not None else self._txn.snapshot.seq))
        rebase_writes(self._txn, self._reads, self._foreign_keys, moves, at)

    def follow_rewritten(self) -> None:
        """What was undone may have brought back rows that lie in a primary index, or refer to one, which child
        transactions have replaced since. If the transaction has changed no such table itself, the next statement finds
        them."""
        txn, at = self._txn, self._txn.epoch.catch_up()
        newest = txn.epoch.schema(at).by_id
        changes = []
        for id_, fit in txn.buffer.fits.items():
            own = txn.pending.change(id_)
            now = own[1] if own is not None else newest.get(id_)
            if isinstance(now, Table) and _is_replaced(fit.table, now):
                changes.append((fit.table, (now,) if own is not None else move_of(txn, fit, now).versions))
        if any(txn.pending.changes(before) for before, _ in changes):
            self.adopt(changes, at)
            self._used.update({now.id: now.version for _, (*_, now) in changes if not txn.pending.changes(now)})

    def relabel(self, at: Seq) -> bool:
        """Changes of labels, by this transaction or by others, are made to the versions as of `at`, and its rows are
        rebased on them. Returns False if there is none, or if both sides have changed more than labels."""
        txn, schema = self._txn, self._txn.epoch.schema(at)
        known = {id_: txn.pending.change(id_) for id_ in txn.pending.ids}
        newest: dict[DescriptorId, Descriptor] = {**schema.by_id, **schema.objects}
        relabelled = {
            id_ for id_, change in known.items() if change and self._is_relabelled(change[0], newest.get(id_))
        }
        if not txn.pending.rebase(newest, relabelled):
            return False
        moves = []
        for id_, change in known.items():
            (committed, old), (now, new) = change or (None, None), txn.pending.change(id_) or (None, None)
            fit = txn.buffer.fits.get(id_)
            if new is not old and isinstance(now, Table):
                self._follow(now, at)
            if new is old or not isinstance(old, Table) or not isinstance(new, Table) or fit is None:
                continue
            if committed is not None and now is not None and not has_same_plan(old, new) and self._plan_of(id_):
                later = txn.epoch.schemas.versions(id_, committed.version)
                moves.append(Move(old, (*(table for table in later if table.version <= now.version), new), fit.seq))
        if moves:
            rebase_writes(txn, self._reads, self._foreign_keys, moves, at)
        return True

    def follow_labels(self, at: Seq) -> bool:
        """The same for a transaction that goes on. If that cannot be, all is left as it was."""
        mark = self._undo.mark()
        try:
            return self.relabel(at)
        except BaseException:
            self._undo.reset(mark)
            raise

    def _is_relabelled(self, before: Descriptor | None, now: Descriptor | None) -> bool:
        """Whether others have given no more than labels to a descriptor, one after the other."""
        if before is None or now is None:
            return False
        between = self._txn.epoch.schemas.versions(before.id, before.version)
        steps = [before, *(table for table in between if table.version < now.version), now]
        return all(map(is_relabelled, steps, steps[1:]))

    def _rebase(self, tables: Sequence[Table], at: Seq) -> None:
        for table in tables:
            if self._txn.pending.changes(table):
                raise refused(table.name, OWN_CHANGE)
        fits = self._txn.buffer.fits
        moves = [move_of(self._txn, fits[table.id], table) for table in tables]
        rebase_writes(self._txn, self._reads, self._foreign_keys, moves, at)

    def _fits_as_it_is(self, now: Table, at: Seq) -> bool:
        """Whether rows that were written with the version before are as they would be with this one, and no other
        foreign key refers to the table."""
        fit = self._txn.buffer.fits.get(now.id) or self._at_snapshot(now.id)
        return (
            fit is not None
            and has_same_plan(fit.table, now)
            and _references(self._txn, fit.seq, now) == _references(self._txn, at, now)
        )

    def _at_snapshot(self, table_id: DescriptorId) -> RowsFit | None:
        snapshot = self._txn.snapshot.seq
        before = self._txn.epoch.schema(snapshot).by_id.get(table_id)
        return None if before is None else RowsFit(before, snapshot)

    def _version_of(self, table_id: DescriptorId) -> int:
        fit = self._txn.buffer.fits.get(table_id)
        return self._used[table_id] if fit is None or self._plan_of(table_id) is None else fit.table.version

    def _plan_of(self, table_id: DescriptorId) -> EntryPlan | None:
        """The plan that the rows of a table were written with; None if none were."""
        for buffer in self._txn.buffer.indexes.values():
            if buffer.plan.table_id == table_id and buffer.plan.is_primary and not buffer.is_empty:
                return buffer.plan
        return None

    def _drop(self, table_id: DescriptorId) -> None:
        """Rows of a dropped table that only foreign keys have changed may be lost with it."""
        if not self._txn.buffer.writes_to(table_id):
            return
        if table_id in self._txn.declared.addressed:
            raise refused(self._name_of(table_id), GONE)
        self._txn.buffer.replace(table_id, {})

    def _name_of(self, table_id: DescriptorId) -> str:
        """The name of a table that has rows in the buffer. Those of a table that this transaction creates conform to
        its own version, and are not among the fits."""
        fit, change = self._txn.buffer.fits.get(table_id), self._txn.pending.change(table_id)
        known = fit.table if fit is not None else change and change[1]
        return known.name if known else f"table {table_id}"

    # Rows that were locked.

    def follow_locks(self, now: Table, at: Seq) -> None:
        """The rows of a table that the transaction has locked are locked in what holds them now."""
        self._follow(now, at)

    def _follow(self, now: Table, at: Seq) -> None:
        """What holds the rows now may be another index than the one by which they are known to have been locked."""
        declared = self._txn.declared
        for table in {row.table.version: row.table for row in declared.locked if row.table.id == now.id}.values():
            later = self._txn.epoch.schemas.versions(now.id, table.version)
            if any(t.primary.id != table.primary.id for t in later if t.version <= now.version):
                rows = [row for row in declared.locked if row.table.id == now.id and row.table.version == table.version]
                keep_locks(self._txn, rows, now, at)


def _is_replaced(old: Table, now: Table) -> bool:
    parents = {key.id: key.parent_index for key in now.foreign_keys}
    moved = any(parents.get(key.id, key.parent_index) != key.parent_index for key in old.foreign_keys)
    return moved or old.primary.id not in now.index_by_id


def rebase_writes(
    txn: TransactionState, reads: RowReads, foreign_keys: ForeignKeys, moves: Sequence[Move], at: Seq
) -> None:
    """Rewrites everything that the transaction has written to some tables (rows in memory and staged files) from one
    version of them to another. See the top of the module."""
    with txn.snapshot.reading_at(at):
        new = {move.now.id: list(_new_references(txn, move)) for move in moves}
    written = []
    for move in moves:
        indexes = {key.parent_index for _, key in new[move.now.id] if is_checked(key)}
        written.append(TableRebase(txn, move, at).run(indexes))
    with txn.snapshot.reading_at(at):
        for rebased in written:
            # Those that were written before a foreign key of this transaction that is NOT VALID.
            unchecked = {k.id for k in rebased.table.foreign_keys if _is_unchecked(txn, rebased.table, k)}
            foreign_keys.inserted(rebased.table, rebased.new, unchecked)
            for key in rebased.table.foreign_keys:
                if key.id in rebased.referred and key.id not in unchecked:
                    rows = Scan("SELECT * FROM referred", {}, {"referred": rebased.referred[key.id]})
                    check_references(txn, reads, rebased.table, key, rows, foreign_keys)
        for rebased in written:
            for child, key in new[rebased.table.id]:
                if foreign_keys.needs_action(child, key, _left_keys(rebased, key)):
                    raise refused(child.name, ACTION)


def _left_keys(rebased: RebasedTable, key: ForeignKey) -> set[Key]:
    """The keys that rows of the transaction no longer have."""
    pick = pick_columns(rebased.table, rebased.table.index_by_id[key.parent_index].key)
    left = {k for pair in rebased.pairs if pair.old is not None and None not in (k := pick(pair.old))}
    left -= {pick(pair.new) for pair in rebased.pairs if pair.new is not None}
    return left | set(rebased.left.get(key.parent_index, ()))


def _new_references(txn: TransactionState, move: Move) -> Iterator[Reference]:
    """Foreign keys that the statements did not know of which wrote the rows."""
    known = _references(txn, move.seq, move.old)
    return (
        found
        for found in txn.schema.references_to(move.now)
        if (found[0].id, found[1].id, found[1].state) not in known and not _is_unchecked(txn, *found)
    )


def _is_unchecked(txn: TransactionState, child: Table, key: ForeignKey) -> bool:
    return key.not_valid and key.state is not State.PUBLIC and txn.pending.adds_reference(child.id, key.id)


def _references(txn: TransactionState, at: Seq, table: Table) -> set[_Reference]:
    references = txn.epoch.schema(at).references.get(table.id, ())
    return {(child.id, key.id, key.state) for child, key in references}
