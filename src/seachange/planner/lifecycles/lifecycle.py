"""What a lifecycle is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from seachange.model.change.ops import OpType
from seachange.model.change.targets import UNCOMMITTED, Status


@dataclass(frozen=True, slots=True)
class LifecycleStep:
    """One step to status `to`.

    `fenced`: the step relies on every writer knowing the status that it starts from, so that must be published, drained
    and fenced before. `revertible`: after it the change can still be reverted.
    """

    to: Status
    op: OpType = OpType.MUTATION
    fenced: bool = False
    revertible: bool = True


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """`add` begins at ABSENT. `drop` begins at PUBLIC, and equally at any status of `add`: a change is reverted by
    dropping what it has added so far."""

    add: tuple[LifecycleStep, ...]
    drop: tuple[LifecycleStep, ...]
    # Those of `add`, with the one that it begins at.
    statuses: tuple[Status, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "statuses", (Status.ABSENT, *(step.to for step in self.add)))

    @property
    def in_block(self) -> Lifecycle:
        """The lifecycle in a transaction block, where no step before COMMIT rejects rows of other sessions."""
        return Lifecycle(tuple(replace(step, to=UNCOMMITTED.get(step.to, step.to)) for step in self.add), self.drop)
