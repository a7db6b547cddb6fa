"""Group commit: the waiting sessions of a node go through the sequencer together.

**Invariant:** when `submit` returns a `Committed`, the node has applied the commit and everything before it, or will
have before its next transaction reads, so a client that has seen a commit can read it. A refusal concerns its own
member only.

**Invariant:** a submission whose session was interrupted (Ctrl-C) before it was sent is never sent. One that was under
way is decided or its outcome is unknown; it is never reported as failed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.engine.context.background import drive
from seachange.model.ids import Epoch, IndexId, LayoutId
from seachange.model.log import CommitRequest, Outcome
from seachange.runtime.clock import Clock
from seachange.runtime.faults import reach
from seachange.storage.image import Row

BATCH_MAX = 64
# The maximum time that a leader waits for the members of the last two batches to return with their next commit.
GATHER_US_MAX = 1_000


@dataclass(frozen=True, slots=True)
class LocalRows:
    """Inline rows of a commit in decoded form, for the node that committed them."""

    index_id: IndexId
    layout_id: LayoutId
    ops: Sequence[int]
    rows: Sequence[Row]


@dataclass(slots=True, eq=False)
class Submission:
    request: CommitRequest
    local: tuple[LocalRows, ...] = ()
    outcome: Outcome | None = None
    problem: BaseException | None = None
    done: bool = field(default=False)


class GroupCommitter:
    """A session that finds the sequencer free becomes the leader and drives the steps, each of which commits all
    waiting submissions in one catalog transaction."""

    def __init__(
        self, catalog: Catalog, epoch: Epoch, clock: Clock, apply: Callable[[Sequence[Submission]], None]
    ) -> None:
        self._catalog = catalog
        self._epoch = epoch
        self._clock = clock
        self._apply = apply
        self._waiting: deque[Submission] = deque()
        self._lead = threading.Lock()
        self._arrival = threading.Condition()
        self._last_batches: deque[int] = deque((1, 1), maxlen=2)
        # When the leader stops waiting for others, once it has begun to.
        self._due_us: int | None = None
        self.catalog_commits = 0
        self.commits = 0

    def submit(self, submission: Submission) -> Outcome:
        reach("commit.queued")
        with self._arrival:
            self._waiting.append(submission)
            self._arrival.notify()
        try:
            with self._lead:
                # Locks are not fair: more than one batch may be ahead of the leader's own submission.
                drive(self, self._clock, lambda: submission.done)
        except BaseException:
            self._withdraw(submission)
            raise
        if submission.problem is not None:
            raise submission.problem
        assert submission.outcome is not None
        return submission.outcome

    def _withdraw(self, submission: Submission) -> None:
        with self._arrival, suppress(ValueError):
            self._waiting.remove(submission)

    @property
    def _is_whole(self) -> bool:
        """Sessions that have just committed are likely to commit again: one transaction for most of them is worth a
        short wait. A single session never waits."""
        return len(self._waiting) >= min(BATCH_MAX, sum(self._last_batches) * 3 // 4)

    def wait(self, seconds: float) -> None:
        with self._arrival:
            self._arrival.wait_for(lambda: self._is_whole, seconds)

    def wake(self) -> None:
        with self._arrival:
            self._arrival.notify()

    def step(self, now_us: int) -> int:
        if not self._is_whole:
            self._due_us = now_us + GATHER_US_MAX if self._due_us is None else self._due_us
            if now_us < self._due_us:
                return self._due_us
        self._due_us = None
        self._commit()
        return now_us

    def _commit(self) -> None:
        # A step that finds no memory is tried again: no submission is lost before all are in the batch.
        with self._arrival:
            batch = list(islice(self._waiting, BATCH_MAX))
            for _ in batch:
                self._waiting.popleft()
        try:
            outcomes = self._catalog.commit(self._epoch, [member.request for member in batch])
            self._answer(batch, outcomes)
            self._apply_decided(batch)
        except Exception as problem:  # noqa: BLE001 - handed to every member, each in its own session
            for member in batch:
                member.problem = problem
        except BaseException:
            for member in batch:
                if member.outcome is None:
                    id_ = member.request.commit_id.hex()
                    member.problem = errors.UnknownCommitOutcome(commit_id=id_, detail="the program was interrupted")
            raise
        finally:
            for member in batch:
                member.done = True
        self._last_batches.append(len(batch))
        self.catalog_commits += 1
        self.commits += len(batch)
        reach("commit.applied")

    def _answer(self, batch: Sequence[Submission], outcomes: Sequence[Outcome]) -> None:
        """What is decided is not reported as failed: memory is only missing for a moment."""
        while True:
            with suppress(MemoryError):
                for member, outcome in zip(batch, outcomes, strict=True):
                    member.outcome = outcome
                return

    def _apply_decided(self, batch: Sequence[Submission]) -> None:
        """A commit that is decided is never reported as failed, or the client would commit a second time. A node that
        cannot apply the log now does so before its next transaction, or learns that its epoch has ended."""
        with suppress(Exception):
            self._apply(batch)
