"""The classic lifecycles of F1: a schema cached by each server, at most two versions at once, backfill in place.

Kept for `seachange verify --protocol f1`, which shows what each state is for. Our own lifecycles do without
DELETE_ONLY: generations and the schema in the snapshot do its work.
"""

from __future__ import annotations

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.ops import OpType
from seachange.model.change.targets import Status
from seachange.planner.lifecycles.lifecycle import Lifecycle, LifecycleStep

# Every step relies on no server being further behind than the status it starts from.
_DOWN = (
    LifecycleStep(Status.WRITE_ONLY, fenced=True),
    LifecycleStep(Status.DELETE_ONLY, fenced=True, revertible=False),
    LifecycleStep(Status.ABSENT, fenced=True, revertible=False),
)

COLUMN = Lifecycle(
    add=(
        LifecycleStep(Status.DELETE_ONLY, fenced=True),
        LifecycleStep(Status.WRITE_ONLY, fenced=True),
        LifecycleStep(Status.BACKFILLED, OpType.BACKFILL, fenced=True),
        LifecycleStep(Status.PUBLIC, fenced=True),
    ),
    drop=_DOWN,
)
INDEX = COLUMN
# Uniqueness is a constraint on top: what a backfill in place finds is not all that there is.
UNIQUE_INDEX = Lifecycle(
    add=(
        *INDEX.add[:-1],
        LifecycleStep(Status.ENFORCED, fenced=True),
        LifecycleStep(Status.VALIDATED, OpType.VALIDATION, fenced=True),
        LifecycleStep(Status.PUBLIC, fenced=True),
    ),
    # Others still rely on it, while anybody still shows it.
    drop=(LifecycleStep(Status.ENFORCED, fenced=True), *_DOWN),
)
CONSTRAINT = Lifecycle(
    add=(
        LifecycleStep(Status.ENFORCED, fenced=True),
        LifecycleStep(Status.VALIDATED, OpType.VALIDATION, fenced=True),
        LifecycleStep(Status.PUBLIC, fenced=True),
    ),
    drop=(LifecycleStep(Status.ENFORCED, fenced=True), LifecycleStep(Status.ABSENT, fenced=True, revertible=False)),
)

F1_LIFECYCLES: dict[type[Element], Lifecycle] = {
    elements.ColumnElement: COLUMN,
    elements.SecondaryIndex: INDEX,
    elements.UniqueIndex: UNIQUE_INDEX,
    elements.CheckConstraint: CONSTRAINT,
    elements.ColumnNotNull: CONSTRAINT,
}
