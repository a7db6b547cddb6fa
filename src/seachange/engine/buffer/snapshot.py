"""The snapshot of a transaction: the last commit that it sees, and its place among the open transactions of the node.

**Invariant:** from before the snapshot is taken until the transaction ends, the registry holds the low-water mark at or
below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from seachange import errors
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.registry import OpenWriter
from seachange.model.ids import Seq


class TransactionSnapshot:
    """`as_of`: it reads the past, and does not move. `writer` is None if the transaction only reads: schema changes do
    not wait for it then."""

    def __init__(self, epoch: EpochState, as_of: Seq | None, writer: OpenWriter | None) -> None:
        self._epoch = epoch
        self.is_past = as_of is not None
        self._may_write = writer is not None and as_of is None
        # Its number in the registry.
        self.ticket = epoch.registry.enter(writer) if as_of is None else epoch.registry.enter_below(as_of)
        # Whether the statement under way reads as of a limit.
        self.is_held = False
        try:
            self.seq = self._look() if as_of is None else self._look_back(as_of)
        except BaseException:
            # What never began must not hold the low-water mark.
            epoch.registry.leave(self.ticket)
            raise

    def _look(self) -> Seq:
        head = self._epoch.catch_up()
        self._epoch.registry.move(self.ticket, head)
        return head

    def _look_back(self, as_of: Seq) -> Seq:
        """The future cannot be read; and who may read the past is decided now."""
        if as_of > self._epoch.catch_up():
            raise errors.InvalidSetting(name="seachange.as_of", value=as_of)
        return as_of

    def look_again(self) -> None:
        """Takes another one, before anything was read."""
        self.seq = self._look()

    def advance(self, head: Seq) -> None:
        self.seq, self.is_held = head, False

    def go_back(self, seq: Seq) -> None:
        """To a limit, for the statement under way."""
        if seq >= self.seq:
            raise errors.Bug(detail=f"a statement as of {self.seq} was sent back to {seq}")
        self.seq, self.is_held = seq, True

    @contextmanager
    def reading_at(self, seq: Seq) -> Iterator[None]:
        """What is read within is read as of another commit."""
        before, self.seq = self.seq, seq
        try:
            yield
        finally:
            self.seq = before

    def pin(self, seq: Seq) -> None:
        """Nothing older is needed from now on."""
        self._epoch.registry.move(self.ticket, seq)

    def check_writable(self) -> None:
        if self.is_past:
            raise errors.ReadOnlyTransaction(command="a write")
        if not self._may_write:
            raise errors.Bug(detail="a transaction writes that was said to read only")

    def check_kept(self) -> None:
        """Raises when what is read at the snapshot may have been collected."""
        catalog = self._epoch.catalog
        floor = catalog.floor()
        if self.seq < floor:
            raise errors.SnapshotTooOld(snapshot=self.seq, detail=f"history is kept from commit {floor} on")
        if self._epoch.epoch not in {node.epoch for node in catalog.nodes() if node.live}:
            self._epoch.ended = True
            raise errors.StaleNode(node=self._epoch.epoch)

    def reading(self) -> ReadingSnapshot:
        return ReadingSnapshot(self)


class ReadingSnapshot:
    """A file that is missing because the snapshot was given up is not damage: it is a lost snapshot."""

    __slots__ = ("_snapshot",)

    def __init__(self, snapshot: TransactionSnapshot) -> None:
        self._snapshot = snapshot

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: object) -> None:
        if isinstance(problem, errors.SegmentDamaged):
            self._snapshot.check_kept()
