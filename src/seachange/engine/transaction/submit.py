"""From a transaction's buffer to a commit in the log.

The buffer becomes inline batches or, when it is large, sorted segments; staged files from which rows were removed
are written again. The request is validated, submitted, and submitted again as long as the sequencer asks for it.

**Invariant:** a refusal leaves the buffer and the staged files as they were, unless the buffer `is_adapted`: the
transaction may be resumed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from itertools import count

import numpy as np

from seachange import errors
from seachange.engine.buffer.segment_staging import abandon, write_rows, write_without
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import Entry, IndexBuffer, StagedFile, listed_keys
from seachange.engine.bulk.entry_files import hash_entries
from seachange.engine.constraints.foreign_key import ForeignKeys
from seachange.engine.constraints.uncommitted import (
    committed_violation,
    concurrent_violation,
    dropped_constraints,
    forget_dropped_references,
    is_uncommitted,
    recorded,
)
from seachange.engine.context.change_log import log_published
from seachange.engine.encode.write_plan import EntryPlan
from seachange.engine.replica.committer import LocalRows, Submission
from seachange.engine.transaction.change_history import encode_history
from seachange.engine.transaction.look_again import LOOKS_MAX, forget_committed, look_again
from seachange.engine.transaction.rebase import Rebase
from seachange.engine.transaction.soft_keys import SoftKeys
from seachange.engine.transaction.validate import WriteSet, conflict_with, read_successors, validate
from seachange.model.ids import CommitId, DescriptorId, IndexId, KeyHash, Seq
from seachange.model.log import (
    BelowFloor,
    Burned,
    CommitBlocked,
    CommitRequest,
    Committed,
    Conflict,
    Fenced,
    Outcome,
    Refusal,
    Revalidate,
    StaleEpoch,
    Superseded,
    VersionRaise,
)
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Database
from seachange.model.schema.objects import Schema as SchemaObject
from seachange.model.segments import InlineBatch, Op, Segment, SegmentKind
from seachange.storage.batches import seal_batch
from seachange.storage.keys import Hashes, rows_hash, unsaid_hash

# So often a bulk write is sent back to be checked outside the lock before it lists its keys.
UNLISTED_ATTEMPTS = 3
# Reads under conditions have no keys to list: after so many rounds on a table that never rests the commit is refused.
ATTEMPTS_MAX = 100
# So often a commit is made to fit a newer version of its tables.
REBASES_MAX = 10


@dataclass(slots=True)
class _Draft:
    """A commit as it is put together."""

    writes: dict[KeyHash, Seq] = field(default_factory=dict)
    touched: list[IndexId] = field(default_factory=list)
    bulk: list[IndexId] = field(default_factory=list)
    batches: list[InlineBatch] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    local: list[LocalRows] = field(default_factory=list)
    # Of a SERIALIZABLE transaction: indexes that no other commit may touch unseen, and keys that it has read.
    watched: list[IndexId] = field(default_factory=list)
    read_keys: list[KeyHash] = field(default_factory=list)
    # Keys that a bulk write lists, with its snapshot.
    listed: list[tuple[Hashes, Seq]] = field(default_factory=list)
    # Keys of constraints that are not committed.
    soft: SoftKeys = field(default_factory=SoftKeys)
    # Of tables of which it changes or deletes rows.
    changed_rows: set[KeyHash] = field(default_factory=set)
    # Staged files that others of this draft take the place of.
    replaced: list[Segment] = field(default_factory=list)

    def clear(self) -> None:
        for each in fields(self):
            getattr(self, each.name).clear()


def commit_transaction(txn: TransactionState, rebase: Rebase, foreign_keys: ForeignKeys, resumes: bool) -> Seq | None:
    """`resumes`: its statements can be run again from the first one that met a conflict. After a refusal the staged
    files are the transaction's to keep or to abandon."""
    draft = _Draft()
    try:
        _fill(txn, draft)
        if not draft.touched and not txn.pending and not txn.declared.jobs:
            return None
        with txn.parts.meters.commit():
            committed = _submit(txn, draft, rebase, foreign_keys, resumes)
        _abandon(txn, [*txn.buffer.useless_segments(), *draft.replaced])
        return committed
    except (errors.UnknownCommitOutcome, errors.CatalogUnavailable):
        # It is unknown whether the files are referred to: they stay intents of this epoch.
        raise
    except errors.Error:
        _abandon_own(txn, draft)
        raise


