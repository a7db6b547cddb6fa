"""What a transaction declares with its commit, besides the rows of its buffer and its changed descriptors.

**Invariant:** whatever a statement relied on or locked is declared before the statement ends; a statement or savepoint
that is rolled back takes its declarations with it.
"""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass, field
from typing import Protocol

from seachange import errors
from seachange.engine.buffer.write_locks import LockedRow
from seachange.model.change.elements import Element
from seachange.model.ids import DescriptorId, IndexId, KeyHash, Seq, TableId
from seachange.model.jobs import JobChange
from seachange.model.schema.constraint import ForeignKey
from seachange.model.schema.descriptor import Table


@dataclass(frozen=True, slots=True)
class DeclarationsMark:
    """What was declared before a statement of a block, or at a savepoint: how many of what may be many, the rest as it
    was."""

    locked: int
    changed: int
    violations: int
    references: int
    freed: int
    relied: dict[DescriptorId, int]
    relied_empty: dict[IndexId, tuple[Table, Seq]]
    fenced: frozenset[TableId]
    addressed: frozenset[DescriptorId]


_NOTHING_DECLARED = DeclarationsMark(0, 0, 0, 0, 0, {}, {}, frozenset(), frozenset())


@dataclass(frozen=True, slots=True)
class SoftReference:
    """A key that a row of table `child_id` refers to by an uncommitted foreign key, or that a parent row gives up, and
    the error if another commit does the opposite."""

    child_id: TableId
    key: ForeignKey
    problem: errors.Error


@dataclass(frozen=True, slots=True)
class AddedConstraint:
    """A constraint or computed column that a transaction adds, with the beginning of the message if another one writes
    a row that has no place under it. One `only_until_commit` is no part of the table that the transaction sees."""

    element: Element
    message: str
    only_until_commit: bool


@dataclass(slots=True)
class Declarations:
    # Objects that published descriptors refer to, in these versions: they must still exist at the commit.
    relied: dict[DescriptorId, int] = field(default_factory=dict)
    # Indexes that were empty, with their tables and the snapshots at which they were.
    relied_empty: dict[IndexId, tuple[Table, Seq]] = field(default_factory=dict)
    # Tables of which no writer may commit that planned with an older version than this transaction publishes.
    fenced: set[TableId] = field(default_factory=set)
    # Keys of other tables that rows of this transaction refer to, with the snapshots at which they existed.
    shares: dict[KeyHash, Seq] = field(default_factory=dict)
    # Of the shares, those of uncommitted constraints that rows of this transaction violate, and the errors.
    violations: dict[KeyHash, errors.Error] = field(default_factory=dict)
    # Of the changed keys, those of constraints and computed columns that this transaction adds, or has added and
    # dropped again.
    constraints: dict[KeyHash, AddedConstraint] = field(default_factory=dict)
    # Keys of uncommitted foreign keys that are among the shares, or that parent rows gave up, in `freed`.
    references: dict[KeyHash, SoftReference] = field(default_factory=dict)
    freed: dict[KeyHash, Seq] = field(default_factory=dict)
    # Tables that statements named to write to or to lock rows of; others are written by foreign keys alone.
    addressed: set[DescriptorId] = field(default_factory=set)
    # Rows that were locked, and may not have been written.
    locked: list[LockedRow] = field(default_factory=list)
    # What the changes of descriptors conflict by, with the snapshots that they were planned at.
    changed: dict[KeyHash, Seq] = field(default_factory=dict)
    # Jobs that begin with the commit of this transaction, which then is one statement.
    jobs: list[JobChange] = field(default_factory=list)

    def mark(self) -> DeclarationsMark:
        has_keys = self.changed or self.violations or self.references or self.freed
        if not (has_keys or self.addressed or self.locked or self.relied or self.relied_empty or self.fenced):
            return _NOTHING_DECLARED
        keys = len(self.violations), len(self.references), len(self.freed)
        counts = len(self.locked), len(self.changed), *keys
        relied = dict(self.relied), dict(self.relied_empty)
        return DeclarationsMark(*counts, *relied, frozenset(self.fenced), frozenset(self.addressed))

    def undo_to(self, mark: DeclarationsMark) -> None:
        """Removes what the statements since the mark have declared, besides shares."""
        del self.locked[mark.locked :]
        drop_newest(self.changed, mark.changed)
        drop_newest(self.violations, mark.violations)
        drop_newest(self.references, mark.references)
        drop_newest(self.freed, mark.freed)
        self.relied, self.relied_empty = dict(mark.relied), dict(mark.relied_empty)
        self.fenced, self.addressed = set(mark.fenced), set(mark.addressed)

    def reset(self, shares: int) -> None:
        """A statement has failed; there were so many shares before it."""
        drop_newest(self.shares, shares)
        self.jobs.clear()


class _Stack(Sized, Protocol):
    def popitem(self) -> object: ...


def drop_newest(kept: _Stack, count: int) -> None:
    """Leaves the oldest `count` items of a dictionary."""
    while len(kept) > count:
        kept.popitem()
