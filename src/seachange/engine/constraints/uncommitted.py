"""Constraints whose transaction has not committed (state VALIDATING): violations by other sessions are recorded.

A row that violates such a constraint is not refused, and writers of one of its keys neither wait for each other nor
fail: the transaction that adds the constraint fails at its COMMIT instead.

**Invariant:** a commit that violates the constraint, by a row or by a key that another commit has written since, shares
the key of the constraint. The commit that makes the constraint public writes that key, with the sequence as of which
all rows were validated as its base. Both are compared under the sequencer lock, so at most one of "constraint
committed" and "violation committed after the validation" succeeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from seachange import errors
from seachange.engine.buffer.declarations import AddedConstraint, SoftReference
from seachange.engine.buffer.row_writer import Record, duplicate_key
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.constraints.own_keys import check_free, violated_concurrently
from seachange.engine.encode.check_rows import Row, null_in_row, violation
from seachange.engine.encode.write_plan import EntryPlan
from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.ids import ColumnId, KeyHash
from seachange.model.log import RowViolation
from seachange.model.schema.constraint import Check, ConstraintKind
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.states import RECORDING, REFUSING
from seachange.storage.keys import Key, constraint_hash, conversion_hash


def key_of(element: Element) -> KeyHash | None:
    """The key that the publication of an element writes; None if no commit relies on its absence."""
    match element:
        case elements.ConvertedColumn() | elements.ColumnElement():
            return conversion_hash(element.table_id, element.column_id)
        case elements.ColumnNotNull():
            return constraint_hash(ConstraintKind.NOT_NULL, element.table_id, element.column_id)
        case elements.CheckConstraint():
            return constraint_hash(ConstraintKind.CHECK, element.table_id, element.constraint_id)
        case elements.ForeignKeyElement():
            return constraint_hash(ConstraintKind.FOREIGN_KEY, element.table_id, element.constraint_id)
        case elements.UniqueIndex():
            return constraint_hash(ConstraintKind.UNIQUE, element.table_id, element.index_id)
        case _:
            return None


# Violations by this transaction.


def record(txn: TransactionState, key: KeyHash, problem: errors.Error) -> None:
    txn.declared.shares.setdefault(key, txn.snapshot.seq)
    txn.declared.violations.setdefault(key, problem)


def record_duplicate(txn: TransactionState, plan: EntryPlan, problem: errors.Error) -> None:
    record(txn, constraint_hash(ConstraintKind.UNIQUE, plan.table_id, plan.index.id), problem)


def record_broken(txn: TransactionState, table: Table, found: Iterable[tuple[Check, Row]]) -> None:
    """Rows that do not fulfil a CHECK constraint."""
    for check, row in found:
        record(txn, constraint_hash(ConstraintKind.CHECK, table.id, check.id), violation(table, check, row))


def record_null(txn: TransactionState, table: Table, column: Column, row: Row | None = None) -> None:
    """`row`: None if it is one of those in a file."""
    unnamed = errors.NotNullViolation(column=column.name, relation=table.name)
    problem = unnamed if row is None else null_in_row(table, column, row)
    record(txn, constraint_hash(ConstraintKind.NOT_NULL, table.id, column.id), problem)


def recording(txn: TransactionState) -> Record:
    return partial(record, txn)


def recorded(txn: TransactionState) -> tuple[RowViolation, ...]:
    """What the commit records for the message of the transaction that adds the constraint."""
    kept = {key: problem for key, problem in txn.declared.violations.items() if key in txn.declared.shares}
    return tuple(RowViolation(key, str(problem), txn.client.name) for key, problem in kept.items())


def committed_violation(txn: TransactionState) -> errors.Error | None:
    """The error because of which a transaction cannot commit: one of its rows violates a constraint that has become
    public. An autocommit statement is run again instead, and raises the error itself."""
    if txn.mode.autocommit:
        return None
    relied = {key: txn.declared.shares[key] for key in txn.declared.violations if key in txn.declared.shares}
    for key, snapshot in relied.items():
        if txn.epoch.conflicts.find({}, {key: snapshot}) is not None:
            return txn.declared.violations[key]
    return None


# Violations by others of what this transaction adds.


def dropped_constraints(txn: TransactionState) -> set[KeyHash]:
    """The keys of what this transaction has added and dropped again: no row violates it."""
    return {key for key, added in txn.declared.constraints.items() if not _is_left(txn, added)}


def forget_dropped_references(txn: TransactionState) -> None:
    """What this transaction relies on, or has given up, by foreign keys that it has added and dropped again. A key of a
    parent that another foreign key may rely on stays."""
    declared = txn.declared
    for hashed, met in tuple(declared.references.items()):
        if not txn.pending.drops_reference(met.child_id, met.key.id):
            continue
        declared.freed.pop(hashed, None)
        parent = txn.schema.table_by_id(met.key.parent)
        others = txn.schema.references_to(parent) if parent is not None else ()
        if hashed not in declared.shares or all(key.parent_index != met.key.parent_index for _, key in others):
            declared.shares.pop(hashed, None)
            del declared.references[hashed]


def _is_left(txn: TransactionState, added: AddedConstraint) -> bool:
    _, table = txn.pending.change(descriptor_of(added.element)) or (None, None)
    if not isinstance(table, Table) or added.only_until_commit:
        return isinstance(table, Table)
    match added.element:
        case elements.CheckConstraint(constraint_id=id_):
            return any(check.id == id_ for check in table.checks)
        case elements.ForeignKeyElement(constraint_id=id_):
            return any(key.id == id_ for key in table.foreign_keys)
        case elements.UniqueIndex(index_id=index_id):
            return index_id in table.index_by_id
        case elements.ColumnNotNull(column_id=column_id):
            column = _column_now(txn, table, column_id)
            return column is not None and not column.nullable
        case elements.ColumnElement(column_id=column_id) | elements.ConvertedColumn(column_id=column_id):
            return _column_now(txn, table, column_id) is not None
        case _:
            return True


def _column_now(txn: TransactionState, table: Table, column_id: ColumnId) -> Column | None:
    """A column, or the one that the transaction has converted it to: a row without a value has none there, either."""
    added = (target.element for job in txn.block.state.jobs for target in job.change.targets)
    columns = (element for element in added if isinstance(element, elements.ConvertedColumn))
    following = {c.in_place_of: c.column_id for c in columns if c.table_id == table.id}
    while column_id in following:
        column_id = following[column_id]
    return table.column_by_id.get(column_id)


def concurrent_violation(txn: TransactionState) -> errors.Error | None:
    """Names the constraint of this transaction, and the row of another one that violates it. The catalog is asked: the
    validation may lie below every snapshot for which the node keeps the keys of commits."""
    dropped = dropped_constraints(txn)
    for key, added in txn.declared.constraints.items():
        base = txn.declared.changed.get(key) if key not in dropped else None
        if base is None or txn.parts.catalog.first_reliance(txn.epoch.epoch, [key], base) is None:
            continue
        found = txn.parts.catalog.first_violation([key], base)
        row = f": {found.violation.text} ({found.violation.session}, commit {found.seq})" if found is not None else ""
        return errors.SerializationFailure(detail=f"{added.message} a row of a concurrent transaction{row}")
    return None


# Keys of the constraints: unique keys, and keys that foreign keys refer to.


def is_uncommitted(txn: TransactionState, plan: EntryPlan) -> bool:
    """Whether the index was not committed when the write was planned, or is added by this transaction."""
    return plan.index.uncommitted or txn.pending.adds_keys(plan.table_id, plan.index.id)


def is_soft(txn: TransactionState, plan: EntryPlan) -> bool:
    """Whether other writers of a key of this index are no conflict, as far as the node knows."""
    if not plan.index.uncommitted:
        return txn.pending.adds_keys(plan.table_id, plan.index.id)
    now = _index_now(txn, plan)
    return now is None or now.uncommitted


def meet_key(txn: TransactionState, plan: EntryPlan, key: Key | None) -> None:
    """Another commit has written a unique key of this one (None: one of many). Until the index is checked, its
    validation will find both entries. The transaction that adds the index looks again."""
    if txn.pending.adds_keys(plan.table_id, plan.index.id):
        check_free(txn, plan, key)
        return
    now = _index_now(txn, plan)
    if now is not None and now.state in RECORDING | REFUSING:
        table = txn.epoch.schemas.newest.by_id[plan.table_id]
        many = errors.UniqueViolation(constraint=plan.index.name, key="of a bulk write")
        problem = many if key is None else duplicate_key(table, plan, key)
        record_duplicate(txn, plan, problem)


def _index_now(txn: TransactionState, plan: EntryPlan) -> Index | None:
    table = txn.epoch.schemas.newest.by_id.get(plan.table_id)
    return None if table is None else table.index_by_id.get(plan.index.id)


def meet_reference(txn: TransactionState, met: SoftReference) -> None:
    """A row refers to a key that another commit has removed, or the other way round. A foreign key that was committed
    meanwhile has fenced this commit, which is rebased and checked by it. The transaction that adds the foreign key
    fails."""
    if txn.pending.adds_reference(met.child_id, met.key.id):
        raise violated_concurrently(met.key.name, met.problem)
    child = txn.epoch.schemas.newest.by_id.get(met.child_id)
    now = next((k for k in child.foreign_keys if k.id == met.key.id), None) if child is not None else None
    if now is not None and now.state in RECORDING:
        record(txn, constraint_hash(ConstraintKind.FOREIGN_KEY, met.child_id, met.key.id), met.problem)
