"""Comparison as sets, in DuckDB: one grouped sum per pair of scans, which spills to disk if necessary.

Each side's rows are counted with opposite signs; what does not cancel out is on one side only. NULLs are equal here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa

from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column
from seachange.model.states import READABLE
from seachange.storage.arrow import column_name, read_stored, schema_of
from seachange.storage.duck_functions import know_functions
from seachange.storage.entries import columns_read, select_entries
from seachange.storage.plan import Overlay, plan_scan
from seachange.verify.anomalies import Anomaly, AnomalyKind
from seachange.verify.port import Snapshot
from seachange.verify.reference import Reference
from seachange.verify.subject import CheckedIndex

# More of one kind on one index say nothing new.
ANOMALIES_MAX = 100


class SetComparison:
    """The scans of one snapshot, by the positional read plan, on a connection that is used for nothing else."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, snapshot: Snapshot) -> None:
        self._duck = connection
        self._snapshot = snapshot
        self._names = 0
        # 7 / 2 is 3 in the expressions of checks.
        connection.execute("SET integer_division = true")

    def compare_with_rows(self, primary: CheckedIndex, subject: CheckedIndex) -> list[Anomaly]:
        """The entries of a secondary index against those that the table's rows call for."""
        if not subject.complete:
            return []
        expected, entries = self.entries(primary, subject, subject.columns), self.scan(subject, subject.columns)
        found = []
        for key, side in self._difference(subject, expected, entries):
            kind = AnomalyKind.MISSING_ENTRY if side > 0 else AnomalyKind.ORPHAN_ENTRY
            found.append(subject.anomaly(kind, key, "compared as sets"))
        return found

    def compare_with_reference(self, subject: CheckedIndex, reference: Reference, whole: bool) -> list[Anomaly]:
        """What a scan shows against what the key rule says, for all keys or for those that the reference saw."""
        expected = self._given(subject.columns, list(reference.live.values()))
        scan = self.scan(subject, subject.columns)
        if not whole:
            scan = self._only_seen(subject, scan, reference)
        found = []
        for key, side in self._difference(subject, expected, scan):
            kind = AnomalyKind.SCAN_MISSES if side > 0 else AnomalyKind.SCAN_INVENTS
            found.append(subject.anomaly(kind, key, "compared with the newest version of each key"))
        return found

    def count(self, subject: CheckedIndex) -> int:
        """How many entries a scan shows."""
        rows = self.scan(subject, subject.key)
        ((count,),) = self.run(f"SELECT count(*) FROM ({rows.sql})", rows)  # noqa: S608 - names made of ids
        return int(count)

    def duplicates(self, primary: CheckedIndex, subject: CheckedIndex) -> list[Anomaly]:
        """Values of a unique key that several rows of the table have."""
        if not subject.unique:
            return []
        names, rows = column_names(subject.unique), self.entries(primary, subject, subject.unique)
        distinct = subject.index.nulls_distinct
        present = " AND ".join(f"{name} IS NOT NULL" for name in names) if distinct else "true"
        sql = (
            f"SELECT {key_texts(subject.unique)}, count(*) FROM ({rows.sql}) WHERE {present} "  # noqa: S608 - names made of ids
            f"GROUP BY {', '.join(names)} HAVING count(*) > 1 LIMIT {ANOMALIES_MAX}"
        )
        return [subject.anomaly(AnomalyKind.DUPLICATE_KEY, row[:-1], row[-1]) for row in self.run(sql, rows)]

    def nulls(self, primary: CheckedIndex) -> list[Anomaly]:
        """Rows without a value where one is required."""
        found = []
        for column in primary.columns:
            if column.nullable or not {column.state, column.not_null} <= READABLE:
                continue
            rows = self.scan(primary, list(dict.fromkeys([*primary.key, column])))
            sql = (
                f"SELECT {key_texts(primary.key)} FROM ({rows.sql}) "  # noqa: S608 - names made of ids
                f"WHERE {column_name(column.id)} IS NULL LIMIT {ANOMALIES_MAX}"
            )
            found += [primary.anomaly(AnomalyKind.NULL_VALUE, key, column.name) for key in self.run(sql, rows)]
        return found

    def _difference(self, subject: CheckedIndex, left: Scan, right: Scan) -> Iterator[tuple[tuple[Any, ...], int]]:
        """The keys of the rows that are on one side only: positive on the left, negative on the right."""
        names = ", ".join(column_names(subject.columns))
        sql = (
            f"SELECT {key_texts(subject.key)}, sum(side) FROM ("  # noqa: S608 - names made of ids
            f"SELECT {names}, 1 AS side FROM ({left.sql}) UNION ALL SELECT {names}, -1 FROM ({right.sql})"
            f") GROUP BY {names} HAVING sum(side) <> 0 LIMIT {ANOMALIES_MAX}"
        )
        return ((row[:-1], int(row[-1])) for row in self.run(sql, left, right))

    # Queries: columns are named after their ids throughout.

    def scan(self, subject: CheckedIndex, columns: Sequence[Column]) -> Scan:
        view = self._snapshot
        parts = view.epoch.image(subject.table, subject.index, view.snapshot).parts(view.snapshot)
        warehouse, prefix = view.parts.warehouse, self._name()
        # A column that is yet to come may bear the name of another.
        named = [replace(column, name=column_name(column.id)) for column in columns]
        return plan_scan(subject.table, subject.index, named, parts, Overlay(), warehouse, prefix)

    def entries(self, primary: CheckedIndex, subject: CheckedIndex, columns: Sequence[Column]) -> Scan:
        """The entries of an index that the table's rows call for."""
        rows = self.scan(primary, columns_read(subject.table, subject.index, columns) or primary.key)
        return replace(rows, sql=select_entries(subject.table, subject.index, f"({rows.sql})", columns))

    def _given(self, columns: Sequence[Column], rows: list[tuple[Any, ...]]) -> Scan:
        schema, name = schema_of((c.id, c.type) for c in columns), self._name()
        values = zip(*rows, strict=True) if rows else [()] * len(schema)
        arrays = [pa.array(column, f.type) for column, f in zip(values, schema, strict=True)]
        table = pa.Table.from_arrays(arrays, schema=schema)
        read = ", ".join(f"{read_stored(column_name(c.id), c.type)} AS {column_name(c.id)}" for c in columns)
        return Scan(f"SELECT {read} FROM {name}", {}, {name: table})  # noqa: S608 - names of our own

    def _only_seen(self, subject: CheckedIndex, scan: Scan, reference: Reference) -> Scan:
        live = [row[: len(subject.key)] for row in reference.live.values()]
        seen = self._given(subject.key, [*live, *reference.gone.values()])
        same = " AND ".join(f"s.{name} IS NOT DISTINCT FROM k.{name}" for name in column_names(subject.key))
        sql = f"SELECT s.* FROM ({scan.sql}) s SEMI JOIN ({seen.sql}) k ON {same}"  # noqa: S608 - names made of ids
        return Scan(sql, scan.parameters, {**scan.relations, **seen.relations})

    def _name(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def run(self, sql: str, *scans: Scan) -> list[tuple[Any, ...]]:
        relations = {name: relation for scan in scans for name, relation in scan.relations.items()}
        for name, relation in relations.items():
            self._duck.register(name, relation)
        try:
            parameters = {name: value for scan in scans for name, value in scan.parameters.items()}
            know_functions(self._duck, sql)
            return self._duck.execute(sql, parameters).fetchall()
        finally:
            for name in relations:
                self._duck.unregister(name)


def column_names(columns: Sequence[Column]) -> list[str]:
    return [column_name(column.id) for column in columns]


def key_texts(columns: Sequence[Column], prefix: str = "") -> str:
    """As text, so that every type of key can be printed."""
    names = [prefix + name for name in column_names(columns)]
    return ", ".join(f"CAST({name} AS VARCHAR)" for name in names)
