"""Constraints as sets, in DuckDB: one query for each CHECK, one anti-join for each FOREIGN KEY, over the read plan."""

from __future__ import annotations

from seachange.model.schema.constraint import ForeignKey
from seachange.model.states import READABLE
from seachange.storage.arrow import column_name
from seachange.storage.entries import as_assigned
from seachange.verify.anomalies import Anomaly, AnomalyKind
from seachange.verify.sets import ANOMALIES_MAX, SetComparison, column_names, key_texts
from seachange.verify.subject import CheckedIndex

_HOW = "compared as sets"


class RuleSets:
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
            detail = f"{check.name} ({_HOW})"
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
            detail = f"{column.name} ({_HOW})"
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
        detail = f"{key.name} ({_HOW})"
        return [primary.anomaly(AnomalyKind.ORPHAN_ROW, found, detail) for found in self._sets.run(sql, rows, parents)]
