"""Queries for the entries of an index: with computed values, without the rows that have no entry.

A column with a `conversion` is computed from its row, whatever is stored: most rows were written before it existed. So
is a generated column, and a key that is an expression, which may read converted ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.expression import Expression
from seachange.storage.arrow import column_name
from seachange.storage.duck_functions import PREFIX
from seachange.storage.duck_numerics import complaint
from seachange.values.types import MOMENTS, NAME_BYTES_MAX, Kind, SqlType


def select_entries(
    table: Table,
    index: Index,
    source: str,
    columns: Sequence[Column] | None = None,
    filled: bool = False,
) -> str:
    """A query for the stored columns of the index, or some of them; `source` has the columns of rows, named by id.
    `filled`: it already has the values of converted and generated columns. A failed conversion is NULL."""
    stored = [table.column_by_id[c] for c, _ in table.stored_columns(index, table.layout)]
    wanted = stored if columns is None else columns
    if not filled:
        source = _with_conversions(table, index, source, wanted)
    names = select_values(wanted, filled)
    conditions = [f"{column_name(c)} IS NOT NULL" for c in table.needed_for(index)]
    conditions += [] if index.where is None else [f"({index.where.text})"]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {names} FROM {source}{where}"  # noqa: S608 - names are made of column ids


def select_values(columns: Sequence[Column], filled: bool = False) -> str:
    """A list of values, by column id, over rows without conversions."""
    return ", ".join(_output(column, filled) for column in columns)


def columns_read(table: Table, index: Index, columns: Sequence[Column], filled: bool = False) -> list[Column]:
    """The columns of rows that these columns of the index, and its predicate, depend on."""
    first = _direct(table, index, columns, filled)
    if filled:
        return first
    found = [i for c in first for i in ([c] if c.conversion is None else _inputs(table, c.conversion))]
    return list(dict.fromkeys(found))


def _direct(table: Table, index: Index, columns: Sequence[Column], filled: bool = False) -> list[Column]:
    """The columns that entries depend on after conversion."""
    found = [i for c in columns for i in ([c] if _is_stored(c, filled) else _inputs(table, c.generated))]
    needed = (table.column_by_id[c] for c in table.needed_for(index))
    return list(dict.fromkeys([*found, *needed, *_inputs(table, index.where)]))


def _is_stored(column: Column, filled: bool) -> bool:
    return column.generated is None or (filled and not column.virtual)


def _inputs(table: Table, expression: Expression | None) -> Iterable[Column]:
    return () if expression is None else (table.column_by_id[c] for c in expression.columns)


def _with_conversions(table: Table, index: Index, source: str, columns: Sequence[Column]) -> str:
    direct = _direct(table, index, columns)
    converted = [c for c in direct if c.conversion is not None]
    if not converted:
        return source
    plain = [c for c in direct if c.conversion is None]
    names = [column_name(c.id) for c in plain]
    for column in converted:
        assert column.conversion is not None
        value = as_assigned(column.conversion, column.type)
        names.append(f"TRY({value}) AS {column_name(column.id)}")
    return f"(SELECT {', '.join(names)} FROM {source})"  # noqa: S608 - names are made of column ids


def as_value(expression: Expression, type_: SqlType) -> str:
    """The expression as DuckDB text, over columns that are named by their ids."""
    value = f"CAST({expression.text} AS {type_.duckdb})"
    match type_.kind:
        case Kind.JSON | Kind.JSONB:
            # Normalises the document; an error if it is not one.
            text = f"CAST({expression.text} AS VARCHAR)"
            return f"CAST({PREFIX}{type_.kind.value}({text}) AS {type_.duckdb})"
        case Kind.NAME:
            return f"left({value}, {NAME_BYTES_MAX})"
        case Kind.CHAR:
            return f"rtrim({value}, ' ')"
        case _:
            return _rounded(value, 10**type_.scale) if type_.scale and type_.kind in MOMENTS else value


def _rounded(moment: str, step: int) -> str:
    half = step // 2
    rest = f"((epoch_us({moment}) + {half}) % {step} + {step}) % {step}"
    return f"({moment} + to_microseconds({half} - {rest}))"


def as_assigned(expression: Expression, type_: SqlType) -> str:
    """The same with assignment conversion: a value that is too long is an error, except for trailing spaces."""
    value = as_value(expression, type_)
    if not type_.length:
        return value
    too_long = f"CAST({complaint(f'value too long for type {type_}', 'TINYINT')} AS VARCHAR)"
    return (
        f"CASE WHEN length(rtrim({value}, ' ')) > {type_.length} THEN {too_long} ELSE left({value}, {type_.length}) END"
    )


def _output(column: Column, filled: bool) -> str:
    if _is_stored(column, filled) or column.generated is None:
        return column_name(column.id)
    return f"{as_value(column.generated, column.type)} AS {column_name(column.id)}"
