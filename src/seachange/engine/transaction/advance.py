"""How an open READ COMMITTED transaction goes on to the head, when others have changed tables that it has used.

What it has buffered is rebased (`rebase.py`): from then on it is as if its statements had been planned with the newer
version. Where that cannot be, the table has a limit: a statement that needs the table reads as of it, and the commit
rebases.

**Invariant:** the rows that a transaction has buffered fit the version that each of its statements plans with, up to
names. Rows that have gone on go back to a limit with a statement that reads as of it. If they were written to since, or
have lost a column or a key on the way, a statement that meets them there is refused (40001).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from seachange import errors
from seachange.engine.buffer.shapes import Limit
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.replica.schema_history import SchemaVersion
from seachange.engine.transaction.rebase import Rebase
from seachange.model.ids import DescriptorId, Seq
from seachange.model.schema.descriptor import Table
from seachange.model.schema.shape import has_same_plan, lost_parts

# What a commit would be refused for: the rows are left as they are, and the commit says so.
_REFUSALS = (errors.SerializationFailure, errors.IntegrityError, errors.DataError)


def is_current(txn: TransactionState, head: Seq) -> bool:
    """Whether all tables of the transaction are, at the head, the versions that it plans with."""
    newer = txn.epoch.schema(head).by_id
    if any(id_ not in newer or newer[id_].version != version for id_, version in txn.used.items()):
        return False
    if txn.pending and _outdated_labels(txn, newer):
        return False
    # What was undone may have brought back rows of an older version.
    fits = txn.buffer.fits.items()
    return not any(fit.table.version != newer[i].version and txn.buffer.writes_to(i) for i, fit in fits if i in newer)


def advance(txn: TransactionState, rebase: Rebase, head: Seq) -> None:
    """Makes `head` readable to the next statement, or sets limits for what it may not use there."""
    planned = txn.planned_versions()
    newer = txn.epoch.schema(head).by_id
    for id_, limit in tuple(txn.shapes.limits.items()):
        if limit.mark is not None and limit.mark != txn.buffer.mark():
            # Its rows have changed since, and may fit now.
            del txn.shapes.limits[id_]
    outdated = [
        id_
        for id_, version in planned.items()
        if not txn.pending.changed(id_)
        and id_ not in txn.shapes.limits
        and (id_ not in newer or newer[id_].version != version)
    ]
    if labelled := _outdated_labels(txn, newer):
        _relabel(txn, rebase, labelled, head)
    if not outdated:
        return
    txn.shapes.note_moved()
    written = [id_ for id_ in outdated if txn.buffer.writes_to(id_)]
    for id_ in outdated:
        if id_ not in written:
            _follow(txn, rebase, id_, newer.get(id_), planned[id_], head)
    for some in _groups(txn, rebase, written, planned, head):
        _move(txn, rebase, some, planned, head)


def retreat(txn: TransactionState, rebase: Rebase, seq: Seq) -> None:
    """The statement under way reads as of a limit: rows that have gone on from there go back with it."""
    schema = txn.epoch.schema(seq)
    for id_, fit in tuple(txn.buffer.fits.items()):
        then, limit = schema.by_id.get(id_), txn.shapes.limits.get(id_)
        if then is None or fit.table.version <= then.version or has_same_plan(fit.table, then):
            continue
        if txn.pending.changed(id_) or (limit is not None and limit.mark is None) or not txn.buffer.writes_to(id_):
            continue
        before = txn.buffer.before_rebase(id_, then.version)
        if before is None or before.fit is None or txn.buffer.has_files(before):
            continue
        # Its shape may be without them by now.
        if lost_parts(fit.table, before.fit.table):
            continue
        txn.buffer.put_back(before)
        txn.shapes.limits.pop(id_, None)
        txn.used[id_] = before.fit.table.version
        _move(txn, rebase, [id_], {id_: before.fit.table.version}, seq)


def _outdated_labels(txn: TransactionState, newer: Mapping[DescriptorId, Table]) -> dict[DescriptorId, int]:
    """Tables that the transaction has given labels at most, which hold up no other change, and of which others have
    published a version since: the one that the labels were given to."""
    known = {id_: txn.pending.change(id_) for id_ in txn.pending.ids if txn.pending.is_labelled(id_)}
    versions = {id_: change[0].version for id_, change in known.items() if change and isinstance(change[0], Table)}
    return {id_: version for id_, version in versions.items() if id_ not in newer or newer[id_].version != version}


def _relabel(txn: TransactionState, rebase: Rebase, labelled: Mapping[DescriptorId, int], head: Seq) -> None:
    """The labels are given to the newest versions."""
    try:
        is_moved = rebase.follow_labels(head)
    except _REFUSALS as problem:
        _raise_ended(problem)
        is_moved = False
    for id_, version in labelled.items():
        if is_moved:
            txn.shapes.limits.pop(id_, None)
            txn.used[id_] = txn.epoch.schema(head).by_id[id_].version
        else:
            txn.shapes.limits[id_] = Limit(_last_before(txn, id_, version, lambda _: False))


def _groups(
    txn: TransactionState, rebase: Rebase, written: Sequence[DescriptorId], planned: dict[DescriptorId, int], head: Seq
) -> Sequence[Sequence[DescriptorId]]:
    """All of them, if they can go on to the head together; else each by itself: one that cannot holds up no other."""
    if len(written) > 1 and not _moves_to(txn, rebase, written, planned, head):
        return [[id_] for id_ in written]
    return [written] if written else []


def _follow(
    txn: TransactionState, rebase: Rebase, id_: DescriptorId, now: Table | None, version: int, head: Seq
) -> None:
    """A table that was read, or of which rows are locked."""
    lost = txn.shapes.lost(now) if now is not None else None
    if lost is None or lost:
        seq = _last_before(txn, id_, version, lambda table: table is not None and not txn.shapes.lost(table))
        txn.shapes.limits[id_] = Limit(seq, lost)
    if now is not None:
        try:
            rebase.move([now], head)
        except _REFUSALS as problem:
            _raise_ended(problem)
            txn.shapes.limits[id_] = Limit(_last_before(txn, id_, version, lambda _: False))
            return
        txn.used[id_] = now.version


def _move(
    txn: TransactionState, rebase: Rebase, written: Sequence[DescriptorId], planned: dict[DescriptorId, int], head: Seq
) -> None:
    """Tables that were written to, as far as they can go together."""
    target = head
    while not _moves_to(txn, rebase, written, planned, target):
        # The newest change of one of them is left out.
        changes = [seq for id_ in written for seq, _ in txn.epoch.schemas.later(id_, planned[id_]) if seq <= target]
        target = Seq(max(changes) - 1)
    for id_ in written:
        later = txn.epoch.schemas.later(id_, txn.buffer.fits[id_].table.version)
        behind = (seq for seq, _ in later if target < seq <= head)
        other = next((seq for seq in behind if not _is_equal(txn, id_, txn.epoch.schema(seq))), None)
        if other is not None:
            txn.shapes.limits[id_] = Limit(Seq(other - 1), mark=txn.buffer.mark())
        elif id_ in txn.epoch.schema(head).by_id:
            txn.buffer.relabel(txn.epoch.schema(head).by_id[id_], head)
            txn.used[id_] = txn.epoch.schema(head).by_id[id_].version


def _moves_to(
    txn: TransactionState,
    rebase: Rebase,
    written: Sequence[DescriptorId],
    planned: dict[DescriptorId, int],
    target: Seq,
) -> bool:
    schema = txn.epoch.schema(target)
    if any(id_ not in schema.by_id for id_ in written):
        return False
    tables = [schema.by_id[id_] for id_ in written if schema.by_id[id_].version > planned[id_]]
    changed = [table for table in tables if not _is_equal(txn, table.id, schema)]
    if any(txn.shapes.used_of(table.id, txn.shapes.lost(table)) for table in changed):
        return False
    begin = txn.buffer.mark()
    try:
        rebase.move(changed, target)
    except _REFUSALS as problem:
        _raise_ended(problem)
        return False
    txn.buffer.note_rebased(begin)
    for table in changed:
        txn.shapes.forget_lost(table)
    for table in tables:
        txn.buffer.relabel(table, target)
        txn.used[table.id] = table.version
    return True


def _last_before(txn: TransactionState, id_: DescriptorId, version: int, fits: Callable[[Table | None], bool]) -> Seq:
    """The last sequence before the first change behind a version that does not fit."""
    return Seq(next(seq for seq, table in txn.epoch.schemas.later(id_, version) if not fits(table)) - 1)


def _is_equal(txn: TransactionState, id_: DescriptorId, schema: SchemaVersion) -> bool:
    """Whether rows of the buffer are what they would be if they had been written at another schema."""
    fit = txn.buffer.fits[id_]
    now = schema.by_id.get(id_)
    if now is None or not has_same_plan(fit.table, now):
        return False
    return _references(txn.epoch.schema(fit.seq), id_) == _references(schema, id_)


def _references(schema: SchemaVersion, id_: DescriptorId) -> set[tuple[object, ...]]:
    return {(child.id, key.id, key.state) for child, key in schema.references.get(id_, ())}


def _raise_ended(problem: errors.Error) -> None:
    if isinstance(problem, errors.StaleNode):
        raise problem