def _fill(txn: TransactionState, draft: _Draft) -> None:
    if txn.pending:
        forget_dropped_references(txn)
    lost = _lost_tables(txn) if txn.pending else ()
    for buffer in txn.buffer.indexes.values():
        if buffer.plan.table_id in lost:
            draft.replaced += [file.segment for file in (*buffer.staged, *buffer.removed)]
            continue
        _add_entries(txn, draft, buffer)
        _add_staged(txn, draft, buffer)
    _add_published_keys(txn, draft)
    draft.listed += txn.buffer.listed
    draft.watched += txn.read_set.indexes
    _add_declared(txn, draft)


def _lost_tables(txn: TransactionState) -> set[DescriptorId]:
    """Tables that the transaction drops, and has rewritten before. What is kept of a dropped table is the version that
    is published: it knows neither the index nor the layout of the rows that the transaction has written since."""
    lost: set[DescriptorId] = set()
    for plan in (buffer.plan for buffer in txn.buffer.indexes.values() if buffer.plan.is_primary):
        before, after = txn.pending.change(plan.table_id) or (None, None)
        if after is not None or not isinstance(before, Table):
            continue
        if plan.index.id != before.primary.id or plan.layout_id not in before.layout_by_id:
            lost.add(plan.table_id)
    return lost


def _abandon_own(txn: TransactionState, draft: _Draft) -> None:
    """The files that were written for this draft alone."""
    staged = {segment.id for segment in txn.buffer.staged_segments()}
    _abandon(txn, [segment for segment in draft.segments if segment.id not in staged])


def _add_declared(txn: TransactionState, draft: _Draft) -> None:
    """Rows that were locked, and changes of descriptors."""
    for created in txn.pending.created():
        if isinstance(created, Database):
            draft.writes[unsaid_hash(ObjectKind.DATABASE.value, created.name, created.name)] = txn.epoch.applied
        elif isinstance(created, SchemaObject):
            draft.writes[unsaid_hash(ObjectKind.SCHEMA.value, created.database, created.name)] = txn.epoch.applied
    dropped = dropped_constraints(txn)
    changed = {key: base for key, base in txn.declared.changed.items() if key not in dropped}
    for keys in (txn.write_locks.writes, changed):
        for key, base in keys.items():
            draft.writes[key] = min(base, draft.writes.get(key, base))


def _add_entries(txn: TransactionState, draft: _Draft, buffer: IndexBuffer) -> None:
    final = list(buffer.final())
    if not final:
        return
    draft.touched.append(buffer.plan.index.id)
    for op, encoded, entry in txn.client.interrupts.each(final):
        _add_hashes(txn, draft, buffer.plan, op, encoded, entry)
    if len(final) > txn.parts.inline_rows_max:
        _add_files(txn, draft, buffer, final)
        return
    plan = buffer.plan
    ops = [int(op) for op, _, _ in final]
    rows = [entry.row if entry.row is not None else buffer.tombstone_row(entry) for _, _, entry in final]
    payload = plan.batch.encode(ops, rows)
    draft.batches.append(seal_batch(plan.index.id, plan.layout_id, len(rows), payload))
    draft.local.append(LocalRows(plan.index.id, plan.layout_id, ops, rows))


def _add_hashes(txn: TransactionState, draft: _Draft, plan: EntryPlan, op: Op, encoded: bytes, entry: Entry) -> None:
    if plan.holds_rows and op is not Op.INSERT:
        draft.changed_rows.add(rows_hash(plan.table_id))
    for key in listed_keys(plan, op, encoded, entry):
        if is_uncommitted(txn, plan):
            draft.soft.add(key, plan, entry)
        else:
            draft.writes[key] = entry.base


