"""Validation of a constraint over all rows as of one sequence: the number of violations, and some of their keys.

**Invariant:** an expression passes unless it is false; a row with a NULL among the columns of a foreign key refers to
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow.parquet as pq

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.ops import Validate
from seachange.model.change.work import Violation
from seachange.model.ids import ColumnId, ConstraintId, IndexId, TableId
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.states import State
from seachange.pipeline.kernels.duplicates import find_duplicates
from seachange.pipeline.kernels.executor import Executor
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.reading import ReadsSource
from seachange.pipeline.kernels.rebuild import scan_computed
from seachange.pipeline.kernels.row_names import SHOWN_MAX, naming_columns, show_key, show_keys
from seachange.pipeline.kernels.source import UNIT_BYTES_MAX, IndexSource, RowSources, Unit, seen_through
from seachange.storage.arrow import column_name
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.keys import Key
from seachange.storage.segment_footer import segment_name
from seachange.storage.segment_reader import reading
from seachange.storage.warehouse import Warehouse

Progress = Callable[[int], None]
_UNITS_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Broken:
    """The number of rows that violate a constraint, and the first keys of them."""

    rows: int
    keys: tuple[Key, ...]


def validate(
    op: Validate, sources: RowSources, executor: Executor, warehouse: Warehouse, report: Progress
) -> Violation | None:
    validation = _Validation(sources, sources.tables(), executor, warehouse, report)
    match op.element:
        case elements.CheckConstraint() as check:
            return validation.check(check)
        case elements.ColumnNotNull() as not_null:
            return validation.not_null(not_null)
        case elements.UniqueIndex() as unique:
            return validation.unique(unique)
        case elements.ForeignKeyElement() as key:
            return validation.foreign_key(key)
        case other:
            raise errors.Bug(detail=f"there is nothing to validate in {other}")


@dataclass(frozen=True, slots=True)
class _Validation:
    sources: RowSources
    tables: dict[int, Table]
    executor: Executor
    warehouse: Warehouse
    report: Progress

    def check(self, element: elements.CheckConstraint) -> Violation | None:
        source = self._rows(element.table_id, element.column_ids)
        condition = f"({element.expression}) IS FALSE"
        broken = broken_rows(source, element.column_ids, condition, self.executor, self.report)
        if broken is None:
            return None
        name = _constraint_name(source.table, element.constraint_id)
        message = f'check constraint "{name}" of relation "{source.table.name}" is violated by some row'
        return _violation("23514", message, source, broken)

    def not_null(self, element: elements.ColumnNotNull) -> Violation | None:
        source = self._rows(element.table_id, (element.column_id,))
        column = source.table.column_by_id[element.column_id]
        condition = f"{column_name(column.id)} IS NULL"
        skipped = files_without_nulls(source, column, self.warehouse)
        self.report(sum(f.segment.rows - len(f.superseded) for f in skipped))
        rest = tuple(f for f in source.parts.files if f not in skipped)
        left = replace(source, parts=SnapshotParts(rest, source.parts.inline))
        broken = broken_rows(left, (column.id,), condition, self.executor, self.report)
        if broken is None:
            return None
        message = f'column "{column.name}" of relation "{source.table.name}" contains null values'
        return _violation("23502", message, source, broken)

    def unique(self, element: elements.UniqueIndex) -> Violation | None:
        table = seen_through(self._table(element.table_id), element.source_id)
        index = table.index_by_id[element.index_id]
        source = replace(self.sources.load(table, index), hidden=self.sources.hidden(table, index))
        found = find_duplicates(source, self.executor, self.report)
        if found is None:
            return None
        rows, key = found
        columns = [table.column_by_id[c] for c in index.key]
        message = f'could not create unique index "{index.name}"'
        return Violation("23505", message, f"Key {show_key(columns, key)} is duplicated.", rows)

    def foreign_key(self, element: elements.ForeignKeyElement) -> Violation | None:
        source = self._rows(element.table_id, element.column_ids)
        parent, key = self._parent(element.parent_id, element.parent_index_id)
        own = self.sources.replaced(parent.table)
        columns = [source.table.column_by_id[c] for c in element.column_ids]
        others = [parent.table.column_by_id[c] for c in key]
        broken = missing_parents(source, columns, parent, others, self.executor, self.report, element.match_full, own)
        if broken is None:
            return None
        name = _constraint_name(source.table, element.constraint_id)
        message = f'insert or update on table "{source.table.name}" violates foreign key constraint "{name}"'
        shown = show_key(columns, broken.keys[0])
        detail = f'Key {shown} is not present in table "{parent.table.name}".'
        if None in broken.keys[0]:
            detail = f"Key {shown} mixes null and nonnull key values, which MATCH FULL does not allow."
        return Violation("23503", message, detail, broken.rows)

    def _table(self, table_id: TableId) -> Table:
        table = self.tables.get(table_id)
        if table is None:
            raise errors.Bug(detail=f"table {table_id} is to be validated, but does not exist")
        return table

    def _rows(self, table_id: TableId, columns: Sequence[ColumnId]) -> IndexSource:
        """Values that are computed for a new primary index are complete only there. It may not be complete yet, and is
        not needed if all columns read the same from every row."""
        table = self._table(table_id)
        if table.coming and any(_is_being_computed(table.column_by_id[c]) for c in columns):
            table = seen_through(table, table.coming[-1].id)
        return self.sources.load(table, table.primary)

    def _parent(self, table_id: TableId, index_id: IndexId) -> tuple[IndexSource, tuple[ColumnId, ...]]:
        """Where the keys that rows refer to are, and in which columns."""
        table = self._table(table_id)
        index = next((i for i in _all_indexes(table) if i.id == index_id), None)
        if index is None:
            raise errors.Bug(detail=f"index {index_id} of {table.name}, which a foreign key refers to, does not exist")
        is_new = index in table.secondary and index.source is None and index.state is not State.PUBLIC
        if is_new and self.sources.hidden(table, table.primary) is not None:
            # The index may not have entries of the rows that a transaction has written, which the rows are read with.
            return self.sources.load(table, table.primary), index.key
        # An index that is built together with a new primary index contains its key.
        if index.state is not State.PUBLIC:
            table = seen_through(table, index.source or index.id)
        source = self.sources.load(table, index)
        if self.sources.replaced(table) is not None:
            # A key that the transaction has taken from a row which others refer to is found when its rows are rebased.
            source = replace(source, hidden=None)
        return source, index.key


def _is_being_computed(column: Column) -> bool:
    """Whether each row gets a computed value for a column that is not public yet, rather than one frozen value for
    all."""
    drawn = column.default is not None and column.frozen is None
    computed = column.conversion is not None or column.generated is not None or column.identity is not None or drawn
    return column.state is not State.PUBLIC and computed


def _all_indexes(table: Table) -> tuple[Index, ...]:
    return (*table.indexes, *table.coming)


def _constraint_name(table: Table, constraint_id: ConstraintId) -> str:
    names = {check.id: check.name for check in table.checks} | {key.id: key.name for key in table.foreign_keys}
    return names[constraint_id]


def _violation(sqlstate: str, message: str, source: IndexSource, broken: Broken) -> Violation:
    rows = "1 row" if broken.rows == 1 else f"{broken.rows} rows"
    shown = show_keys(naming_columns(source.table), broken.keys, broken.rows)
    return Violation(sqlstate, message, f"{rows}: {shown}.", broken.rows)


@dataclass(frozen=True, slots=True)
class FindBroken(ReadsSource):
    """Rows for which a condition over some columns is true."""

    columns: tuple[ColumnId, ...]
    condition: str

    @property
    def title(self) -> str:
        return f"check {self.source.rows} rows of {self.source.table.name}"

    def run(self, kernel_context: KernelContext) -> Broken:
        table = self.source.table
        shown = naming_columns(table)
        read = list(dict.fromkeys([*(table.column_by_id[c] for c in self.columns), *shown]))
        names = ", ".join(column_name(c.id) for c in shown)
        scan = self.source.scan(read, self.source.parts, kernel_context.warehouse, "rows")
        found = f"SELECT {names} FROM ({scan.sql}) WHERE {self.condition}"  # noqa: S608 - named by id
        return _count_and_show(found, scan, kernel_context)


def broken_rows(
    source: IndexSource, columns: Sequence[ColumnId], condition: str, executor: Executor, report: Progress
) -> Broken | None:
    """One task per unit."""
    return _together(
        executor, [FindBroken(part, tuple(columns), condition) for part in _units(source, executor)], report
    )


def _units(source: IndexSource, executor: Executor) -> list[IndexSource]:
    """Results of a validation are not kept, and a task that has all cores is fast: where tasks run one after the other,
    fewer are cheaper."""
    times = _UNITS_AT_ONCE if executor.parallelism == 1 else 1
    units = source.units(executor.sizes(source.rows).unit_rows * times, UNIT_BYTES_MAX * times)
    return [replace(source, parts=unit.parts) for unit in units]


def _count_and_show(found: str, scan: Scan, kernel_context: KernelContext) -> Broken:
    with kernel_context.sorter() as sorter:
        ((count,),) = sorter.ask(f"SELECT count(*) FROM ({found})", scan)  # noqa: S608 - columns are named by id
        keys = sorter.fetch(f"{found} ORDER BY ALL LIMIT {SHOWN_MAX}", scan) if count else []
    return Broken(count, tuple(keys))


def _together(
    executor: Executor, tasks: Sequence[FindBroken] | Sequence[FindOrphans], report: Progress
) -> Broken | None:
    """The combined results of the tasks, in their order."""
    found: dict[int, Broken] = {}

    def finished(number: int, broken: Broken) -> None:
        found[number] = broken
        report(tasks[number].source.rows)

    executor.run(tasks, finished, [task.source.rows for task in tasks])
    rows = sum(broken.rows for broken in found.values())
    keys = [key for number in sorted(found) for key in found[number].keys]
    return Broken(rows, tuple(keys[:SHOWN_MAX])) if rows else None


def files_without_nulls(source: IndexSource, column: Column, warehouse: Warehouse) -> list[FileSlice]:
    """Files without NULLs by their own statistics; for a layout without the column, by its frozen value."""
    return [file for file in source.parts.files if _has_no_nulls(source, file, column, warehouse)]


def _has_no_nulls(source: IndexSource, file: FileSlice, column: Column, warehouse: Warehouse) -> bool:
    layout = source.table.layout_by_id[file.segment.layout_id]
    if column.id not in dict(source.table.stored_columns(source.index, layout)):
        return column.frozen is not None
    # Statistics are used only after the file has been verified.
    warehouse.path(file.segment)
    name = segment_name(file.segment.id)
    with reading(name), warehouse.files.open_input(name) as opened:
        metadata = pq.read_metadata(opened)
    stored = metadata.schema.names
    if column_name(column.id) not in stored:
        # An array is stored as its elements, whose statistics say nothing about the array.
        return False
    place = stored.index(column_name(column.id))
    groups = [metadata.row_group(g).column(place).statistics for g in range(metadata.num_row_groups)]
    return all(g is not None and g.has_null_count and g.null_count == 0 for g in groups)


@dataclass(frozen=True, slots=True)
class FindOrphans(ReadsSource):
    """Rows that refer to a key which the parent does not have, in `others`. `own` are more rows of the parent, of which
    the values of these columns are computed."""

    columns: tuple[Column, ...]
    parent: IndexSource
    others: tuple[Column, ...]
    match_full: bool
    own: IndexSource | None = None

    @property
    def title(self) -> str:
        return f"find the parents of {self.source.rows} rows of {self.source.table.name}"

    @property
    def read_bytes(self) -> int:
        return self.source.size_bytes + self.parent.size_bytes

    def run(self, kernel_context: KernelContext) -> Broken:
        others = self.others
        child = self.source.scan(
            list(dict.fromkeys(self.columns)), self.source.parts, kernel_context.warehouse, "child"
        )
        keys = self.parent.scan(others, self.parent.parts, kernel_context.warehouse, "parent")
        if self.own is not None:
            own = scan_computed(self.own, others, kernel_context.warehouse, "own")
            keys = Scan(
                f"{keys.sql} UNION ALL {own.sql}",
                {**keys.parameters, **own.parameters},
                {**keys.relations, **own.relations},
            )
        scan = Scan("", {**child.parameters, **keys.parameters}, {**child.relations, **keys.relations})
        names = ", ".join(f"s.{column_name(c.id)}" for c in self.columns)
        any_or_all = " OR " if self.match_full else " AND "
        present = any_or_all.join(f"s.{column_name(c.id)} IS NOT NULL" for c in self.columns)
        pairs = zip(self.columns, others, strict=True)
        same = " AND ".join(f"s.{column_name(c.id)} = p.{column_name(o.id)}" for c, o in pairs)
        missing = (
            f"SELECT {names} FROM (SELECT * FROM ({child.sql}) s WHERE {present}) s "  # noqa: S608 - named by id
            f"ANTI JOIN ({keys.sql}) p ON {same}"
        )
        return _count_and_show(missing, scan, kernel_context)


def missing_parents(
    source: IndexSource,
    columns: Sequence[Column],
    parent: IndexSource,
    others: Sequence[Column],
    executor: Executor,
    report: Progress,
    match_full: bool = False,
    own: IndexSource | None = None,
) -> Broken | None:
    """Each task reads all parents, so there are no more tasks than can run concurrently."""
    per_task = -(-source.rows // executor.parallelism) or 1
    units = source.units(per_task) if executor.parallelism > 1 else [Unit("", source.parts)]
    keys = tuple(columns), parent, tuple(others)
    tasks = [FindOrphans(replace(source, parts=unit.parts), *keys, match_full, own) for unit in units]
    return _together(executor, tasks, report)
