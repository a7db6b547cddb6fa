"""Whether all rows, as of one sequence, meet a constraint: how many do not, and some of them by their keys.

**Invariant:** an expression passes unless it is false; a row with a NULL among the columns of a foreign key refers to
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow.parquet as pq

from seachange import errors
from seachange.model import elements
from seachange.model.descriptor import Column, Index, Table
from seachange.model.ids import ColumnId, ConstraintId, IndexId, TableId
from seachange.model.ops import Validate
from seachange.model.scan import Scan
from seachange.model.states import State
from seachange.model.work import Violation
from seachange.pipeline.duplicates import find_duplicates
from seachange.pipeline.naming import SHOWN_MAX, naming_columns, show_key, show_keys
from seachange.pipeline.source import Source, Sources, seen_through
from seachange.pipeline.workshop import Workshop
from seachange.storage.arrow import column_name
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.keys import Key
from seachange.storage.segment_footer import segment_name
from seachange.storage.segment_reader import reading
from seachange.storage.warehouse import Warehouse

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Broken:
    """How many rows do not meet a constraint, and the first keys of them."""

    rows: int
    keys: tuple[Key, ...]


def validate(op: Validate, sources: Sources, workshop: Workshop, report: Progress) -> Violation | None:
    validation = _Validation(sources, sources.tables(), workshop, report)
    match op.element:
        case elements.CheckConstraint() as check:
            return validation.check(check)
        case elements.ColumnNotNull() as not_null:
            return validation.not_null(not_null)
        case elements.UniqueIndex() as unique:
            return validation.unique(unique)
        case elements.ForeignKey() as key:
            return validation.foreign_key(key)
        case other:
            raise errors.Bug(detail=f"there is nothing to validate in {other}")


@dataclass(frozen=True, slots=True)
class _Validation:
    sources: Sources
    tables: dict[int, Table]
    workshop: Workshop
    report: Progress

    def check(self, element: elements.CheckConstraint) -> Violation | None:
        source = self._rows(element.table_id, element.column_ids)
        condition = f"({element.expression}) IS FALSE"
        broken = broken_rows(source, element.column_ids, condition, self.workshop, self.report)
        if broken is None:
            return None
        name = _constraint_name(source.table, element.constraint_id)
        message = f'check constraint "{name}" of relation "{source.table.name}" is violated by some row'
        return _violation("23514", message, source, broken)

    def not_null(self, element: elements.ColumnNotNull) -> Violation | None:
        source = self._rows(element.table_id, (element.column_id,))
        column = source.table.column_by_id[element.column_id]
        condition = f"{column_name(column.id)} IS NULL"
        skipped = files_without_nulls(source, column, self.workshop.warehouse)
        self.report(sum(f.segment.rows - len(f.superseded) for f in skipped))
        rest = tuple(f for f in source.parts.files if f not in skipped)
        left = Source(source.table, source.index, source.generation_id, SnapshotParts(rest, source.parts.inline))
        broken = broken_rows(left, (column.id,), condition, self.workshop, self.report)
        if broken is None:
            return None
        message = f'column "{column.name}" of relation "{source.table.name}" contains null values'
        return _violation("23502", message, source, broken)

    def unique(self, element: elements.UniqueIndex) -> Violation | None:
        table = seen_through(self._table(element.table_id), element.source_id)
        index = table.index_by_id[element.index_id]
        source = self.sources.load(table, index)
        found = find_duplicates(source, self.workshop)
        self.report(source.rows)
        if found is None:
            return None
        rows, key = found
        columns = [table.column_by_id[c] for c in index.key]
        message = f'could not create unique index "{index.name}"'
        return Violation("23505", message, f"Key {show_key(columns, key)} is duplicated.", rows)

    def foreign_key(self, element: elements.ForeignKey) -> Violation | None:
        source = self._rows(element.table_id, element.column_ids)
        parent = self._parent(element.parent_id, element.parent_index_id)
        columns = [source.table.column_by_id[c] for c in element.column_ids]
        broken = missing_parents(source, columns, parent, self.workshop)
        self.report(source.rows)
        if broken is None:
            return None
        name = _constraint_name(source.table, element.constraint_id)
        message = f'insert or update on table "{source.table.name}" violates foreign key constraint "{name}"'
        detail = f'Key {show_key(columns, broken.keys[0])} is not present in table "{parent.table.name}".'
        return Violation("23503", message, detail, broken.rows)

    def _table(self, table_id: TableId) -> Table:
        table = self.tables.get(table_id)
        if table is None:
            raise errors.Bug(detail=f"table {table_id} is validated, and is not there at {self.sources.at}")
        return table

    def _rows(self, table_id: TableId, columns: Sequence[ColumnId]) -> Source:
        """Values that come into being with a new primary index are complete only there."""
        table = self._table(table_id)
        coming = table.next_primary
        if coming is not None and any(table.column_by_id[c].state is not State.PUBLIC for c in columns):
            table = seen_through(table, coming.id)
        return self.sources.load(table, table.primary)

    def _parent(self, table_id: TableId, index_id: IndexId) -> Source:
        table = self._table(table_id)
        coming = table.next_primary
        index = next((i for i in _all_indexes(table) if i.id == index_id), None)
        if index is None:
            raise errors.Bug(detail=f"index {index_id} of {table.name}, which a foreign key refers to, is not there")
        # What is being built beside a new primary index is made of it.
        if coming is not None and index.state is not State.PUBLIC:
            table = seen_through(table, coming.id)
        return self.sources.load(table, index)


def _all_indexes(table: Table) -> tuple[Index, ...]:
    return (*table.indexes, table.next_primary) if table.next_primary is not None else table.indexes


def _constraint_name(table: Table, constraint_id: ConstraintId) -> str:
    names = {check.id: check.name for check in table.checks} | {key.id: key.name for key in table.foreign_keys}
    return names[constraint_id]


def _violation(sqlstate: str, message: str, source: Source, broken: Broken) -> Violation:
    rows = "1 row" if broken.rows == 1 else f"{broken.rows} rows"
    shown = show_keys(naming_columns(source.table), broken.keys, broken.rows)
    return Violation(sqlstate, message, f"{rows}: {shown}.", broken.rows)


def broken_rows(
    source: Source, columns: Sequence[ColumnId], condition: str, workshop: Workshop, report: Progress
) -> Broken | None:
    """Rows that a condition holds for, unit by unit."""
    shown = naming_columns(source.table)
    read = list(dict.fromkeys([*(source.table.column_by_id[c] for c in columns), *shown]))
    names = ", ".join(column_name(c.id) for c in shown)
    rows = 0
    keys: list[Key] = []
    for unit in source.units():
        workshop.interrupts.check()
        scan = source.scan(read, unit.parts, workshop.warehouse, "rows")
        found = f"SELECT {names} FROM ({scan.sql}) WHERE {condition}"  # noqa: S608 - named by id
        with workshop.sorter() as sorter:
            ((count,),) = sorter.ask(f"SELECT count(*) FROM ({found})", scan)  # noqa: S608 - as above
            if count and len(keys) < SHOWN_MAX:
                keys += sorter.fetch(f"{found} ORDER BY ALL LIMIT {SHOWN_MAX}", scan)
        rows += count
        report(unit.rows)
    return Broken(rows, tuple(keys[:SHOWN_MAX])) if rows else None


def files_without_nulls(source: Source, column: Column, warehouse: Warehouse) -> list[FileSlice]:
    """Files whose own statistics say so; of a layout without the column, what all of its rows read."""
    return [file for file in source.parts.files if _has_no_nulls(source, file, column, warehouse)]


def _has_no_nulls(source: Source, file: FileSlice, column: Column, warehouse: Warehouse) -> bool:
    layout = source.table.layout_by_id[file.segment.layout_id]
    if column.id not in dict(source.table.stored_columns(source.index, layout)):
        return column.frozen is not None
    # Statistics are believed only of a file that is whole.
    warehouse.path(file.segment)
    name = segment_name(file.segment.id)
    with reading(name), warehouse.files.open_input(name) as opened:
        metadata = pq.read_metadata(opened)
    place = metadata.schema.names.index(column_name(column.id))
    groups = [metadata.row_group(g).column(place).statistics for g in range(metadata.num_row_groups)]
    return all(g is not None and g.has_null_count and g.null_count == 0 for g in groups)


def missing_parents(source: Source, columns: Sequence[Column], parent: Source, workshop: Workshop) -> Broken | None:
    """Rows that refer to a key which the parent's index does not have."""
    others = [parent.table.column_by_id[c] for c in parent.index.key]
    child = source.scan(list(dict.fromkeys(columns)), source.parts, workshop.warehouse, "child")
    keys = parent.scan(others, parent.parts, workshop.warehouse, "parent")
    scan = Scan("", {**child.parameters, **keys.parameters}, {**child.relations, **keys.relations})
    names = ", ".join(f"s.{column_name(c.id)}" for c in columns)
    present = " AND ".join(f"s.{column_name(c.id)} IS NOT NULL" for c in columns)
    pairs = zip(columns, others, strict=True)
    same = " AND ".join(f"s.{column_name(c.id)} = p.{column_name(o.id)}" for c, o in pairs)
    missing = (
        f"SELECT {names} FROM (SELECT * FROM ({child.sql}) s WHERE {present}) s "  # noqa: S608 - named by id
        f"ANTI JOIN ({keys.sql}) p ON {same}"
    )
    with workshop.sorter() as sorter:
        ((count,),) = sorter.ask(f"SELECT count(*) FROM ({missing})", scan)  # noqa: S608 - as above
        if not count:
            return None
        return Broken(count, tuple(sorter.fetch(f"{missing} ORDER BY ALL LIMIT {SHOWN_MAX}", scan)))
