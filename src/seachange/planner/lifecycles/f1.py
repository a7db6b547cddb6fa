"""The classic lifecycles of F1: a schema cached by each server, at most two versions at once, backfill in place.

Kept for `seachange verify --protocol f1`, which shows what each state is for. Our own lifecycles do without
DELETE_ONLY: generations and the schema in the snapshot do its work.
"""

from __future__ import annotations

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.ops import OpType
from seachange.model.change.targets import Status
from seachange.planner.lifecycles.lifecycle import Lifecycle, Step

# Every step relies on nobody being further behind than the status it starts from.
_DOWN = (
    Step(Status.WRITE_ONLY, fenced=True),
    Step(Status.DELETE_ONLY, fenced=True, revertible=False),
    Step(Status.ABSENT, fenced=True, revertible=False),
)

COLUMN = Lifecycle(
    add=(
        Step(Status.DELETE_ONLY, fenced=True),
        Step(Status.WRITE_ONLY, fenced=True),
        Step(Status.BACKFILLED, OpType.BACKFILL, fenced=True),
        Step(Status.PUBLIC, fenced=True),
    ),
    drop=_DOWN,
)
INDEX = COLUMN
# Uniqueness is a constraint on top: what a backfill in place finds is not all that there is.
UNIQUE_INDEX = Lifecycle(
    add=(
        *INDEX.add[:-1],
        Step(Status.ENFORCED, fenced=True),
        Step(Status.VALIDATED, OpType.VALIDATION, fenced=True),
        Step(Status.PUBLIC, fenced=True),
    ),
    # Others still rely on it, while anybody still shows it.
    drop=(Step(Status.ENFORCED, fenced=True), *_DOWN),
)
CONSTRAINT = Lifecycle(
    add=(
        Step(Status.ENFORCED, fenced=True),
        Step(Status.VALIDATED, OpType.VALIDATION, fenced=True),
        Step(Status.PUBLIC, fenced=True),
    ),
    drop=(Step(Status.ENFORCED, fenced=True), Step(Status.ABSENT, fenced=True, revertible=False)),
)

F1_LIFECYCLES: dict[type[Element], Lifecycle] = {
    elements.Column: COLUMN,
    elements.SecondaryIndex: INDEX,
    elements.UniqueIndex: UNIQUE_INDEX,
    elements.CheckConstraint: CONSTRAINT,
    elements.ColumnNotNull: CONSTRAINT,
}
