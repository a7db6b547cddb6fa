"""Constraints key by key, over the rows of the reference reader: NULLs and checks in Python, parents by lookups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seachange.model.schema.constraint import ForeignKey
from seachange.model.states import READABLE
from seachange.verify.anomalies import Anomaly, AnomalyKind
from seachange.verify.port import Snapshot
from seachange.verify.reference import Reference
from seachange.verify.sets import ANOMALIES_MAX
from seachange.verify.subject import CheckedIndex

Row = tuple[Any, ...]
_HOW = "looked at key by key"


class RuleKeys:
    def __init__(self, snapshot: Snapshot, primary: CheckedIndex, rows: Reference) -> None:
        self._snapshot = snapshot
        self._primary = primary
        self._rows = rows

    def nulls(self) -> list[Anomaly]:
        columns = enumerate(self._primary.columns)
        required = [(i, c) for i, c in columns if not c.nullable and {c.state, c.not_null} <= READABLE]
        found = [
            self._anomaly(AnomalyKind.NULL_VALUE, row, column.name)
            for row in self._rows.live.values()
            for position, column in required
            if row[position] is None
        ]
        return found[:ANOMALIES_MAX]

    def broken_checks(self) -> list[Anomaly]:
        """By the form of the checks that single rows are checked with when they are written."""
        table = self._primary.table
        public = {check.name for check in table.checks if check.state in READABLE}
        if not public:
            return []
        back = [table.columns.index(column) for column in self._primary.columns]
        rows = self._primary.whole_rows(list(self._rows.live.values()))
        broken = [(name, row) for name, row in self._snapshot.broken_checks(table, rows) if name in public]
        found = [self._anomaly(AnomalyKind.CHECK_BROKEN, tuple([row[p] for p in back]), name) for name, row in broken]
        return found[:ANOMALIES_MAX]

    def wrong_values(self) -> list[Anomaly]:
        """By the form of the expressions that single rows are computed with when they are written."""
        table, generated = self._primary.table, self._primary.generated
        if not generated:
            return []
        live = list(self._rows.live.values())
        rows = self._primary.whole_rows(live)
        filled = self._snapshot.fill(table, rows)
        found = [
            self._anomaly(AnomalyKind.GENERATED_WRONG, row, column.name)
            for column in generated
            for row, before, after in zip(live, rows, filled, strict=True)
            if not _is_same(before[table.columns.index(column)], after[table.columns.index(column)])
        ]
        return found[:ANOMALIES_MAX]

    def orphans(self, key: ForeignKey, parent: CheckedIndex) -> list[Anomaly]:
        positions = [self._primary.columns.index(self._primary.table.column_by_id[c]) for c in key.columns]
        holds = self._finder(key, parent)
        found = []
        for row in self._rows.live.values():
            value = tuple([row[p] for p in positions])
            if key.refers(value) and (None in value or not holds(value)):
                found.append(self._anomaly(AnomalyKind.ORPHAN_ROW, row, key.name))
        return found[:ANOMALIES_MAX]

    def _finder(self, key: ForeignKey, parent: CheckedIndex) -> Callable[[Row], bool]:
        """Whether there is a parent with a key, by the index that the foreign key refers to."""
        snapshot, index = self._snapshot.snapshot, parent.table.index_by_id[key.parent_index]
        image = self._snapshot.epoch.image(parent.table, index, snapshot)
        if index.id == parent.table.primary.id:
            return lambda value: image.get(value, snapshot) is not None
        return lambda value: bool(image.find_unique(value, snapshot))

    def _anomaly(self, kind: AnomalyKind, row: Row, what: str) -> Anomaly:
        return self._primary.anomaly(kind, row[: len(self._primary.key)], f"{what} ({_HOW})")


def _is_same(one: Any, other: Any) -> bool:
    """NaN is the same as itself."""
    return bool(one == other or (one != one and other != other))
