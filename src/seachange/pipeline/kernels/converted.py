"""Check that all rows of a new primary index, as of one sequence, have values for its computed columns.

Rows that existed when it was built were converted then, or the build has failed. A later write without a value has
stored NULL: so only rows with NULL are checked. A row without a value for its new key is not in the new index, and is
looked up in the old one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import duckdb

from seachange import errors
from seachange.model.schema.descriptor import Column, Table
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.rebuild import Computed, computed_columns, converted, locate
from seachange.pipeline.kernels.row_names import name_row, naming_columns
from seachange.pipeline.kernels.source import IndexSource, Unit
from seachange.storage.arrow import column_name
from seachange.storage.sorter import Sorter

_ROWS, _EMPTY = "rows", "rows_without"


def check_converted(source: IndexSource, kernel_context: KernelContext) -> None:
    """Raises the error of the first row without a value."""
    first, generated = computed_columns(source.table)
    for item in (computed for computed in (*first, *generated) if not computed.is_drawn):
        for unit in source.units():
            kernel_context.interrupts.check()
            _check_unit(source, unit, item, kernel_context)


def check_keys(
    source: IndexSource, made: IndexSource, columns: Sequence[Column], kernel_context: KernelContext
) -> None:
    """The same for columns of the new primary key, read from the current index. A row whose writer had no key for it is
    not in the new index, even if there is one now: so the row counts are compared."""
    table = source.table
    for item, unit in product(map(converted, columns), source.units()):
        kernel_context.interrupts.check()
        read = [*(table.column_by_id[c] for c in item.inputs), *naming_columns(table)]
        scan = source.scan(list(dict.fromkeys(read)), unit.parts, kernel_context.warehouse, "rows")
        with kernel_context.sorter() as sorter:
            sorter.keep(_ROWS, scan.sql, scan)
            empty = f"SELECT * FROM {_ROWS} WHERE ({item.text}) IS NULL LIMIT 1"  # noqa: S608 - named by id
            try:
                found = sorter.ask(empty)
            except duckdb.Error as problem:
                raise locate(sorter, _ROWS, table, [item], problem, kernel_context.translate) from problem
            if found:
                raise missing_key(sorter, empty, table, item.column)
    if source.rows != made.rows:
        raise _missing(source, columns[0])


def missing_key(sorter: Sorter, rows: str, table: Table, column: Column) -> errors.Error:
    """The error for the first of these rows, which have no value for a column of their key."""
    problem = errors.NotNullViolation(column=column.name, relation=table.name)
    return problem.located(f"the row with {name_row(sorter, f'({rows})', table)}")


def _check_unit(source: IndexSource, unit: Unit, item: Computed, kernel_context: KernelContext) -> None:
    table, column = source.table, item.column
    read = [column, *(table.column_by_id[c] for c in item.inputs), *naming_columns(table)]
    scan = source.scan(list(dict.fromkeys(read)), unit.parts, kernel_context.warehouse, "rows")
    empty = f"SELECT * FROM ({scan.sql}) WHERE {column_name(column.id)} IS NULL"  # noqa: S608 - named by id
    with kernel_context.sorter() as sorter:
        sorter.keep(_EMPTY, empty, scan)
        try:
            found = sorter.ask(f"SELECT rowid FROM {_EMPTY} WHERE ({item.text}) IS NOT NULL LIMIT 1")  # noqa: S608
        except duckdb.Error as problem:
            raise locate(sorter, _EMPTY, table, [item], problem, kernel_context.translate) from problem
        if not column.nullable:
            found = sorter.ask(f"SELECT rowid FROM {_EMPTY} LIMIT 1")  # noqa: S608 - the relation is ours
        if found:
            place = name_row(sorter, f"(SELECT * FROM {_EMPTY} WHERE rowid = {found[0][0]})", table)  # noqa: S608
            raise _missing(source, column).located(f"the row with {place}")


def _missing(source: IndexSource, column: Column) -> errors.Error:
    if not column.nullable:
        return errors.NotNullViolation(column=column.name, relation=source.table.name)
    return errors.DataError(
        detail=f'column "{column.name}" of relation "{source.table.name}" was given a value that has none of type '
        f"{column.type}"
    )
