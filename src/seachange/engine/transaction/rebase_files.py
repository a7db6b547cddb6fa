"""The rows that a transaction has staged in files, brought to another version of their table in DuckDB.

They are held as pairs in a table of the sorter: the row as it was before the transaction, `o<id>`, and as it leaves it,
`n<id>`, in one line, with the snapshot at which it was written. What has to be computed in Python (conversions, drawn
values) is computed in batches and joined to it.

**Invariant:** a pair means what it means in `rebase_rows.py`, and becomes the same entries; any number of pairs needs a
bounded amount of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import IndexBuffer, StagedFile
from seachange.engine.bulk.bulk_change import new_name, old_name
from seachange.engine.encode.derive import Failures
from seachange.engine.encode.write_plan import EntryPlan
from seachange.engine.transaction.rebase_rows import (
    ROW_GONE,
    Move,
    carry,
    check_converted,
    refused,
)
from seachange.model.ids import ColumnId, Seq
from seachange.model.scan import Scan
from seachange.model.schema.defaults import constant_value
from seachange.model.schema.descriptor import Column, Table
from seachange.model.segments import SegmentKind
from seachange.sql.duck.default_text import is_drawn
from seachange.storage.arrow import arrow_type, column_name
from seachange.storage.bulk import as_stored, stored_output
from seachange.storage.entries import as_assigned, columns_read, select_entries
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.plan import plan_columns
from seachange.storage.projection import literal
from seachange.storage.sorter import Sorter
from seachange.values.canonical import parse_canonical

# Rows that are in Python at a time.
_BATCH_ROWS = 50_000

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """The rows before the transaction, or as it leaves them."""

    name: Callable[[ColumnId], str]
    exists: str


OLD = Side(old_name, "had")
NEW = Side(new_name, "has")
_FIXED = "place, base, had, has"


class StagedPairs:
    """The pairs of one table, as a version sees them: `table` changes as they are carried on."""

    def __init__(self, txn: TransactionState, sorter: Sorter, move: Move, buffer: IndexBuffer) -> None:
        self._txn = txn
        self._sorter = sorter
        self._move = move
        self.table = move.old
        # Columns to come that some row has no value for, and why.
        self.failed = Failures()
        self._count = 0
        self._keep(*self._read(buffer))
        self._most = self._number(f"SELECT coalesce(max(place), 0) FROM {self.name}")  # noqa: S608 - our own

    @property
    def name(self) -> str:
        return f"pairs{self._count}"

    def _keep(self, sql: str, *scans: Scan) -> None:
        """The next table of pairs takes the place of this one."""
        before = self.name
        self._count += 1
        parameters = {name: value for scan in scans for name, value in scan.parameters.items()}
        relations = {name: value for scan in scans for name, value in scan.relations.items()}
        self._sorter.keep(self.name, sql, Scan(sql, parameters, relations))
        if self._count > 1:
            self._sorter.drop(before)

    def _number(self, sql: str) -> int:
        return int(self._sorter.ask(sql)[0][0])

    # From files.

    def _read(self, buffer: IndexBuffer) -> tuple[str, *tuple[Scan, ...]]:
        groups: dict[tuple[Seq, SegmentKind, bool], list[StagedFile]] = {}
        for file in (*buffer.staged, *buffer.removed):
            groups.setdefault((file.base, file.segment.kind, file.segment.fresh), []).append(file)
        scans: list[Scan] = []
        selects = [
            self._read_group(number, *group, files, scans) for number, (group, files) in enumerate(groups.items())
        ]
        rows = " UNION ALL ".join(selects)
        return f"SELECT row_number() OVER () AS place, * FROM ({rows})", *scans  # noqa: S608 - named by id

    def _read_group(
        self, number: int, base: Seq, kind: SegmentKind, fresh: bool, files: list[StagedFile], scans: list[Scan]
    ) -> str:
        table, key = self.table, self.table.primary.key
        is_data = kind is SegmentKind.DATA
        columns = table.columns if is_data else [table.column_by_id[c] for c in key]
        slices = tuple(FileSlice(f.segment, np.array(sorted(f.deleted), dtype=np.int64)) for f in files)
        own = self._scan(f"own{number}", table, columns, SnapshotParts(slices, ()))
        scans.append(own)
        news = ", ".join(
            f"n.{column_name(c.id)} AS {new_name(c.id)}" if is_data else f"{_null(c)} AS {new_name(c.id)}"
            for c in table.columns
        )
        if fresh:
            olds = ", ".join(f"{_null(c)} AS {old_name(c.id)}" for c in table.columns)
            return f"SELECT {int(base)} AS base, false AS had, true AS has, {olds}, {news} FROM ({own.sql}) n"  # noqa: S608
        seen = self._txn.block.whole_at(table.primary.id, max(base, self._move.seq))
        parts = self._txn.epoch.image(table, table.primary, seen).parts(seen)
        committed = self._scan(f"was{number}", table, table.columns, parts)
        scans.append(committed)
        olds = ", ".join(f"o.{column_name(c.id)} AS {old_name(c.id)}" for c in table.columns)
        same = " AND ".join(f"n.{column_name(c)} = o.{column_name(c)}" for c in key)
        join = "LEFT JOIN" if is_data else "JOIN"
        return (
            f"SELECT {int(base)} AS base, o.{column_name(key[0])} IS NOT NULL AS had, {is_data} AS has, {olds}, {news} "  # noqa: S608
            f"FROM ({own.sql}) n {join} ({committed.sql}) o ON {same}"
        )

    def _scan(self, prefix: str, table: Table, columns: Sequence[Column], parts: SnapshotParts) -> Scan:
        return plan_columns(table, table.primary, columns, parts, self._txn.parts.warehouse, prefix)

    # From version to version.

    def carry(self, at: Seq) -> None:
        for before, span in self._move.spans():
            self._convert(before, span)
            if span[-1].primary.id != before.primary.id:
                self._find_again(at)
        for has_values, lacking in self._move.filled():
            self._fill(lacking, at, has_values)

    def _convert(self, before: Table, span: Sequence[Table]) -> None:
        """The columns of the last version: computed ones by its expressions and those in between."""
        now = span[-1]
        tables = (before, *span)
        came = {
            c.id for table in span for c in table.columns if c.origin is not None and c.id not in before.column_by_id
        }
        computed = came | {c.id for table in tables for c in table.columns if c.conversion is not None}
        wanted = [column for column in now.columns if column.id in computed]
        if wanted and not self._convert_in_duckdb(before, span, wanted):
            self._convert_in_python(before, span, wanted)
        self._select(now, {c.id for c in wanted}, {c.id: c for c in before.columns})

    def _convert_in_duckdb(self, before: Table, span: Sequence[Table], wanted: Sequence[Column]) -> bool:
        """Whether all rows have values. Generated columns are left to Python, which follows them through the
        versions."""
        if any(table.has_generated for table in (before, *span)):
            return False
        for side in (OLD, NEW):
            names = ", ".join(f"{side.name(c.id)} AS {column_name(c.id)}" for c in before.columns)
            rows = f"SELECT place, {names} FROM {self.name} WHERE {side.exists}"  # noqa: S608 - named by id
            rows = _converted(before, rows)
            for old, new in pairwise((before, *span)):
                rows = _converted(new, _projected(old, new, rows))
            values = ", ".join(f"{column_name(c.id)} AS {side.name(c.id)}" for c in wanted)
            if not self._sorter.keep_if_possible(_computed(side), f"SELECT place, {values} FROM ({rows})"):  # noqa: S608
                if side is NEW:
                    self._sorter.drop(_computed(OLD))
                return False
        # A value that is missing, where there has to be one, is an error that names the column.
        missing = " OR ".join(f"{NEW.name(c.id)} IS NULL" for c in wanted)
        if self._sorter.ask(f"SELECT 1 FROM {_computed(NEW)} WHERE {missing} LIMIT 1"):  # noqa: S608 - named by id
            for side in (OLD, NEW):
                self._sorter.drop(_computed(side))
            return False
        return True

    def _convert_in_python(self, before: Table, span: Sequence[Table], wanted: Sequence[Column]) -> None:
        tables, failed = (before, *span), Failures()
        expressions = [e for t in tables for c in t.columns for e in (c.conversion, c.origin, c.generated) if e]
        inputs = {c for expression in expressions for c in expression.columns} | {c.id for c in wanted}
        read = [c for c in before.columns if c.id in inputs]
        places = [span[-1].columns.index(column) for column in wanted]

        def convert(side: Side, rows: list[Row]) -> list[Row]:
            found, problems = carry(self._txn, _widen(rows, read, before.columns), before, span)
            if side is NEW:
                failed.update(problems)
            return [tuple([row[place] for place in places]) for row in found]

        self._compute(read, wanted, convert)
        check_converted(self._txn, self._move.now, failed)
        known = self._move.now.column_by_id
        self.failed |= {c: problem for c, problem in failed.items() if c in known and known[c].conversion is not None}

    def _select(self, now: Table, computed: Iterable[ColumnId], known: dict[ColumnId, Column]) -> None:
        """The pairs in the columns of a version, with values that `_compute` has left."""
        taken, values = set(computed), []
        for side in (OLD, NEW):
            for column in now.columns:
                name = side.name(column.id)
                if column.id in taken:
                    value = f"{_computed(side)}.{name}"
                elif column.id in known:
                    is_same = known[column.id].type.duckdb == column.type.duckdb
                    value = f"p.{name}" if is_same else f"CAST(p.{name} AS {column.type.duckdb})"
                else:
                    value = literal(column.type, parse_canonical(column.type, column.frozen))
                values.append(f"{value} AS {name}")
        joins = "".join(f" LEFT JOIN {_computed(side)} USING (place)" for side in (OLD, NEW)) if taken else ""
        self._keep(f"SELECT {_FIXED}, {', '.join(values)} FROM {self.name} p{joins}")  # noqa: S608 - named by id
        self.table = now
        if taken:
            for side in (OLD, NEW):
                self._sorter.drop(_computed(side))

    def _compute(
        self, read: Sequence[Column], wanted: Sequence[Column], compute: Callable[[Side, list[Row]], list[Row]]
    ) -> None:
        """Leaves the values of columns, by place, in a table for each side."""
        for side in (OLD, NEW):
            schema = pa.schema([("place", pa.int64()), *((side.name(c.id), arrow_type(c.type)) for c in wanted)])
            self._sorter.append(_computed(side), schema.empty_table())
            for places, rows in self._batches(side, read):
                found = compute(side, rows)
                columns = list(zip(*found, strict=True)) if found else [()] * len(wanted)
                arrays = [pa.array(values, field.type) for values, field in zip(columns, list(schema)[1:], strict=True)]
                self._sorter.append(_computed(side), pa.Table.from_arrays([places, *arrays], schema=schema))

    def _batches(self, side: Side, read: Sequence[Column]) -> Iterator[tuple[pa.Array, list[Row]]]:
        """The rows of one side, with these columns as Python values."""
        schema = pa.schema([(column_name(c.id), arrow_type(c.type)) for c in read])
        inner = ", ".join(["place", *(f"{side.name(c.id)} AS {column_name(c.id)}" for c in read)])
        outer = ", ".join(["place", *(stored_output((c.id, c.type)) for c in read)])
        for first in self._txn.client.interrupts.each(range(0, self._most + 1, _BATCH_ROWS)):
            where = f"{side.exists} AND place BETWEEN {first} AND {first + _BATCH_ROWS - 1}"
            found = self._sorter.arrow(f"SELECT {outer} FROM (SELECT {inner} FROM {self.name} WHERE {where})")  # noqa: S608
            batch = found.combine_chunks()
            if not batch.num_rows:
                continue
            places = batch.column("place").combine_chunks()
            values = [as_stored(each, schema) for each in batch.drop_columns(["place"]).to_batches()] if read else []
            columns = pa.Table.from_batches(values, schema) if read else None
            rows = (
                list(zip(*(column.to_pylist() for column in columns.columns), strict=True))
                if columns is not None
                else [()] * batch.num_rows
            )
            yield places, rows

    # Values that are in no row of the transaction.

    def _committed(self, columns: Sequence[Column], at: Seq) -> tuple[Scan, str]:
        """What is committed of the rows in the primary index of now, and the condition by which they are found."""
        table, key = self._move.as_read(self.table), self.table.primary.key
        keys = [table.column_by_id[c] for c in key]
        wanted = [*keys, *(c for c in columns if c.id not in key)]
        scan = self._scan("now", table, wanted, self._txn.epoch.image(table, table.primary, at).parts(at))
        same = " AND ".join(f"p.{old_name(c)} = s.{column_name(c)}" for c in key)
        return scan, f"p.had AND {same}"

    def _find_again(self, at: Seq) -> None:
        """As `rebase_rows` does it for single rows."""
        if self.table.primary.key != self._move.old.primary.key:
            known = " AND ".join(f"{old_name(c)} IS NOT NULL" for c in self.table.primary.key)
            self._keep(f"SELECT * REPLACE (had AND {known} AS had) FROM {self.name} WHERE has OR {known}")  # noqa: S608
        drawn = list(self._move.drawn_places(self.table).values())
        scan, same = self._committed(drawn, at)
        sql = f"SELECT 1 FROM {self.name} p ANTI JOIN ({scan.sql}) s ON {same} WHERE p.had LIMIT 1"  # noqa: S608
        if self._sorter.ask(sql, scan):
            raise refused(self.table.name, ROW_GONE)
        if drawn:
            is_found = f"s.{column_name(self.table.primary.key[0])} IS NOT NULL"
            values = {
                side.name(c.id): f"CASE WHEN {is_found} THEN s.{column_name(c.id)} ELSE p.{side.name(c.id)} END"
                for c in drawn
                for side in (OLD, NEW)
            }
            self._set(values, f"LEFT JOIN ({scan.sql}) s ON {same}", scan)

    def _set(self, values: dict[str, str], joins: str, *scans: Scan) -> None:
        names = [side.name(c.id) for side in (OLD, NEW) for c in self.table.columns]
        shown = ", ".join(f"{values.get(name, f'p.{name}')} AS {name}" for name in names)
        fixed = ", ".join(f"p.{name}" for name in _FIXED.split(", "))
        self._keep(f"SELECT {fixed}, {shown} FROM {self.name} p {joins}", *scans)  # noqa: S608 - named by id

    def _fill(self, lacking: Sequence[Column], at: Seq, is_seen: bool) -> None:
        """Columns that have come: as committed, for a row that is there, if `is_seen`, else a default."""
        scan, same = self._committed(lacking, at) if is_seen else (Scan("", {}, {}), "")
        known = f"s.{column_name(self.table.primary.key[0])} IS NOT NULL" if is_seen else "false"
        seen = f" LEFT JOIN ({scan.sql}) s ON {same}" if is_seen else ""
        drawn = [column for column in lacking if is_drawn(column) or column.is_row_id]
        if drawn:
            unknown = f"SELECT p.place FROM {self.name} p{seen} WHERE NOT ({known}) ORDER BY 1"  # noqa: S608 - named by id
            self._draw(drawn, unknown, scan, at)
        values: dict[str, str] = {}
        for column in lacking:
            default = f"d.{column_name(column.id)}"
            if column not in drawn:
                default = literal(column.type, constant_value(column.type, column.default))
            value = f"CASE WHEN {known} THEN s.{column_name(column.id)} ELSE {default} END" if is_seen else default
            values |= {side.name(column.id): value for side in (OLD, NEW)}
        joins = seen + (" LEFT JOIN drawn d ON d.place = p.place" if drawn else "")
        self._set(values, joins, *([scan] if is_seen else []))
        if drawn:
            self._sorter.drop("drawn")

    def _draw(self, columns: Sequence[Column], unknown: str, scan: Scan, at: Seq) -> None:
        schema = pa.schema([("place", pa.int64()), *((column_name(c.id), arrow_type(c.type)) for c in columns)])
        self._sorter.append("drawn", schema.empty_table())
        places = self._sorter.arrow(unknown, scan).column("place").combine_chunks()
        # A sequence may be as new as its column.
        with self._txn.snapshot.reading_at(at):
            for first in self._txn.client.interrupts.each(range(0, len(places), _BATCH_ROWS)):
                part = places.slice(first, _BATCH_ROWS)
                values = [self._txn.sequences.defaults(column, len(part)) for column in columns]
                arrays = [pa.array(v, field.type) for v, field in zip(values, list(schema)[1:], strict=True)]
                self._sorter.append("drawn", pa.Table.from_arrays([part, *arrays], schema=schema))

    def derive(self, record: Callable[[Failures], None]) -> None:
        """Stored columns of the new version that are computed from others."""
        table, plan = self.table, self._txn.parts.write_plan(self.table)
        derivation = plan.derivation
        wanted = [c for c in table.columns if c.generated is not None and not c.virtual and c.conversion is None]
        if derivation is None or not wanted:
            return
        inputs = {c for w in wanted if w.generated is not None for c in w.generated.columns}
        stored = replace(derivation, items=tuple(i for i in derivation.items if i.position < len(table.columns)))
        computed = [c for c in table.columns if c.conversion is not None]
        inputs |= {i for c in computed if c.conversion is not None for i in c.conversion.columns}
        read = [c for c in table.columns if c.id in inputs]

        def generate(side: Side, rows: list[Row]) -> list[Row]:
            failed = Failures()
            found = stored.derive(_widen(rows, read, table.columns), self._txn.parts.duck, failed)
            if side is NEW:
                record(failed)
            places = [table.columns.index(column) for column in wanted]
            return [tuple([row[place] for place in places]) for row in found]

        self._compute(read, wanted, generate)
        self._select(table, {c.id for c in wanted}, table.column_by_id)

    # Entries.

    def groups(self) -> list[tuple[Seq, bool]]:
        """The snapshots at which rows were written, each with whether some of them replace or delete others."""
        found = self._sorter.ask(f"SELECT base, bool_or(had) FROM {self.name} GROUP BY base ORDER BY base")  # noqa: S608
        return [(Seq(base), had) for base, had in found]

    def entries(
        self, plan: EntryPlan, side: Side, base: Seq | None = None, whole: bool = True, changed: bool = False
    ) -> str:
        """A query for the entries, or their keys, that the rows of one side have in an index. `changed`: not those that
        both rows of a pair have."""
        table = self.table
        wanted = [table.column_by_id[c] for c, _ in (plan.columns if whole else plan.columns[: plan.key_width])]
        used = columns_read(table, plan.index, wanted, filled=True) or [
            table.column_by_id[c] for c in table.primary.key
        ]
        rows = ", ".join(f"{side.name(c.id)} AS {column_name(c.id)}" for c in used)
        where = side.exists if base is None else f"{side.exists} AND base = {int(base)}"
        if changed:
            inputs = columns_read(table, plan.index, [table.column_by_id[c] for c, _ in plan.columns], filled=True)
            same = " AND ".join(f"{old_name(c.id)} IS NOT DISTINCT FROM {new_name(c.id)}" for c in inputs)
            where += f" AND NOT (had AND has AND {same})"
        return select_entries(table, plan.index, f"(SELECT {rows} FROM {self.name} WHERE {where})", wanted, filled=True)  # noqa: S608

    def values(self, column: Column) -> list[Any]:
        """The distinct values of a column in the rows as the transaction leaves them."""
        name = new_name(column.id)
        return [value for (value,) in self._sorter.fetch(f"SELECT DISTINCT {name} FROM {self.name} WHERE has")]  # noqa: S608

    def keys(self, columns: Sequence[Column], side: Side = NEW, without: Side | None = None) -> pa.Table:
        """The distinct values of these columns in the rows of one side, named by id, except for those of the other."""

        def select(which: Side) -> str:
            names = ", ".join(f"{which.name(c.id)} AS {column_name(c.id)}" for c in columns)
            return f"SELECT DISTINCT {names} FROM {self.name} WHERE {which.exists}"  # noqa: S608 - named by id

        rows = select(side) if without is None else f"{select(side)} EXCEPT {select(without)}"
        outputs = ", ".join(stored_output((c.id, c.type)) for c in columns)
        schema = pa.schema([(column_name(c.id), arrow_type(c.type)) for c in columns])
        found = self._sorter.arrow(f"SELECT {outputs} FROM ({rows})")  # noqa: S608 - named by id
        return pa.Table.from_batches([as_stored(batch, schema) for batch in found.to_batches()], schema)

    def has_null(self, column: Column) -> bool:
        return bool(self._sorter.ask(f"SELECT 1 FROM {self.name} WHERE has AND {new_name(column.id)} IS NULL LIMIT 1"))  # noqa: S608

    def new_rows(self) -> str:
        """A query for the rows as the transaction leaves them, columns by id."""
        names = ", ".join(f"{new_name(c.id)} AS {column_name(c.id)}" for c in self.table.columns)
        return f"SELECT {names} FROM {self.name} WHERE has"  # noqa: S608 - named by id


def _computed(side: Side) -> str:
    return f"computed_{side.exists}"


def _projected(old: Table, new: Table, rows: str) -> str:
    """Rows of one version in the columns of the next, which may have taken the place of others."""
    values = []
    for column in new.columns:
        name, before = column_name(column.id), old.column_by_id.get(column.id)
        if before is not None:
            is_same = before.type.duckdb == column.type.duckdb
            value = name if is_same else f"CAST({name} AS {column.type.duckdb})"
        elif column.origin is not None:
            value = as_assigned(column.origin, column.type)
        else:
            value = literal(column.type, parse_canonical(column.type, column.frozen))
        values.append(f"{value} AS {name}")
    return f"SELECT place, {', '.join(values)} FROM ({rows})"  # noqa: S608 - named by id


def _converted(table: Table, rows: str) -> str:
    values = [
        f"{as_assigned(column.conversion, column.type)} AS {column_name(column.id)}"
        for column in table.columns
        if column.conversion is not None
    ]
    return f"SELECT * REPLACE ({', '.join(values)}) FROM ({rows})" if values else rows  # noqa: S608 - named by id


def _null(column: Column) -> str:
    return f"CAST(NULL AS {column.type.duckdb})"


def _widen(rows: Sequence[Row], given: Sequence[Column], columns: Sequence[Column]) -> list[Row]:
    """Rows of all columns, NULL where they are not given."""
    places = {column.id: place for place, column in enumerate(given)}
    order = [places.get(column.id) for column in columns]
    return [tuple([None if place is None else row[place] for place in order]) for row in rows]
