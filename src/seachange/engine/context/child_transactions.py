"""The port of a transaction block to its child transactions, which a session implements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from seachange.changer.job import BlockOwner, Job
from seachange.model.ids import Epoch
from seachange.model.schema.objects import Descriptor
from seachange.pipeline.kernels.overlay import BlockWrites

# A descriptor as it is published, None if it is new, and its next version.
NextVersion = tuple[Descriptor | None, Descriptor]


class ChildTransactions(Protocol):
    """Commits of their own that publish the hidden states of a change while its block is open."""

    @property
    def owner(self) -> BlockOwner: ...

    @property
    def drain_ms(self) -> int: ...

    @property
    def job_settings(self) -> tuple[tuple[str, str], ...]:
        """The settings of the session that are kept with a job."""

    def report(self, notice: str) -> None:
        """Tells the client what its statement waits for."""

    def run(self, job: Job, versions: Sequence[NextVersion], epoch: Epoch, own_writes: BlockWrites) -> Job:
        """Creates the job with its first versions, and runs it up to its publication. If it fails, or is cancelled,
        nothing is left of it, and its error is raised. Constraints are validated over committed rows under
        `own_writes`."""

    def check(self, jobs: Sequence[Job]) -> None:
        """Raises SerializationFailure if one of them was cancelled while the block was idle: what it has built is no
        longer kept up to date."""

    def revert(self, jobs: Sequence[Job]) -> None:
        """Reverts the jobs, the newest first. What cannot be reverted now, a worker reverts later."""

    def leave(self, jobs: Sequence[Job]) -> None:
        """The COMMIT of the block has ended them, or may have: it is not known."""