def _add_files(txn: TransactionState, draft: _Draft, buffer: IndexBuffer, final: list[tuple[Op, bytes, Entry]]) -> None:
    ordered = sorted(final, key=lambda item: item[1])
    puts = [entry.row for _, _, entry in ordered if entry.row is not None]
    fresh = all(op is Op.INSERT for op, _, entry in ordered if entry.row is not None)
    gone = [entry.key for _, _, entry in ordered if entry.row is None]
    draft.segments += write_rows(txn, buffer.plan, puts, SegmentKind.DATA, fresh)
    draft.segments += write_rows(txn, buffer.plan, gone, SegmentKind.TOMBSTONES, fresh=False)


def _add_staged(txn: TransactionState, draft: _Draft, buffer: IndexBuffer) -> None:
    files = [*buffer.staged, *buffer.removed]
    if not files:
        return
    index_id = buffer.plan.index.id
    if any(file.hashes is None for file in files):
        draft.bulk.append(index_id)
    if is_uncommitted(txn, buffer.plan):
        draft.soft.add_files(files)
    else:
        draft.listed += [(file.hashes, file.base) for file in files if file.hashes is not None]
    if buffer.hiding:
        draft.changed_rows.add(rows_hash(buffer.plan.table_id))
    if index_id not in draft.touched:
        draft.touched.append(index_id)
    for file in files:
        draft.segments += _remaining(txn, draft, file)


def _add_published_keys(txn: TransactionState, draft: _Draft) -> None:
    """Rows of other sessions refer to keys that this transaction gives up, by an index that it is about to replace."""
    for index_id, published in txn.pending.published_keys().items():
        buffer = txn.buffer.indexes.get(index_id)
        if buffer is None:
            continue
        plan = replace(buffer.plan, index=replace(buffer.plan.index, id=published))
        for op, encoded, entry in buffer.final():
            for key in listed_keys(plan, op, encoded, entry) if op is Op.TOMBSTONE else ():
                draft.writes[key] = min(entry.base, draft.writes.get(key, entry.base))
        draft.listed += [(hash_entries(txn, plan, file.segment, moves=True), file.base) for file in buffer.removed]


def _remaining(txn: TransactionState, draft: _Draft, file: StagedFile) -> list[Segment]:
    if not file.deleted:
        return [file.segment]
    draft.replaced.append(file.segment)
    return write_without(txn, file.plan, file.segment, np.array(sorted(file.deleted), dtype=np.int64))


def _submit(txn: TransactionState, draft: _Draft, rebase: Rebase, foreign_keys: ForeignKeys, resumes: bool) -> Seq:
    validated = oldest = _oldest(txn, draft)
    sent_back, fenced, relabelled, looks, is_listed = count(), count(), count(), count(), False
    while True:
        # The last check for an interrupt: what is sent may be committed.
        txn.client.interrupts.check()
        # By what is applied here; whatever was taken away since sends the commit back by its version.
        txn.rights.validate()
        draft.soft.resolve(txn, draft.writes, draft.listed)
        keys = _write_set(txn, draft, oldest)
        try:
            validated = validate(txn, keys, validated)
        except errors.SerializationFailure as problem:
            if next(looks) < LOOKS_MAX and _are_resolved(txn, draft, foreign_keys):
                continue
            _note_conflicts(txn, keys)
            raise _violation(txn) or problem from problem
        if draft.soft.resolve(txn, draft.writes, draft.listed):
            # The node has applied more since they were resolved.
            continue
        if txn.declared.constraints and (violated := concurrent_violation(txn)) is not None:
            if next(looks) < LOOKS_MAX and _are_resolved(txn, draft, foreign_keys):
                continue
            raise violated
        request = _request(txn, draft, oldest, validated)
        outcome = _send(txn, Submission(request, tuple(draft.local)))
        match outcome:
            case Committed(seq=seq):
                log_published(txn.parts.log, request.change, seq)
                txn.write_locks.held.note_committed()
                return seq
            case Revalidate():
                attempt = next(sent_back)
                if attempt >= ATTEMPTS_MAX:
                    raise refusal(outcome, txn)
                if attempt == UNLISTED_ATTEMPTS:
                    is_listed = True
                    _list_all(txn, draft)
                txn.epoch.catch_up()
            case Conflict():
                txn.epoch.catch_up()
                if draft.soft.resolve(txn, draft.writes, draft.listed):
                    # Other keys of the commit are compared again.
                    continue
                if next(looks) < LOOKS_MAX and _are_resolved(txn, draft, foreign_keys):
                    continue
                _note_conflicts(txn, keys)
                raise _violation(txn) or refusal(outcome, txn)
            case Fenced() if next(fenced) < REBASES_MAX:
                rebase.relabel(txn.epoch.catch_up())
                txn.buffer.note_adapted()
                _redraft(txn, draft, rebase, is_listed)
                oldest = _oldest(txn, draft)
            case Superseded() if next(relabelled) < REBASES_MAX and rebase.relabel(txn.epoch.catch_up()):
                _redraft(txn, draft, rebase, is_listed)
                oldest = _oldest(txn, draft)
            case CommitBlocked(key=key, strength=strength) if txn.statement.context.waits:
                txn.write_locks.wait_for(key, strength, resumes)
            case _:
                raise refusal(outcome, txn)


