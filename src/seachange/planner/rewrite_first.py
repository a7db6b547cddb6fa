"""A new column of a transaction block that has a value of its own for each row, as two changes.

The first one rewrites the rows with their values and makes the new primary index the only one, while the column is
hidden: nothing of it shows. So writers of other sessions find the value of a row, and keep it, and maintain indexes on
the column. The second one is that of the block, whose COMMIT makes the column public.

**Invariant:** to revert both, the column goes and the rewritten rows stay: no other session has seen a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.change.targets import Goal, Status, Target
from seachange.model.object_kind import ObjectKind
from seachange.planner.block_plan import keep_targets, planned
from seachange.planner.elements.rule import COLUMN_PARTS, INDEX_PARTS
from seachange.planner.plan import Change, ChangePlan, Sequel


def rewrite_first(plan: ChangePlan) -> ChangePlan | None:
    """The plan as two changes; None if it does more to the rows than to add columns with drawn values."""
    targets = plan.change.targets
    primaries = [t.element for t in targets if t.adds and isinstance(t.element, elements.PrimaryIndex)]
    gone = [t.element for t in targets if not t.adds and isinstance(t.element, elements.PrimaryIndex)]
    if len(primaries) != 1 or [old.key for old in gone] != [primaries[0].key]:
        return None
    rewrite = _Rewrite(plan, primaries[0], gone[0])
    if not rewrite.is_drawn or any(target.goal is Goal.TRANSIENT for target in targets):
        return None
    of_index = [n for n, t in enumerate(targets) if rewrite.swaps(t.element)]
    of_column = [n for n, t in enumerate(targets) if t.adds and rewrite.is_part(t.element)]
    columns = [n for n in of_column if isinstance(targets[n].element, elements.ColumnElement)]
    rest = [n for n in range(len(targets)) if n not in {*of_index, *of_column} or n in columns]
    hidden = {n: replace(targets[n], goal=Goal.HIDDEN) for n in columns}
    shown = {n: replace(targets[n], start=Status.WRITE_ONLY) for n in columns}
    first = keep_targets(_with(plan, hidden), sorted([*of_index, *of_column]))
    sequel = Sequel(keep_targets(_with(plan, shown), rest), keep_targets(plan.change, of_column))
    return replace(planned(first, plan), sequel=sequel)


def _with(plan: ChangePlan, changed: Mapping[int, Target]) -> Change:
    targets = tuple(changed.get(n, target) for n, target in enumerate(plan.change.targets))
    return replace(plan.change, targets=targets)


class _Rewrite:
    """Which elements belong to the new primary index, and which to the columns that rows are rewritten for."""

    def __init__(self, plan: ChangePlan, primary: elements.PrimaryIndex, old: elements.PrimaryIndex) -> None:
        self._table_id = primary.table_id
        self._columns = {*primary.rebuilt_ids}
        self._indexes = {primary.index_id, old.index_id}
        targets = plan.change.targets
        self._added = [target.element for target in targets if target.adds]
        gone = [t.element for t in targets if not t.adds and isinstance(t.element, elements.ForeignKeyElement)]
        self._repointed = {(key.table_id, key.constraint_id) for key in gone if key.parent_index_id == old.index_id}
        owned = [e for e in self._added if isinstance(e, elements.SequenceOwnerElement) and self._is_new(e)]
        self._sequences = {element.sequence_id for element in owned}

    def _is_new(self, element: Element) -> bool:
        place = (getattr(element, "table_id", None), getattr(element, "column_id", None))
        return place[0] == self._table_id and place[1] in self._columns

    @property
    def is_drawn(self) -> bool:
        """Whether the values come from defaults, not from other columns."""
        added = [element for element in self._added if self._is_new(element)]
        drawn = {element.column_id for element in added if isinstance(element, elements.ColumnElement)}
        return drawn == self._columns and not any(isinstance(e, elements.ColumnGenerated) for e in added)

    def swaps(self, element: Element) -> bool:
        match element:
            case elements.ForeignKeyElement():
                return (element.table_id, element.constraint_id) in self._repointed
            case elements.Comment(part=(ObjectKind.INDEX, index_id)):
                return element.descriptor_id == self._table_id and index_id in self._indexes
            case _:
                of_index = isinstance(element, (elements.PrimaryIndex, elements.IndexData, *INDEX_PARTS))
                return of_index and getattr(element, "index_id", None) in self._indexes

    def is_part(self, element: Element) -> bool:
        """Whether it is there before the column is public."""
        if descriptor_of(element) in self._sequences:
            return True
        of_column = isinstance(element, (elements.ColumnElement, *COLUMN_PARTS))
        return of_column and self._is_new(element) and not isinstance(element, elements.ColumnNotNull)
