"""INSERT ... SELECT: DuckDB computes and converts; few rows are inserted one by one, many as an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from sqlglot import exp

from seachange.model.schema.descriptor import Column, Table
from seachange.sql.compile.target import DmlTarget, check_assigned, is_ignored, missing_values, overriding_of
from seachange.sql.compile.template import compile_template
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.sql.duck.default_text import is_drawn
from seachange.sql.duck.operands import check_argument_count
from seachange.sql.duck.stream import BATCH_ROWS, ROWS_MAX, ArrowStream, convert_default, convert_given, draw_arrays
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, Row
from seachange.sql.query.plan import ChangeSource, is_same_table
from seachange.sql.query.query import bind_query
from seachange.sql.translate.assignment_casts import check_assignable, untyped_positions
from seachange.sql.write.insert import InsertEnding, check_width, insert_columns
from seachange.sql.write.on_conflict import Arbiter
from seachange.sql.write.upsert import Upsert
from seachange.storage.arrow import arrow_type
from seachange.values.types import Kind

_NUMBER = "seachange number"


class InsertSelect:
    def __init__(self, tree: exp.Insert, target: DmlTarget, table: Table) -> None:
        self._target = target
        self._table = table
        self._columns, self._listed = insert_columns(tree, table)
        self._overriding = overriding_of(tree)
        self._query = tree.expression
        query = tree.expression.copy()
        if tree.args.get("with_") is not None:
            query.set("with_", tree.args["with_"].copy())
        self._template = compile_template(query)
        self._ending = InsertEnding(tree, target, table)
        self._expected = max(max(self._template.parameters, default=0), self._ending.expected)

    def is_current(self, port: TransactionPort) -> bool:
        return is_same_table(port, self._target, self._table)

    def source(self, values: Sequence[Any]) -> ChangeSource:
        return ChangeSource("Insert", self._table, self._template, conflicts=self._ending.conflicts)

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        check_argument_count(self._expected, values)
        self._ending.begin(port)
        source = bind_query(self._template, port, values)
        _, types = duck.describe(source)
        width = len(types)
        check_width(self._columns, self._listed, width)
        untyped = untyped_positions(self._query, width)
        for place, (column, type_) in enumerate(zip(self._columns, types, strict=False)):
            check_assigned(column, None, "insert into", self._overriding)
            if place not in untyped:
                check_assignable(column, type_)
        sql = _converted(source.sql, types, self._columns, self._table, self._overriding)
        query = DuckQuery(sql, source.parameters, source.relations, source.session_values)
        upsert, returning = self._ending.upsert, self._ending.returning
        given = [column for column in self._columns[:width] if not is_ignored(column, self._overriding)]
        if upsert is not None and returning is None and can_filter(upsert, self._table, given):
            query, upsert = without_conflicts(query, upsert.arbiters[0], port, self._table), None
        with duck.batches(query, BATCH_ROWS) as reader:
            insertion = _Insertion(port, self._table, reader, given)
            if upsert is None and returning is None:
                return insertion.insert()
            rows = insertion.all_rows()
        return self._ending.insert(port, duck, rows, values)


def insert_query(
    query: DuckQuery, table: Table, types: Sequence[str], port: TransactionPort, duck: DuckSession
) -> Result:
    """Inserts the rows of a query that has the columns of the table."""
    columns = table.visible_columns
    converted = replace(query, sql=_converted(query.sql, types, columns, table, None))
    with duck.batches(converted, BATCH_ROWS) as reader:
        return _Insertion(port, table, reader, columns).insert()


def _converted(sql: str, types: Sequence[str], columns: Sequence[Column], table: Table, overriding: str | None) -> str:
    """The query with its columns converted to those of the table, and defaults for the others."""
    names = [f"c{i}" for i in range(len(types))]
    pairs = zip(columns, zip(names, types, strict=True), strict=False)
    given = {c.name: pair for c, pair in pairs if not is_ignored(c, overriding)}
    expressions = [
        convert_given(c, exp.column(given[c.name][0]), given[c.name][1]) if c.name in given else convert_default(c)
        for c in table.visible_columns
    ]
    named = [e.as_(c.name, quoted=True) for e, c in zip(expressions, table.visible_columns, strict=True)]
    alias = exp.TableAlias(this=exp.to_identifier("source"), columns=[exp.to_identifier(name) for name in names])
    source = exp.Subquery(this=exp.Var(this=sql), alias=alias)
    return exp.Select(expressions=named, from_=exp.From(this=source)).sql("duckdb")


class _Insertion:
    """A DuckDB result that is being inserted into a table."""

    def __init__(
        self, port: TransactionPort, table: Table, reader: pa.RecordBatchReader, given: Sequence[Column]
    ) -> None:
        self._port = port
        self._table = table
        schema = pa.schema([pa.field(c.name, arrow_type(c.type)) for c in table.visible_columns])
        types = [c.type for c in table.visible_columns]
        drawn = [i for i, c in enumerate(table.visible_columns) if is_drawn(c) and c not in given]
        self._stream = ArrowStream(reader, schema, types, partial(draw_arrays, port, table, drawn) if drawn else None)

    def all_rows(self) -> list[Row]:
        return [row for batch in self._stream.batches() for row in self._rows(batch)]

    def insert(self) -> Result:
        first: list[pa.RecordBatch] = []
        for batch in self._stream.batches():
            first.append(batch)
            if sum(b.num_rows for b in first) > ROWS_MAX:
                count = self._stream.pass_to(lambda rows: self._port.writes.insert_arrow(self._table, rows), first)
                return Result(f"INSERT 0 {count}", count=count)
        rows = [row for batch in first for row in self._rows(batch)]
        self._port.writes.insert(self._table, rows)
        return Result(f"INSERT 0 {len(rows)}", count=len(rows))

    def _rows(self, batch: pa.RecordBatch) -> Iterator[Row]:
        visible = zip(self._table.visible_columns, batch.columns, strict=True)
        given = {column.id: values.to_pylist() for column, values in visible}
        columns = self._table.columns
        return zip(
            *(given.get(c.id) or missing_values(self._port.sequences, c, batch.num_rows) for c in columns), strict=True
        )


# ON CONFLICT DO NOTHING over a query: DuckDB filters out the conflicting rows, however many there are.
def can_filter(upsert: Upsert, table: Table, given: Sequence[Column]) -> bool:
    """With several keys, which rows conflict depends on the order. A UUID travels as bytes, and values that the query
    does not compute may not be known yet."""
    if upsert.updates or len(upsert.arbiters) != 1 or not upsert.arbiters[0].is_plain:
        return False
    key = [table.columns[position] for position in upsert.arbiters[0].positions]
    return all(c.type.kind is not Kind.UUID and (c in given or not _is_later(c)) for c in key)


def _is_later(column: Column) -> bool:
    return column.generated is not None or is_drawn(column)


def without_conflicts(query: DuckQuery, arbiter: Arbiter, port: TransactionPort, table: Table) -> DuckQuery:
    """`query` returns the visible columns of the table; of rows with the same key one is kept."""
    names = [table.columns[position].name for position in arbiter.positions]
    scan = port.reads.scan(table, columns=frozenset(name.lower() for name in names))
    proposed = [exp.column(name, table="proposed", quoted=True) for name in names]
    number = exp.Window(this=exp.Anonymous(this="row_number"), partition_by=[c.copy() for c in proposed])
    source = exp.Subquery(this=exp.Var(this=query.sql), alias=exp.TableAlias(this=exp.to_identifier("proposed")))
    numbered = exp.Select(expressions=[exp.Star(), number.as_(_NUMBER, quoted=True)], from_=exp.From(this=source))
    present = exp.Subquery(this=exp.Var(this=scan.sql), alias=exp.TableAlias(this=exp.to_identifier("present")))
    same = exp.and_(
        *(
            arbiter.equality(this=exp.column(name, table="present", quoted=True), expression=column.copy())
            for name, column in zip(names, proposed, strict=True)
        )
    )
    first = exp.EQ(this=exp.column(_NUMBER, quoted=True), expression=exp.Literal.number(1))
    free = proposed if arbiter.index.nulls_distinct else []
    with_null = [exp.Is(this=column.copy(), expression=exp.null()) for column in free]
    missing = exp.Not(this=exp.Exists(this=exp.Select(expressions=[exp.Literal.number(1)]).from_(present).where(same)))
    kept = exp.Select(
        expressions=[exp.column(c.name, table="proposed", quoted=True) for c in table.visible_columns],
        from_=exp.From(this=exp.Subquery(this=numbered, alias=exp.TableAlias(this=exp.to_identifier("proposed")))),
    ).where(exp.or_(first, *with_null), missing)
    return DuckQuery(
        kept.sql("duckdb"),
        {**query.parameters, **scan.parameters},
        {**query.relations, **scan.relations},
        query.session_values,
    )