def _write_set(txn: TransactionState, draft: _Draft, oldest: Seq) -> WriteSet:
    shares = {**draft.soft.without_references(txn), **txn.rights.shares()}
    return WriteSet(draft.writes, shares, oldest, draft.listed)


def _list_all(txn: TransactionState, draft: _Draft) -> None:
    _list_keys(txn, draft)
    _list_reads(txn, draft)


def _oldest(txn: TransactionState, draft: _Draft) -> Seq:
    staged = [file.base for b in txn.buffer.indexes.values() for file in (*b.staged, *b.removed)]
    listed = [base for _, base in draft.listed]
    soft = [key.base for key in draft.soft.unique.values()]
    return min([*draft.writes.values(), *soft, *txn.declared.shares.values(), *staged, *listed, txn.snapshot.seq])


def _send(txn: TransactionState, submission: Submission) -> Outcome:
    contention, commit_id = txn.epoch.contention, submission.request.commit_id
    contention.send(commit_id)
    outcome: Outcome | None = None
    try:
        outcome = txn.epoch.committer.submit(submission)
    finally:
        if not isinstance(outcome, Committed):
            contention.refuse(commit_id)
    return outcome


def _note_conflicts(txn: TransactionState, keys: WriteSet) -> None:
    """What others have written meanwhile: the statements that wrote it may be run again, and it is contended."""
    with txn.epoch.lock:
        met = txn.epoch.conflicts.find_all(keys.writes, keys.shares)
    txn.write_locks.note_conflicts(met)


def _violation(txn: TransactionState) -> errors.Error | None:
    """Why a commit conflicts by the key of a constraint, if it does."""
    return committed_violation(txn) or concurrent_violation(txn)


def _are_resolved(txn: TransactionState, draft: _Draft, foreign_keys: ForeignKeys) -> bool:
    """Whether violations were recorded, by this transaction or of what it adds, that need not refuse the commit."""
    return any([forget_committed(txn), look_again(txn, foreign_keys, draft.writes)])


def _redraft(txn: TransactionState, draft: _Draft, rebase: Rebase, is_listed: bool) -> None:
    """With the buffer on the newest versions of its tables."""
    rebase.run()
    _abandon_own(txn, draft)
    draft.clear()
    _fill(txn, draft)
    if is_listed:
        _list_all(txn, draft)


def _list_keys(txn: TransactionState, draft: _Draft) -> None:
    """On a busy table another transaction always commits between the check and the lock. A bulk write that lists its
    keys is checked under the lock like any other, at the cost of a hash for each of its rows."""
    for index_id in draft.bulk:
        plan = txn.buffer.indexes[index_id].plan
        for file in txn.buffer.indexes[index_id].staged:
            if file.hashes is not None:
                continue
            reader = txn.parts.warehouse.reader(file.segment, plan.columns[: plan.key_width])
            for key in reader.keys():  # noqa: SIM118 - not a dict
                entry = Entry(key, key, existed=False, base=file.base)
                _add_hashes(txn, draft, plan, Op.INSERT, plan.codec.encode(key), entry)
    draft.bulk.clear()


def _list_reads(txn: TransactionState, draft: _Draft) -> None:
    """In the same way, reads by key. A writer of one of them from below then conflicts too, which it need not. A table
    that was scanned has no keys to list: touched again, it is a conflict anyway, or has to be looked at again."""
    draft.read_keys += txn.read_set.keys
    draft.watched = [*txn.read_set.scanned, *txn.read_set.conditional]
    # A bulk write that brings a key which was looked for lists none: it must not pass unseen.
    draft.touched += txn.read_set.keyed - set(draft.touched)


