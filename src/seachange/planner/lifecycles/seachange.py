"""The lifecycles of our elements.

A step into or out of PUBLIC is what everybody sees of a change. All of them are taken in one stage, the publication,
once nothing is left that can fail: it is the point of no return, and so none of these steps is revertible.
"""

from __future__ import annotations

from seachange.model.change.ops import OpType
from seachange.model.change.targets import Status
from seachange.planner.lifecycles.lifecycle import Lifecycle, LifecycleStep

_PUBLISH = LifecycleStep(Status.PUBLIC, revertible=False)
_REMOVE = (LifecycleStep(Status.ABSENT, revertible=False),)

# Schema only: what has no rows of its own, and what is true of all rows by definition.
SIMPLE = Lifecycle(add=(_PUBLISH,), drop=_REMOVE)

# A row that was written without the column reads as its frozen value, so no writer needs to be waited for.
COLUMN = Lifecycle(add=(LifecycleStep(Status.WRITE_ONLY), _PUBLISH), drop=_REMOVE)

# A row whose old value has no counterpart of the new type is recorded, not refused: the change is what fails.
CONVERTED_COLUMN = Lifecycle(add=(LifecycleStep(Status.VALIDATING), _PUBLISH), drop=_REMOVE)

# Writers keep its values, and those that rows had are written back for the rows of now.
RESTORED_COLUMN = Lifecycle(
    add=(
        LifecycleStep(Status.WRITE_ONLY),
        LifecycleStep(Status.BACKFILLED, OpType.RESTORATION, fenced=True),
        _PUBLISH,
    ),
    drop=_REMOVE,
)

# Reorganisation: entries are built for the rows as of a moment from which on every writer maintains them.
INDEX = Lifecycle(
    add=(
        LifecycleStep(Status.WRITE_ONLY),
        LifecycleStep(Status.BACKFILLED, OpType.BACKFILL, fenced=True),
        _PUBLISH,
    ),
    drop=_REMOVE,
)

# Writers declare their keys from WRITE_ONLY on; a writer that checks, from ENFORCED on, can rely on them.
UNIQUE_INDEX = Lifecycle(
    add=(
        LifecycleStep(Status.WRITE_ONLY),
        LifecycleStep(Status.BACKFILLED, OpType.BACKFILL, fenced=True),
        LifecycleStep(Status.ENFORCED),
        LifecycleStep(Status.VALIDATED, OpType.VALIDATION, fenced=True),
        _PUBLISH,
    ),
    drop=_REMOVE,
)

# Validation of what looks at one row alone.
ROW_CONSTRAINT = Lifecycle(
    add=(
        LifecycleStep(Status.ENFORCED),
        LifecycleStep(Status.VALIDATED, OpType.VALIDATION, fenced=True),
        _PUBLISH,
    ),
    drop=_REMOVE,
)

# Validation of what looks at keys of another table: children leave the keys that they rely on before anybody checks.
FOREIGN_KEY = Lifecycle(
    add=(
        LifecycleStep(Status.WRITE_ONLY),
        LifecycleStep(Status.ENFORCED, fenced=True),
        LifecycleStep(Status.VALIDATED, OpType.VALIDATION, fenced=True),
        _PUBLISH,
    ),
    drop=_REMOVE,
)

# Files outlive the index by the time for which history is kept, and are deleted once no writer can add to them.
DATA = Lifecycle(
    add=(LifecycleStep(Status.PUBLIC),),
    drop=(LifecycleStep(Status.ABSENT, OpType.COLLECTION, fenced=True, revertible=False),),
)
