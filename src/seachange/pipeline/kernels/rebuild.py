"""Values that are computed when rows are rewritten: conversions, generated columns, defaults.

**Invariant:** conversions and generated columns are computed from the old rows, whatever was stored before. A default
is drawn once for each row that has no value yet, and the values that a finished unit has drawn are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import duckdb

from seachange import errors
from seachange.model.ids import ColumnId
from seachange.model.scan import Scan
from seachange.model.schema.defaults import is_constant
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.expression import Expression
from seachange.model.states import State
from seachange.pipeline.kernels.row_names import name_row
from seachange.pipeline.kernels.source import IndexSource
from seachange.storage.arrow import column_name
from seachange.storage.entries import as_assigned
from seachange.storage.sorter import Sorter
from seachange.storage.warehouse import Warehouse

Translate = Callable[[Exception], errors.Error]
# Returns the default of a column as DuckDB text without time functions or sequences, for a number of rows; the text may
# refer to row numbers as `rowid`.
ResolveDefault = Callable[[Column, int], str]


def keep_default(column: Column, rows: int) -> str:
    del rows
    return column.default or ""


def draw_nothing(column: Column, rows: int) -> str:
    """For rows of which only the other values are of interest."""
    del column, rows
    return "NULL"


@dataclass(frozen=True, slots=True)
class Computed:
    """A column with the DuckDB text of its value; `inputs` are the columns that the text refers to."""

    column: Column
    text: str
    inputs: tuple[ColumnId, ...]

    @property
    def is_drawn(self) -> bool:
        """Whether it is a default, for rows that have no value yet."""
        return self.column.id in self.inputs


def computed_columns(table: Table) -> tuple[tuple[Computed, ...], tuple[Computed, ...]]:
    """The columns that are computed from stored values, and the generated ones, which may depend on the former."""
    first, generated = [], []
    for column in table.columns:
        if column.virtual or column.state is State.PUBLIC:
            continue
        if column.conversion is not None:
            first.append(converted(column))
        elif column.generated is not None:
            generated.append(_computed(column, column.generated))
        elif column.identity is not None or column.default_sequences:
            raise errors.Bug(detail=f"nothing was drawn for column {column.name} of {table.name}")
        elif column.default is not None and draws_values(column):
            value = as_assigned(Expression(column.default, ()), column.type)
            first.append(Computed(column, f"COALESCE({column_name(column.id)}, {value})", (column.id,)))
    return tuple(first), tuple(generated)


def resolve_defaults(table: Table, rows: int, resolve_default: ResolveDefault) -> Table:
    """The table with resolved defaults, since kernels have no access to the clock or to sequences."""
    columns = tuple(
        _resolved(column, rows, resolve_default) if draws_values(column) else column for column in table.columns
    )
    return table if columns == table.columns else replace(table, columns=columns)


def _resolved(column: Column, rows: int, resolve_default: ResolveDefault) -> Column:
    return replace(column, default=resolve_default(column, rows), identity=None, default_sequences=())


def draws_values(column: Column) -> bool:
    """Whether existing rows get values of their own from the default of a new column."""
    if column.state is State.PUBLIC or column.conversion is not None or column.virtual or column.frozen is not None:
        return False
    is_own = column.identity is not None or column.is_row_id
    return is_own or (column.default is not None and not is_constant(column.default))


def converted(column: Column) -> Computed:
    assert column.conversion is not None
    return _computed(column, column.conversion)


def _computed(column: Column, expression: Expression) -> Computed:
    return Computed(column, as_assigned(expression, column.type), expression.columns)


def select_computed(source: str, columns: Sequence[Column], computed: Sequence[Computed], lenient: bool = False) -> str:
    """All columns of a relation, some of them replaced by computed values; `lenient`: NULL where there is none."""
    by_id = {c.column.id: f"TRY({c.text})" if lenient and not c.is_drawn else c.text for c in computed}
    names = ", ".join(f"{by_id.get(c.id, column_name(c.id))} AS {column_name(c.id)}" for c in columns)
    return f"SELECT {names} FROM {source}"  # noqa: S608 - columns are named by id


def scan_computed(source: IndexSource, columns: Sequence[Column], warehouse: Warehouse, prefix: str) -> Scan:
    """Some columns of rows that lie in an older primary index, with the values that are computed for a new one; NULL
    where there is none, or where it is drawn."""
    first, generated = computed_columns(resolve_defaults(source.table, source.rows, draw_nothing))
    inputs = (source.table.column_by_id[c] for item in (*first, *generated) for c in item.inputs)
    read = list(dict.fromkeys([*columns, *inputs]))
    scan = source.scan(read, source.parts, warehouse, prefix)
    sql = scan.sql
    for step in (first, generated):
        sql = select_computed(f"({sql})", read, step, lenient=True)
    names = ", ".join(column_name(c.id) for c in columns)
    return replace(scan, sql=f"SELECT {names} FROM ({sql})")  # noqa: S608 - columns are named by id


def locate(
    sorter: Sorter, source: str, table: Table, computed: Sequence[Computed], problem: duckdb.Error, translate: Translate
) -> errors.Error:
    """The error with the row that caused it, found by bisecting the rows of the relation."""
    for item in computed:
        position = first_failing(sorter, source, item)
        if position is not None:
            place = name_row(sorter, f"(SELECT * FROM {source} WHERE rowid = {position})", table)  # noqa: S608 - a number
            return translate(problem).located(f'column "{item.column.name}" of the row with {place}')
    return translate(problem)


def first_failing(sorter: Sorter, source: str, item: Computed) -> int | None:
    ((count,),) = sorter.ask(f"SELECT count(*) FROM {source}")  # noqa: S608 - the relation is ours
    low, high = 0, int(count)
    if not _fails(sorter, source, item, low, high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if _fails(sorter, source, item, low, middle):
            high = middle
        else:
            low = middle
    return low


def _fails(sorter: Sorter, source: str, item: Computed, low: int, high: int) -> bool:
    sql = f"SELECT sum(hash({item.text})) FROM {source} WHERE rowid >= {low} AND rowid < {high}"  # noqa: S608 - numbers
    try:
        sorter.ask(sql)
    except duckdb.Error:
        return True
    return False
