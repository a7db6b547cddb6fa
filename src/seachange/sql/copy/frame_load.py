"""Loading of a DataFrame: matches its columns to the table's, and builds the query that converts them as assignments
do.

Spark writes the rows to files whose columns are named by position (`f0`, `f1`, ...); dates and timestamps are numbers
there, so that no setting of Spark can shift them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from seachange import errors
from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Column, Table
from seachange.sql.compile.target import check_assigned
from seachange.sql.duck.cursor import ZONED
from seachange.sql.duck.stream import convert_constant, convert_default, convert_given
from seachange.sql.translate.assignment_casts import check_assignable
from seachange.values.types import Kind

FILES = "files"
# Spark has no such types: they arrive as text.
_FROM_TEXT = frozenset({Kind.UUID, Kind.TIME, Kind.INTERVAL, Kind.INET, Kind.CIDR})
_NULL = '"NULL"'


@dataclass(frozen=True, slots=True)
class FrameColumn:
    """A column of a DataFrame; `duck_type` is the DuckDB type of its values, None if no column can store them. `source`
    is its name in files that Spark itself has not written, if it is another one."""

    name: str
    spark_type: str
    duck_type: str | None
    source: str = ""


@dataclass(frozen=True, slots=True)
class FrameQuery:
    """`sql` returns the visible columns of the table, in order, from the files in a parameter; `conversions` are its
    expressions, by the given columns."""

    sql: str
    given: tuple[Column, ...]
    conversions: tuple[tuple[ColumnId, str], ...]


def source_name(place: int) -> str:
    return f"f{place}"


def plan_frame(
    table: Table, columns: Sequence[FrameColumn], is_case_sensitive: bool, is_spooled: bool = True
) -> FrameQuery:
    """Columns are matched by name. As with COPY, values of an identity column may be given. `is_spooled`: Spark has
    written the files; else they are anyone's, with the columns under their own names."""
    given: dict[ColumnId, exp.Expr] = {}
    for place, frame_column in enumerate(columns):
        column = match_column(table, frame_column.name, is_case_sensitive)
        if column.id in given:
            raise errors.DuplicateColumn(name=column.name)
        check_assigned(column, None, "insert into", overriding="system")
        source = (
            _spooled(place, frame_column)
            if is_spooled
            else exp.column(frame_column.source or frame_column.name, quoted=True)
        )
        given[column.id] = _convert(column, frame_column, source)
    visible = table.visible_columns
    expressions = [given[c.id] if c.id in given else convert_default(c) for c in visible]
    named = [e.as_(c.name, quoted=True) for e, c in zip(expressions, visible, strict=True)]
    files = exp.Anonymous(this="read_parquet", expressions=[exp.Var(this=f"${FILES}")])
    return FrameQuery(
        exp.Select(expressions=named, from_=exp.From(this=files)).sql("duckdb"),
        tuple(c for c in visible if c.id in given),
        tuple((id_, expression.sql("duckdb")) for id_, expression in given.items()),
    )


def match_column(table: Table, name: str, is_case_sensitive: bool) -> Column:
    """Case-insensitive if Spark is, unless the table has both spellings."""
    found = table.column_by_name.get(name)
    if found is not None:
        return found
    alike = [c for c in table.visible_columns if c.name.lower() == name.lower()]
    if is_case_sensitive or len(alike) != 1:
        raise errors.UndefinedColumn(name=name, relation=table.name)
    return alike[0]


def _convert(column: Column, given: FrameColumn, source: exp.Expr) -> exp.Expr:
    duck_type = given.duck_type
    if duck_type is None:
        raise errors.NotAssignable(column=column.name, type=column.type, given=given.spark_type)
    if duck_type == _NULL:
        return convert_constant(column, None)
    if not (duck_type == "VARCHAR" and column.type.kind in _FROM_TEXT):
        check_assignable(column, duck_type)
    return convert_given(column, source, duck_type)


def _spooled(place: int, given: FrameColumn) -> exp.Expr:
    source = exp.column(source_name(place))
    return source if given.duck_type is None else _decode(source, given.duck_type)


def _decode(value: exp.Expr, duck_type: str) -> exp.Expr:
    """From the number that was written."""
    if duck_type == "DATE":
        first = exp.cast(exp.Literal.string("1970-01-01"), exp.DataType.build("DATE"))
        return exp.Paren(this=exp.Add(this=first, expression=value))
    if duck_type == ZONED:
        moment = exp.Anonymous(this="make_timestamp", expressions=[value])
        return exp.Anonymous(this="timezone", expressions=[exp.Literal.string("UTC"), moment])
    return value
