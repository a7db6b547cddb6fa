"""FOREIGN KEY constraints: the keys that written rows refer to, and the actions on rows that referred to changed keys.

Writes are events. Their actions (CASCADE, SET NULL, SET DEFAULT) are writes again, until no event is left; then, at the
end of the statement or of the transaction, the affected keys are checked. A statement of several parts has one end.

**Invariant:** every key that a row of a commit was found to refer to is in the commit's shares, with the snapshot at
which it was found; so of concurrent insert of a child and delete of its parent at most one commits, at every isolation
level. Deletes and changes of a unique key list that key, whether or not a row is known to refer to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from seachange import errors
from seachange.engine.buffer.declarations import SoftReference
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.constraints.key_view import KeyView, referring, without
from seachange.engine.constraints.own_keys import violated_concurrently
from seachange.engine.constraints.row_changes import RowChanges
from seachange.engine.constraints.uncommitted import record
from seachange.engine.context.deferral import AS_DECLARED, ConstraintName, Deferral
from seachange.engine.encode.write_plan import pick_columns
from seachange.engine.reads.row_reads import RowReads
from seachange.model.ids import ConstraintId
from seachange.model.schema.constraint import Action, ConstraintKind, ForeignKey
from seachange.model.schema.defaults import constant_value
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.references import action_of
from seachange.model.states import READABLE, RECORDING, REFUSING, WRITTEN
from seachange.pipeline.kernels.row_names import show_key
from seachange.sql.duck.default_text import is_drawn
from seachange.storage.keys import Key, constraint_hash, reference_hash, unique_hash

Row = tuple[Any, ...]
# A parent that is known to another transaction alone.
_UNSEEN = "of a concurrent transaction"


@dataclass(frozen=True, slots=True)
class _Event:
    """Rows of a table that were replaced (`new`) or deleted (None)."""

    table: Table
    old: Sequence[Row]
    new: Sequence[Row] | None


@dataclass(frozen=True, slots=True)
class _Left:
    """Deleted keys that a foreign key of `child` may refer to."""

    child: Table
    key: ForeignKey
    keys: Mapping[Key, None]
    action: Action


class ForeignKeys:
    def __init__(self, txn: TransactionState, reads: RowReads, changes: RowChanges) -> None:
        self._txn = txn
        self._view = KeyView(txn, reads)
        self._changes = changes
        self._events: deque[_Event | _Left] = deque()
        # Whether a statement of several parts is running.
        self._has_parts = False
        self._due: dict[ConstraintName, dict[Key, bool]] = {}
        self.deferral = AS_DECLARED
        # To be checked when the transaction commits.
        self.deferred: dict[ConstraintName, dict[Key, bool]] = {}

    # Events.

    def inserted(self, table: Table, rows: Sequence[Row], unchecked: Collection[ConstraintId] = ()) -> None:
        if table.foreign_keys:
            self._refer(table, self._fill(table, rows), unchecked)
            self._finish_statement()

    def updated(self, table: Table, old: Sequence[Row], new: Sequence[Row]) -> None:
        if table.foreign_keys or self._txn.schema.references_to(table):
            self._events.append(self._event(table, old, new))
            self._finish_statement()

    def deleted(self, table: Table, old: Sequence[Row]) -> None:
        if self._txn.schema.references_to(table):
            self._events.append(self._event(table, old, None))
            self._finish_statement()

    def left(self, child: Table, key: ForeignKey, keys: Iterable[Key], action: Action) -> None:
        """Records many deleted keys that a foreign key of `child` may refer to."""
        self._events.append(_Left(child, key, dict.fromkeys(keys), action))
        self._finish_statement()

    def require_now(self, child: Table, key: ForeignKey, keys: Iterable[Key], left: bool = False) -> None:
        """As `require`, at the end of the statement."""
        self.require(child, key, keys, left)
        self._finish_statement()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Makes the writes within one statement: no part of it sees the actions of foreign keys for another part, and
        checks run at its end."""
        if self._has_parts:
            yield
            return
        self._has_parts = True
        try:
            yield
            self._has_parts = False
            self._finish_statement()
        finally:
            self._has_parts = False
            self._forget()

    def needs_action(self, child: Table, key: ForeignKey, left: Iterable[Key]) -> bool:
        """For keys that rows gave up before the foreign key was enforced: raises if a row still refers to one of them.
        Returns True if an action would be needed instead."""
        keys = set(left)
        if not is_checked(key) or not keys:
            return False
        actions = {action_of(child, key, deleted) for deleted in (True, False)}
        if self.is_uncommitted(child, key) or actions <= {Action.NO_ACTION, Action.RESTRICT}:
            self.require_now(child, key, keys, left=True)
            return False
        return bool(self._view.rows_with(child, key.columns, keys))

    def is_uncommitted(self, child: Table, key: ForeignKey) -> bool:
        """Whether other sessions declare keys of it by `reference_hash` alone; this transaction may be what adds it."""
        return key.uncommitted or self._adds(child, key)

    def _adds(self, child: Table, key: ForeignKey) -> bool:
        return self._txn.pending.adds_reference(child.id, key.id)

    def is_deferred(self, table: Table, key: ForeignKey) -> bool:
        return self.deferral.is_deferred(table, key)

    def is_checked_later(self, table: Table, key: ForeignKey) -> bool:
        return self._has_parts or self.is_deferred(table, key)

    def reset_deferral(self, deferral: Deferral) -> None:
        self.deferral = deferral

    def set_deferral(self, names: Sequence[ConstraintName] | None, deferred: bool) -> None:
        if not deferred:
            # They are checked again at COMMIT: ROLLBACK TO a savepoint may undo what made this check pass.
            self._check({name: keys for name, keys in self.deferred.items() if names is None or name in names})
        self.deferral = self.deferral.set(names, deferred)

    def check_deferred(self) -> None:
        due, self.deferred = self.deferred, {}
        try:
            self._check(due)
        except errors.StatementHeld:
            # The checks are run again as of a limit.
            self.deferred = due
            raise

    def _finish_statement(self) -> None:
        """The end of a statement: actions first, since they may remove rows that a check would reject."""
        if self._has_parts:
            return
        try:
            while self._events:
                match self._events.popleft():
                    case _Event() as event:
                        self._act(event)
                    case _Left(child, key, keys, action):
                        self._apply(action, child, key, keys)
            self._check(self._due)
        finally:
            self._forget()

    def _forget(self) -> None:
        self._events.clear()
        self._due.clear()

    # Referring rows.

    def _refer(self, table: Table, rows: Iterable[Row], unchecked: Collection[ConstraintId]) -> None:
        for key, pick in self._txn.parts.write_plan(table).foreign_keys:
            if key.id in unchecked:
                continue
            self.require(table, key, [k for row in rows if key.refers(k := pick(row))])

    def require(self, table: Table, key: ForeignKey, keys: Iterable[Key], left: bool = False) -> None:
        """Records keys that must exist, or not be referred to, at the end of the statement or transaction; `left`: the
        parent gave them up."""
        if left and self.is_uncommitted(table, key):
            keys = set(keys)
            self._free(table, key, keys)
        if key.state not in REFUSING | RECORDING:
            # The job that validates the constraint relies on shares for keys written before: the parent's and its
            # children's.
            if key.state in WRITTEN and not left:
                self._share_present(table, key, set(keys))
            return
        due = self.deferred if self.is_deferred(table, key) else self._due
        due.setdefault((table.id, key.id), {}).update(dict.fromkeys(keys, left))

    # Referenced rows.

    def _act(self, event: _Event) -> None:
        table = event.table
        if event.new is not None:
            for key, pick in self._txn.parts.write_plan(table).foreign_keys:
                changed = [n for o, n in zip(event.old, event.new, strict=True) if pick(o) != pick(n)]
                self.require(table, key, [k for row in changed if key.refers(k := pick(row))])
        for child, key in self._txn.schema.references_to(table):
            pick = pick_columns(table, table.index_by_id[key.parent_index].key)
            changes = _changed_keys(event, pick)
            if changes and is_checked(key) and key.uncommitted:
                # Its actions are taken from its commit on.
                self.require(child, key, changes, left=True)
            elif changes and key.state in REFUSING:
                self._apply(action_of(child, key, event.new is None), child, key, changes)

    def _apply(self, action: Action, child: Table, key: ForeignKey, changes: Mapping[Key, Key | None]) -> None:
        if action is Action.NO_ACTION or self._adds(child, key):
            # Rows that others have added are not among those that an action changes.
            self.require(child, key, changes, left=True)
        if action is Action.NO_ACTION:
            return
        rows = self._view.rows_with(child, key.columns, changes.keys())
        if not rows:
            return
        pick = pick_columns(child, key.columns)
        if action is Action.RESTRICT:
            raise self.still_referenced(child, key, pick(rows[0]))
        if action is Action.SET_DEFAULT:
            # The default may be the very key that was removed.
            self.require(child, key, changes, left=True)
        replaced = [self._replacement(action, child, key, changes[pick(row)]) for row in rows]
        if None in replaced:
            self._changes.delete(child, rows)
            self._events.append(self._event(child, rows, None))
            return
        new = [_with_values(child, key, row, values) for row, values in zip(rows, replaced, strict=True) if values]
        self._changes.update(child, rows, new)
        self._events.append(self._event(child, rows, new))

    def _event(self, table: Table, old: Sequence[Row], new: Sequence[Row] | None) -> _Event:
        return _Event(table, self._fill(table, old), None if new is None else self._fill(table, new))

    def _fill(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        return self._txn.parts.write_plan(table).fill(rows, self._txn.parts.duck)

    def _replacement(self, action: Action, child: Table, key: ForeignKey, now: Key | None) -> Key | None:
        """The new key of a referring row; None if the row is deleted."""
        match action:
            case Action.CASCADE:
                return now
            case Action.SET_DEFAULT:
                columns = [child.column_by_id[c] for c in key.columns]
                return tuple([self._default(column) for column in columns])
            case _:
                return (None,) * len(key.columns)

    def _default(self, column: Column) -> Any:
        if is_drawn(column):
            return self._txn.sequences.defaults(column, 1)[0]
        return constant_value(column.type, column.default)

    # Checks.

    def _check(self, due: Mapping[ConstraintName, Mapping[Key, bool]]) -> None:
        for (table_id, key_id), keys in due.items():
            child = self._txn.schema.table_by_id(table_id)
            key = next((k for k in child.foreign_keys if k.id == key_id), None) if child is not None else None
            if child is None or key is None or not keys:
                continue
            # A violation of a foreign key that is not committed is recorded, and rejects nothing.
            with nullcontext() if key.state in REFUSING else self._txn.read_set.paused():
                self._check_keys(child, key, keys)

    def _check_keys(self, child: Table, key: ForeignKey, keys: Mapping[Key, bool]) -> None:
        found, missing = self._find_key(key), _mixed(keys)
        if found is None:
            missing = set(keys)
        else:
            missing.update(self._view.missing(*found, keys.keys() - missing))
            self.share(child, found[0], key, keys.keys() - missing)
        rows = self._view.rows_with(child, key.columns, missing) if missing else []
        if rows:
            value = pick_columns(child, key.columns)(rows[0])
            problem = (self.still_referenced if keys[value] else self.missing_parent)(child, key, value)
            if key.state in REFUSING:
                raise problem
            record(self._txn, constraint_hash(ConstraintKind.FOREIGN_KEY, child.id, key.id), problem)
        elif self._adds(child, key) and self._txn.snapshot.seq < self._txn.epoch.applied:
            self._check_newer(child, key, {value for value in missing if keys[value]})

    def _check_newer(self, child: Table, key: ForeignKey, left: Collection[Key]) -> None:
        """Rows that are newer than the snapshot may refer to keys that the parent gives up, and were written when no
        writer knew of a foreign key that this transaction adds."""
        with self._txn.snapshot.reading_at(self._txn.epoch.applied):
            rows = self._view.rows_with(child, key.columns, left) if left else []
        if rows:
            value = pick_columns(child, key.columns)(rows[0])
            raise violated_concurrently(key.name, self.still_referenced(child, key, value))

    def _share_present(self, child: Table, key: ForeignKey, keys: set[Key]) -> None:
        """Only existing keys can be removed; rows that refer to missing ones are found by the validation. An index that
        is being built may lack entries of existing parents, so all keys are shared then."""
        found, whole = self._find_key(key), keys - _mixed(keys)
        if found is None:
            return
        parent, index = found
        missing = self._view.missing(parent, index, whole) if index.state in READABLE else []
        self.share(child, parent, key, whole.difference(missing))

    def share(self, child: Table, parent: Table, key: ForeignKey, keys: Iterable[Key]) -> None:
        """Declares that the commit relies on these keys of the parent. A table that the transaction creates cannot be
        changed by others."""
        if self._txn.pending.is_new(parent):
            return
        encode = self._encoder(parent, key)
        declared, snapshot = self._txn.declared, self._txn.snapshot.seq
        is_soft = self.is_uncommitted(child, key)
        for value in keys:
            # Parents may have gone since the snapshot of a block before any writer knew of the foreign key that it
            # adds: that it relies on the keys is declared as for any other.
            hashed = unique_hash(key.parent_index, encode(value))
            if key.uncommitted:
                hashed = reference_hash(child.id, key.id, encode(value))
            if is_soft:
                problem = self.missing_parent(child, key, value)
                declared.references.setdefault(hashed, SoftReference(child.id, key, problem))
            declared.shares.setdefault(hashed, snapshot)

    def _free(self, child: Table, key: ForeignKey, keys: Iterable[Key]) -> None:
        """Declares that the parent gives these keys up. Rows that refer to them by an uncommitted foreign key have
        declared no more than `reference_hash`."""
        parent = self._parent(key)
        encode, declared = self._encoder(parent, key), self._txn.declared
        for value in keys:
            hashed = reference_hash(child.id, key.id, encode(value))
            problem = self.still_referenced(child, key, value)
            declared.references.setdefault(hashed, SoftReference(child.id, key, problem))
            declared.freed.setdefault(hashed, self._txn.snapshot.seq)

    def _encoder(self, parent: Table, key: ForeignKey) -> Callable[[Key], bytes]:
        plan = self._txn.parts.write_plan(parent).entry(key.parent_index)
        return plan.codec.encode if plan.holds_rows else plan.unique_codec.encode

    def find_orphan(self, child: Table, key: ForeignKey) -> errors.Error | None:
        """What is wrong with the first row without a parent, of all rows that the transaction would leave."""
        parent = self._parent(key)
        index, columns = parent.index_by_id[key.parent_index], [child.column_by_id[c] for c in key.columns]
        others = [parent.column_by_id[c] for c in index.key]
        rows = referring(self._view.scan(child, child.primary, columns, "children"), columns, key.match_full)
        missing = self._view.run(without(rows, self._view.scan(parent, index, others), columns, others, "LIMIT 1"))
        return self.missing_parent(child, key, missing[0]) if missing else None

    def _find_key(self, key: ForeignKey) -> tuple[Table, Index] | None:
        """Where the rows are that a foreign key refers to; None if they are known to the transaction alone that adds
        the foreign key."""
        parent = self._txn.schema.table_by_id(key.parent)
        if key.uncommitted and (parent is None or key.parent_index not in parent.index_by_id):
            return None
        parent = self._parent(key)
        return parent, parent.index_by_id[key.parent_index]

    def _parent(self, key: ForeignKey) -> Table:
        parent = self._txn.schema.table_by_id(key.parent)
        if parent is None:
            raise errors.Bug(detail=f"the table that {key.name} refers to does not exist")
        if key.parent_index not in parent.index_by_id:
            # The transaction has changed the parent itself, and its rows could not follow those of the child.
            raise errors.SerializationFailure(detail=f"the rows of {parent.name} have been rewritten")
        return parent

    def missing_parent(self, child: Table, key: ForeignKey, value: Key) -> errors.Error:
        shown = _show(child, key, value)
        if None in value:
            return errors.MixedKey(relation=child.name, constraint=key.name, key=shown)
        found = self._find_key(key)
        parent = found[0].name if found is not None else _UNSEEN
        return errors.MissingParent(relation=child.name, constraint=key.name, key=shown, parent=parent)

    def still_referenced(self, child: Table, key: ForeignKey, value: Key) -> errors.Error:
        parent = self._parent(key)
        shown = show_key([parent.column_by_id[c] for c in parent.index_by_id[key.parent_index].key], value)
        return errors.StillReferenced(parent=parent.name, constraint=key.name, relation=child.name, key=shown)


def is_checked(key: ForeignKey) -> bool:
    """Whether rows that give up a key have to do with the foreign key. Of one that is not committed, they declare the
    key before they are checked."""
    return key.state in (WRITTEN if key.uncommitted else REFUSING)


def _mixed(keys: Iterable[Key]) -> set[Key]:
    """Keys with some NULL, of a foreign key with MATCH FULL: no parent has one."""
    return {key for key in keys if None in key}


def _changed_keys(event: _Event, pick: Callable[[Row], Key]) -> dict[Key, Key | None]:
    """The keys that rows no longer have, each with its replacement."""
    if event.new is None:
        return {key: None for row in event.old if None not in (key := pick(row))}
    pairs = [(pick(old), pick(new)) for old, new in zip(event.old, event.new, strict=True)]
    return {old: new for old, new in pairs if old != new and None not in old}


def _with_values(table: Table, key: ForeignKey, row: Row, values: Key) -> Row:
    changed = dict(zip(key.columns, values, strict=True))
    return tuple([changed.get(c.id, v) if c.id in changed else v for c, v in zip(table.columns, row, strict=True)])


def _show(child: Table, key: ForeignKey, value: Key) -> str:
    return show_key([child.column_by_id[c] for c in key.columns], value)
