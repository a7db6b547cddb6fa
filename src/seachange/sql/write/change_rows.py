"""The rows that an UPDATE or DELETE changes: found by a query, and streamed with their new values if there are many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from sqlglot import exp

from seachange.model.schema.descriptor import Column, Table
from seachange.sql.compile.target import DmlTarget, with_default
from seachange.sql.compile.template import Template, compile_template
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.sql.duck.operands import Argument, DefaultValue, DrawnValue, Given, Operand, read_operand
from seachange.sql.duck.stream import BATCH_ROWS, ArrowStream, convert_constant, convert_given, convert_stored
from seachange.sql.port.port import TransactionPort
from seachange.sql.query.query import bind_query
from seachange.sql.text.scope import WITH_HIDDEN
from seachange.sql.translate.assignment_casts import check_assignments
from seachange.storage.arrow import arrow_type
from seachange.values.coercion import coerce


def other_sources(tree: exp.Expr) -> list[exp.Expr]:
    """The other tables in FROM of an UPDATE or USING of a DELETE."""
    from_ = tree.args.get("from_")
    return [from_.this] if from_ is not None else list(tree.args.get("using") or ())


def compile_old_rows(
    tree: exp.Expr, table: Table, target: DmlTarget, others: list[exp.Expr], asked: list[exp.Expr]
) -> Template:
    """A query for all columns of the rows to change, including hidden ones, and for computed values."""
    with_, where = tree.args.get("with_"), tree.args.get("where")
    # A WITH query of the same name does not hide the table that the statement changes.
    schema = target.schema or (table.schema if with_ is not None else None)
    source = exp.table_(
        exp.to_identifier(target.name, quoted=True),
        db=exp.to_identifier(schema, quoted=True) if schema else None,
        alias=exp.to_identifier(target.alias, quoted=True),
    )
    source.meta[WITH_HIDDEN] = True
    columns = [exp.column(table.label(c), table=target.alias, quoted=True) for c in table.columns]
    joins = [exp.Join(this=other.copy(), kind="CROSS") for other in others]
    query = exp.Select(expressions=[*columns, *asked], from_=exp.From(this=source), joins=joins)
    if where is not None:
        query.set("where", where.copy())
    if with_ is not None:
        query.set("with_", with_.copy())
    return compile_template(query)


class ChangedRowStream:
    """All rows that a statement changes, with new values that DuckDB computes and converts."""

    def __init__(
        self, tree: exp.Expr, table: Table, target: DmlTarget, assignments: Sequence[tuple[Column, exp.Expr]] | None
    ) -> None:
        self._tree = tree
        self._table = table
        self._target = target
        self._assignments = assignments
        self._others = other_sources(tree)

    @property
    def columns(self) -> Sequence[Column] | None:
        """The assigned columns; None for a DELETE."""
        return None if self._assignments is None else [column for column, _ in self._assignments]

    @cached_property
    def _sources(self) -> list[tuple[Column, Operand | exp.Expr]]:
        """Constants need not be computed for each row."""
        return [(column, read_operand(node) or node) for column, node in self._assignments or ()]

    @cached_property
    def _template(self) -> Template:
        asked = [source.copy() for _, source in self._sources if isinstance(source, exp.Expr)]
        return compile_old_rows(self._tree, self._table, self._target, self._others, asked)

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> int:
        source = bind_query(self._template, port, values)
        _, types = duck.describe(source)
        computed = [column for column, given in self._sources if isinstance(given, exp.Expr)]
        check_assignments(computed, types[len(self._table.columns) :])
        sql = self._convert(source.sql, values, types[len(self._table.columns) :])
        query = DuckQuery(sql, source.parameters, source.relations, source.session_values)
        assigned = self.columns
        named = [(f"o{c.id}", c) for c in self._table.columns] + [(f"n{c.id}", c) for c in assigned or ()]
        schema = pa.schema([pa.field(name, arrow_type(column.type)) for name, column in named])
        with duck.batches(query, BATCH_ROWS) as reader:
            stream = ArrowStream(reader, schema, [column.type for _, column in named])
            return stream.pass_to(lambda rows: port.writes.change_arrow(self._table, rows, assigned))

    def _convert(self, sql: str, values: Sequence[Any], types: Sequence[str]) -> str:
        """The query with old and new values converted to the columns' types; rows found several times are returned
        once."""
        old = [f"o{i}" for i in range(len(self._table.columns))]
        computed = [f"n{i}" for i, (_, source) in enumerate(self._sources) if isinstance(source, exp.Expr)]
        expressions = [convert_stored(c, exp.column(name)) for c, name in zip(self._table.columns, old, strict=True)]
        type_of = dict(zip(computed, types, strict=True))
        for number, (column, operand) in enumerate(self._sources):
            name = f"n{number}"
            if isinstance(operand, exp.Expr):
                expressions.append(convert_given(column, exp.column(name), type_of[name]))
            else:
                expressions.append(convert_constant(column, _constant(column, operand, values)))
        names = [exp.to_identifier(name) for name in (*old, *computed)]
        alias = exp.TableAlias(this=exp.to_identifier("found"), columns=names)
        select = exp.Select(
            expressions=expressions, from_=exp.From(this=exp.Subquery(this=exp.Var(this=sql), alias=alias))
        )
        if self._others:
            key = [exp.column(old[i]) for i, c in enumerate(self._table.columns) if c.id in self._table.primary.key]
            select.set("distinct", exp.Distinct(on=exp.Tuple(expressions=key)))
        return select.sql("duckdb")


def _constant(column: Column, operand: Operand, values: Sequence[Any]) -> Any:
    match with_default(column, operand):
        case Given(value):
            return coerce(column.type, value)
        case Argument(number):
            return coerce(column.type, values[number - 1])
        case DefaultValue() | DrawnValue():
            raise AssertionError("defaults are resolved before")
