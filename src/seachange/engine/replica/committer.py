"""Group commit: the waiting sessions of a node go through the sequencer together.

**Invariant:** when `submit` returns a `Committed`, the node has applied the commit and everything before it, or will
have before its next transaction reads, so a client that has seen a commit can read it. A refusal concerns its own
member only.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from seachange.catalog.port import Catalog
from seachange.model.ids import Epoch, IndexId, LayoutId
from seachange.model.log import CommitRequest, Outcome
from seachange.runtime.faults import reach
from seachange.storage.image import Row

BATCH_MAX = 64
# The maximum time that a leader waits for the members of the last two batches to return with their next commit.
GATHER_SECONDS_MAX = 0.001


@dataclass(frozen=True, slots=True)
class LocalRows:
    """Inline rows of a commit in decoded form, for the node that committed them."""

    index_id: IndexId
    layout_id: LayoutId
    ops: Sequence[int]
    rows: Sequence[Row]


@dataclass(slots=True)
class Submission:
    request: CommitRequest
    local: tuple[LocalRows, ...] = ()
    outcome: Outcome | None = None
    problem: BaseException | None = None
    done: bool = field(default=False)


class GroupCommitter:
    """A session that finds the sequencer free becomes the leader: it commits all waiting submissions in one catalog
    transaction."""

    def __init__(self, catalog: Catalog, epoch: Epoch, apply: Callable[[Sequence[Submission]], None]) -> None:
        self._catalog = catalog
        self._epoch = epoch
        self._apply = apply
        self._waiting: deque[Submission] = deque()
        self._lead = threading.Lock()
        self._arrival = threading.Condition()
        self._last_batches: deque[int] = deque((1, 1), maxlen=2)
        self.catalog_commits = 0
        self.commits = 0

    def submit(self, submission: Submission) -> Outcome:
        reach("commit.queued")
        with self._arrival:
            self._waiting.append(submission)
            self._arrival.notify()
        with self._lead:
            # Locks are not fair: more than one batch may be ahead of the leader's own submission.
            while not submission.done:
                self._gather()
                self.step()
        if submission.problem is not None:
            raise submission.problem
        assert submission.outcome is not None
        return submission.outcome

    def _gather(self) -> None:
        """Sessions that have just committed are likely to commit again: one transaction for most of them is worth a
        short wait. A single session never waits."""
        expected = min(BATCH_MAX, sum(self._last_batches) * 3 // 4)
        if len(self._waiting) < expected:
            with self._arrival:
                self._arrival.wait_for(lambda: len(self._waiting) >= expected, GATHER_SECONDS_MAX)

    def step(self) -> None:
        """Commits all waiting submissions in one catalog transaction; called by the leader."""
        batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), BATCH_MAX))]
        try:
            outcomes = self._catalog.commit(self._epoch, [member.request for member in batch])
            for member, outcome in zip(batch, outcomes, strict=True):
                member.outcome = outcome
            self._apply_decided(batch)
        except Exception as problem:  # noqa: BLE001 - handed to every member, each in its own session
            for member in batch:
                member.problem = problem
        finally:
            for member in batch:
                member.done = True
        self._last_batches.append(len(batch))
        self.catalog_commits += 1
        self.commits += len(batch)
        reach("commit.applied")

    def _apply_decided(self, batch: Sequence[Submission]) -> None:
        """A commit that is decided is never reported as failed, or the client would commit a second time. A node that
        cannot apply the log now does so before its next transaction, or learns that its epoch has ended."""
        with suppress(Exception):
            self._apply(batch)
