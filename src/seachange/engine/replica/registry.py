"""The open transactions of a node, and the low-water marks that follow from them.

**Invariant:** `marks().low` never exceeds the snapshot of any open or future transaction of this node, `marks().write`
that of any that may write. A transaction is entered with the current mark as its bound *before* it reads the head, so
that none slips in below a published mark.

**Invariant:** `notify` is called when the publication of a descriptor has been applied, and again whenever a writer
with an older snapshot ends or moves past it, so that a job that drains writers of older versions sees at once which
they are, and when they end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from seachange.model.ids import DescriptorId, Seq
from seachange.runtime.file_uses import FileUses


@dataclass(frozen=True, slots=True)
class OpenWriter:
    """A transaction that may write: its name, the time of its begin, the number of its session, the versions of the
    tables that it has used so far (None: not known), and for those that it has changed the last statement that did.
    Its own thread adds to both."""

    name: str
    since_us: int = 0
    actor: int = 0
    used: Mapping[DescriptorId, int] | None = None
    changed: Mapping[DescriptorId, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Marks:
    """`holders` are the writers that hold the write mark, with their snapshots, the lowest first; they cover all open
    writers. A transaction that begins from now on has a snapshot of at least `head`."""

    low: Seq
    write: Seq
    holders: tuple[tuple[Seq, OpenWriter], ...]
    head: Seq


# The maximum number of holders that are published one by one.
HOLDERS_MAX = 50


def _ignore() -> None:
    pass


class Registry:
    def __init__(self, head: Seq, notify: Callable[[], None] = _ignore, uses: FileUses | None = None) -> None:
        """The tickets are numbers of `uses`: an open transaction may open files by the paths that it was given."""
        self._lock = threading.Lock()
        self._uses = uses if uses is not None else FileUses()
        self._bounds: dict[int, Seq] = {}
        self._writers: dict[int, OpenWriter] = {}
        # Writers that have no snapshot yet: they take one above all publications that the node has applied.
        self._begun: set[int] = set()
        self._head = head
        self._mark = head
        self._write_mark = head
        # The newest publication of a descriptor.
        self._published = Seq(0)
        self._is_news = False
        self._notify = notify

    def new_scope(self) -> int:
        """A number for a lock scope of a transaction, from the same range as tickets."""
        with self._lock:
            return self._uses.stamp()

    def enter(self, writer: OpenWriter | None = None) -> int:
        """Registers a transaction that is about to read the head, with the current mark as its bound."""
        with self._lock:
            return self._enter(self._mark if writer is None else self._write_mark, writer)

    def enter_below(self, snapshot: Seq) -> int:
        """Registers a read of the past; it holds the mark, so that garbage collection does not proceed."""
        with self._lock:
            return self._enter(min(self._mark, snapshot))

    def _enter(self, bound: Seq, writer: OpenWriter | None = None) -> int:
        ticket = self._uses.begin()
        try:
            self._bounds[ticket] = bound
            if writer is not None:
                self._writers[ticket] = writer
                self._begun.add(ticket)
        except BaseException:
            # There is no memory for it, and no caller to end it.
            self._forget(ticket)
            raise
        return ticket

    def _forget(self, ticket: int) -> None:
        self._bounds.pop(ticket, None)
        self._writers.pop(ticket, None)
        self._begun.discard(ticket)
        self._uses.end(ticket)

    def move(self, ticket: int, snapshot: Seq) -> None:
        """Sets the snapshot of a transaction."""
        with self._lock:
            was_below = self._is_below(ticket)
            self._bounds[ticket] = snapshot
            self._begun.discard(ticket)
            notifies = self._has_passed() or (was_below and not self._is_below(ticket))
        if notifies:
            self._notify()

    def leave(self, ticket: int) -> None:
        with self._lock:
            was_below = self._is_below(ticket)
            self._forget(ticket)
            notifies = self._has_passed() or was_below
        if notifies:
            self._notify()

    def advance(self, head: Seq) -> None:
        """The node has applied the log up to `head`: later transactions start at or above it."""
        with self._lock:
            self._head = max(self._head, head)
            notifies = self._is_news or self._has_passed()
            self._is_news = False
        if notifies:
            self._notify()

    def note_publication(self, seq: Seq) -> None:
        """Records the publication of a descriptor, whose older versions a job may be draining."""
        with self._lock:
            self._published = max(self._published, seq)
            self._is_news = True

    def _is_below(self, ticket: int) -> bool:
        """Whether it is a writer with a snapshot below the newest publication."""
        return ticket in self._writers and ticket not in self._begun and self._bounds[ticket] < self._published

    def _has_passed(self) -> bool:
        return self._write_mark < self._published <= self._lowest(self._writers)

    def _lowest(self, tickets: dict[int, OpenWriter] | dict[int, Seq]) -> Seq:
        return min((self._bounds[ticket] for ticket in tickets), default=self._head)

    def mark(self) -> Seq:
        return self.marks().low

    def marks(self) -> Marks:
        """The marks to publish. They never decrease."""
        with self._lock:
            self._mark = max(self._mark, min(self._lowest(self._bounds), self._head))
            self._write_mark = max(self._write_mark, min(self._lowest(self._writers), self._head))
            open_ = sorted(((self._bounds[t], w) for t, w in self._writers.items()), key=lambda held: held[0])
            return Marks(self._mark, self._write_mark, _shorten(open_), self._head)

    def __len__(self) -> int:
        return len(self._bounds)


def _shorten(holders: list[tuple[Seq, OpenWriter]]) -> tuple[tuple[Seq, OpenWriter], ...]:
    shown, others = holders[:HOLDERS_MAX], holders[HOLDERS_MAX:]
    if others:
        shown.append((others[0][0], OpenWriter(f"{len(others)} others", others[0][1].since_us)))
    return tuple(shown)


class SnapshotPins:
    """Snapshots that are pinned for longer than the statements that read them."""

    def __init__(self) -> None:
        self._tickets: list[tuple[Registry, int]] = []

    def add(self, registry: Registry, snapshot: Seq) -> None:
        """The caller's own transaction protects the snapshot during the call."""
        ticket = registry.enter_below(snapshot)
        self._tickets.append((registry, ticket))
        registry.move(ticket, snapshot)

    def release(self) -> None:
        while self._tickets:
            registry, ticket = self._tickets.pop()
            registry.leave(ticket)
