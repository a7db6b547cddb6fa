"""Constraints by two methods: key by key over the rows of the reference reader, and as sets in DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seachange.model.schema.constraint import ForeignKey
from seachange.model.states import READABLE
from seachange.storage.arrow import column_name
from seachange.storage.entries import as_assigned
from seachange.verify.anomalies import Anomaly, AnomalyKind
from seachange.verify.port import Snapshot
from seachange.verify.reference import Reference
from seachange.verify.sets import ANOMALIES_MAX, SetComparison, column_names, key_texts
from seachange.verify.subject import CheckedIndex

Row = tuple[Any, ...]
_HOW = "looked at key by key"
_AS_SETS = "compared as sets"


class RuleKeys:
    """NULLs and checks in Python, parents by lookups."""

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


class RuleSets:
    """One query for each CHECK, one anti-join for each FOREIGN KEY, over the read plan."""

    def __init__(self, sets: SetComparison) -> None:
        self._sets = sets

    def broken_checks(self, primary: CheckedIndex) -> list[Anomaly]:
        found = []
        for check in primary.table.checks:
            if check.state not in READABLE:
                continue
            used = [primary.table.column_by_id[c] for c in check.columns]
            rows = self._sets.scan(primary, list(dict.fromkeys([*primary.key, *used])))
            sql = (
                f"SELECT {key_texts(primary.key)} FROM ({rows.sql}) "  # noqa: S608 - columns are named by id
                f"WHERE NOT ({check.expression}) LIMIT {ANOMALIES_MAX}"
            )
            detail = f"{check.name} ({_AS_SETS})"
            found += [primary.anomaly(AnomalyKind.CHECK_BROKEN, key, detail) for key in self._sets.run(sql, rows)]
        return found

    def wrong_values(self, primary: CheckedIndex) -> list[Anomaly]:
        """Rows whose generated columns have another value than their expressions."""
        found = []
        for column in primary.generated:
            assert column.generated is not None
            used = [column, *(primary.table.column_by_id[c] for c in column.generated.columns)]
            rows = self._sets.scan(primary, list(dict.fromkeys([*primary.key, *used])))
            value = as_assigned(column.generated, column.type)
            sql = (
                f"SELECT {key_texts(primary.key)} FROM ({rows.sql}) "  # noqa: S608 - columns are named by id
                f"WHERE {column_name(column.id)} IS DISTINCT FROM {value} LIMIT {ANOMALIES_MAX}"
            )
            detail = f"{column.name} ({_AS_SETS})"
            found += [primary.anomaly(AnomalyKind.GENERATED_WRONG, key, detail) for key in self._sets.run(sql, rows)]
        return found

    def orphans(self, primary: CheckedIndex, key: ForeignKey, parent: CheckedIndex) -> list[Anomaly]:
        """Rows whose foreign key no row of the parent has; the parent is read by its rows, not by the index."""
        columns = [primary.table.column_by_id[c] for c in key.columns]
        others = [parent.table.column_by_id[c] for c in parent.table.index_by_id[key.parent_index].key]
        rows = self._sets.scan(primary, list(dict.fromkeys([*primary.key, *columns])))
        parents = self._sets.scan(parent, others)
        any_or_all = " OR " if key.match_full else " AND "
        present = any_or_all.join(f"r.{name} IS NOT NULL" for name in column_names(columns))
        pairs = zip(columns, others, strict=True)
        same = " AND ".join(f"r.{column_name(c.id)} = p.{column_name(o.id)}" for c, o in pairs)
        sql = (
            f"SELECT {key_texts(primary.key, 'r.')} FROM ({rows.sql}) r "  # noqa: S608 - columns are named by id
            f"ANTI JOIN ({parents.sql}) p ON {same} WHERE ({present}) LIMIT {ANOMALIES_MAX}"
        )
        detail = f"{key.name} ({_AS_SETS})"
        return [primary.anomaly(AnomalyKind.ORPHAN_ROW, found, detail) for found in self._sets.run(sql, rows, parents)]
