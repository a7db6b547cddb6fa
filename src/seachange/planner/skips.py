"""Which statuses a target need not stop at: rewrites of the graph that save versions, waits and work."""

from __future__ import annotations

from collections.abc import Sequence

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.ops import OpType
from seachange.model.change.targets import UNCOMMITTED, Status, Target
from seachange.planner.builders.draft import Draft
from seachange.planner.graph import Skip
from seachange.planner.lifecycles.lifecycle import Lifecycle
from seachange.planner.rules.release import Release, lifecycle_of

NEW_TABLE = "the table is created by the same transaction"
EMPTY_TABLE = "the table has no rows"
BUILT = "its entries need no building"

# An index is still to be built where its key is known to be unique.
_PROOF = frozenset({*UNCOMMITTED, *UNCOMMITTED.values()})


def find_skips(targets: Sequence[Target], draft: Draft, release: Release, in_block: bool = False) -> dict[int, Skip]:
    """By number of the target. Notes in the draft which tables have to be empty for it."""
    skips: dict[int, Skip] = {}
    for number, target in enumerate(targets):
        lifecycle = lifecycle_of(type(target.element), target.goal, target.start, release, in_block)
        # Added by this change, and not in one step.
        if target.adds and len(lifecycle.add) > 1:
            skip = _find(target.element, lifecycle, draft)
            if skip is not None:
                skips[number] = skip
    return skips


def _find(element: Element, lifecycle: Lifecycle, draft: Draft) -> Skip | None:
    between = frozenset(lifecycle.statuses) - {Status.ABSENT, Status.PUBLIC}
    table_id = getattr(element, "table_id", None)
    if table_id is not None and draft.is_new(table_id):
        return Skip(NEW_TABLE, between)
    if getattr(element, "built", False):
        return Skip(BUILT, between)
    reason = _implied(element, draft)
    if reason is not None and not isinstance(element, elements.UniqueIndex):
        return Skip(reason, between)
    waits = any(step.fenced or step.op is not OpType.MUTATION for step in lifecycle.add)
    if waits and table_id is not None and draft.has_no_rows(table_id):
        return Skip(EMPTY_TABLE, between)
    return Skip(reason, _PROOF) if reason is not None else None


def _implied(element: Element, draft: Draft) -> str | None:
    if isinstance(element, elements.ForeignKeyParent):
        # It goes with the other end.
        for key in draft.select(
            elements.ForeignKeyElement, table_id=element.table_id, constraint_id=element.constraint_id
        ):
            return draft.implied.get(key)
    return draft.implied.get(element)