def _request(txn: TransactionState, draft: _Draft, oldest: Seq, validated: Seq) -> CommitRequest:
    rows = CommitRequest(
        commit_id=CommitId(txn.parts.entropy.token(16)),
        validated=validated,
        oldest=oldest,
        versions=tuple({**_relied_versions(txn), **txn.pending.versions()}.items()),
        writes=_written(txn, draft),
        shares=tuple({*txn.declared.shares, *draft.read_keys, *txn.rights.shares()}),
        bulk=tuple({*draft.bulk, *txn.declared.relied_empty, *draft.watched, *_moved(txn, validated)}),
        touched=tuple(draft.touched),
        batches=tuple(draft.batches),
        segments=tuple(draft.segments),
        jobs=(*txn.declared.jobs, *txn.block.records()),
        actor=txn.client.actor,
        reads=tuple({*txn.read_set.names, *draft.changed_rows}),
        violations=recorded(txn) if txn.declared.violations else (),
        scopes=txn.write_locks.held.shared(),
    )
    return _with_definitions(txn, rows) if txn.pending else rows


def _with_definitions(txn: TransactionState, rows: CommitRequest) -> CommitRequest:
    changes = txn.pending.descriptor_changes()
    # What was found empty, or made so, must stay so: no writer that planned without the change may commit after it. Nor
    # may one that needed a right which is taken away.
    fenced = txn.declared.fenced | txn.pending.narrowed()
    return replace(
        rows,
        touched=tuple(dict.fromkeys([*rows.touched, *txn.pending.replaced()])),
        descriptors=changes,
        raises=tuple(VersionRaise(c.id, c.version) for c in changes if c.body and c.expected and c.id in fenced),
        generations=txn.pending.new_indexes(),
        change=encode_history(txn),
    )


def _moved(txn: TransactionState, validated: Seq) -> list[IndexId]:
    """The primary indexes that took the place of those which a SERIALIZABLE transaction has read."""
    found = [index_id for later in read_successors(txn, validated).values() for _, index_id in later]
    return [index_id for index_id in found if index_id is not None]


def _relied_versions(txn: TransactionState) -> dict[DescriptorId, int]:
    """What the plans of the transaction depended on."""
    return {**txn.rights.versions(), **txn.declared.relied, **txn.planned_versions()}


def _written(txn: TransactionState, draft: _Draft) -> tuple[KeyHash, ...]:
    listed = [hashes for hashes, _ in (*draft.listed, *draft.soft.listed)]
    single = (*draft.writes, *draft.soft.unique, *txn.declared.freed)
    return (*single, *np.concatenate(listed).tolist()) if listed else single


def refusal(outcome: Refusal, txn: TransactionState) -> errors.Error:
    """A refused commit as the error that its client sees."""
    match outcome:
        case Conflict(seq=seq):
            return conflict_with(seq)
        case Fenced(id=id_, min_version=version):
            return errors.SerializationFailure(
                detail=f"table {id_} has changed to version {version} since the transaction planned its writes"
            )
        case StaleEpoch(epoch=epoch):
            return errors.StaleNode(node=epoch)
        case BelowFloor(floor=floor):
            return errors.SerializationFailure(detail=f"the transaction is older than the log's floor {floor}")
        case Superseded(what=what) if what.startswith("job"):
            return errors.SerializationFailure(detail=f"{what}, which this transaction began, was cancelled")
        case Superseded(what=what):
            return errors.SerializationFailure(detail=f"{what} was changed by a concurrent transaction")
        case Burned(commit_id=commit_id):
            return errors.SerializationFailure(detail=f"commit {commit_id.hex()} was given up")
        case CommitBlocked():
            return errors.SerializationFailure(detail="a row is locked by a concurrent transaction")
        case Revalidate():
            return errors.SerializationFailure(
                detail="other transactions wrote to a table that was read more often than their writes could be checked"
            )


def _abandon(txn: TransactionState, segments: Iterable[Segment]) -> None:
    abandon(txn, [segment.id for segment in segments])
