"""RETURNING: the result of a statement about the rows that it changed.

Each item comes from where it is cheapest: a plain column from the changed row, what an UPDATE or DELETE can know
beforehand from the query that finds its rows, and the rest from a query over the changed rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from seachange import errors
from seachange.model.schema.descriptor import Table
from seachange.sql.bind.output_names import output_names
from seachange.sql.bind.scope import BoundColumn
from seachange.sql.bind.types import BIGINT
from seachange.sql.compile.bound_catalog import KnownRelations, relation_columns
from seachange.sql.compile.keys import plain_column
from seachange.sql.compile.target import DmlTarget
from seachange.sql.compile.template import Template, compile_template
from seachange.sql.compile.type_holes import duck_type
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.duck.returned_rows import given_field
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, ResultColumn, Row, duck_column, table_column
from seachange.sql.query.query import bind_query
from seachange.sql.query.result_columns import column_types, find_origin
from seachange.sql.text.scope import GIVEN, GIVEN_SCHEMA
from seachange.storage.arrow import arrow_type
from seachange.storage.small_arrays import array_of
from seachange.values.types import SqlType

_CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Known:
    """What the query that found the rows returns about them: the types of its columns, and a row of values per row."""

    types: Sequence[str] = ()
    rows: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class _Item:
    """`source` tells which of the three it is: a position in the row, in the known values, or in the computed ones."""

    source: str
    position: int
    column: ResultColumn


class Returning:
    """`known` are the expressions that the query which finds the rows must return."""

    def __init__(
        self,
        tree: exp.Expr,
        table: Table,
        target: DmlTarget,
        found: bool = False,
        assigned: frozenset[str] = frozenset(),
    ) -> None:
        """`found`: the rows come from a query; `assigned`: columns whose values there are the old ones."""
        self._table = table
        self._target = target
        self._joined = bool(tree.args.get("from_") or tree.args.get("using"))
        self._found = found
        self._assigned = assigned
        self.known: list[exp.Expr] = []
        self._computed: list[exp.Expr] = []
        expressions = _expand_stars(tree.args["returning"].expressions, table, target, self._joined)
        _check_expressions(expressions)
        names = output_names(exp.Select(expressions=[e.copy() for e in expressions])) or ()
        self._items = [self._item(node, str(name)) for node, name in zip(expressions, names, strict=True)]
        self._template: Template | None = None
        if self._computed:
            self._template = _compile_over_rows(self._computed, table, target)
        self.parameters = self._template.parameters if self._template is not None else ()

    def _item(self, node: exp.Expr, name: str) -> _Item:
        inner = node.this if isinstance(node, exp.Alias) else node
        plain = plain_column(inner, self._target)
        column = self._table.column_by_name.get(plain) if plain is not None else None
        if column is not None:
            return _Item(
                "row",
                self._table.columns.index(column),
                table_column(name, column.type, find_origin(self._table, column)),
            )
        if self._found and not self._uses_assigned(inner):
            self.known.append(inner.copy())
            return _Item("known", len(self.known) - 1, ResultColumn(name, 0))
        if self._joined:
            raise errors.FeatureNotSupported(
                feature="an expression over changed columns in RETURNING of a join", instead="Return the columns."
            )
        self._computed.append(inner.copy())
        return _Item("computed", len(self._computed) - 1, ResultColumn(name, 0))

    def _uses_assigned(self, node: exp.Expr) -> bool:
        return any(plain_column(column, self._target) in self._assigned for column in node.find_all(exp.Column))

    def result(
        self,
        tag: str,
        port: TransactionPort,
        duck: DuckSession,
        rows: Sequence[Row],
        values: Sequence[Any],
        known: Known | None = None,
    ) -> Result:
        """`rows` are the changed rows: the new versions for an UPDATE."""
        port.rights.check_access(self._table, "SELECT")
        known = known or Known()
        types: Sequence[str] = ()
        found: Sequence[SqlType | None] = ()
        computed: Sequence[Row] = ()
        if self._template is not None:
            given = {_CHANGED: rows_as_arrow(self._table, rows, port)}
            answer = duck.rows(bind_query(self._template, port, values, given))
            types = answer.types[1:]
            found = column_types(self._template, answer.types)[1:]
            computed = [row[1:] for row in sorted(answer.rows, key=lambda row: row[0])]
        columns = tuple(_described(item, known.types, types, found) for item in self._items)
        picked = [
            tuple([sources[item.source][item.position] for item in self._items])
            for sources in (
                {"row": row, "known": known.rows[i] if known.rows else (), "computed": computed[i] if computed else ()}
                for i, row in enumerate(rows)
            )
        ]
        return Result(tag, columns, picked, len(rows))


def _described(
    item: _Item, known: Sequence[str], computed: Sequence[str], found: Sequence[SqlType | None]
) -> ResultColumn:
    if item.source == "row":
        return item.column
    types = known if item.source == "known" else computed
    type_ = found[item.position] if item.source == "computed" and found else None
    # No row was found, so the type is not known.
    return duck_column(item.column.name, types[item.position] if types else "VARCHAR", type_)


def _expand_stars(nodes: Sequence[exp.Expr], table: Table, target: DmlTarget, joined: bool) -> list[exp.Expr]:
    expanded: list[exp.Expr] = []
    for node in nodes:
        if not node.is_star:
            expanded.append(node)
        elif joined and isinstance(node, exp.Star):
            raise errors.FeatureNotSupported(feature="RETURNING * of a join", instead=f"Return {target.alias}.*.")
        elif isinstance(node, exp.Column) and plain_table(node) != target.alias:
            raise errors.FeatureNotSupported(feature="RETURNING all of another table", instead="Name the columns.")
        else:
            expanded += [exp.column(c.name, table=target.alias, quoted=True) for c in table.visible_columns]
    return expanded


def plain_table(column: exp.Column) -> str:
    qualifier = column.args.get("table")
    if qualifier is None:
        return ""
    return str(qualifier.name if qualifier.args.get("quoted") else qualifier.name.lower())


def _check_expressions(nodes: Sequence[exp.Expr]) -> None:
    for node in nodes:
        if node.find(exp.Query) is not None:
            # It would see the rows after the change.
            raise errors.FeatureNotSupported(feature="a subquery in RETURNING", instead="")
        if node.find(exp.AggFunc) is not None:
            raise errors.GroupingProblem(detail="aggregate functions are not allowed in RETURNING")
        if node.find(exp.Window) is not None:
            raise errors.WindowingProblem(detail="window functions are not allowed in RETURNING")


def given_table(name: str, alias: str) -> exp.Table:
    """A reference to rows that the statement passes in when it runs."""
    table = exp.table_(exp.to_identifier(name, quoted=True), alias=exp.to_identifier(alias, quoted=True))
    table.meta[GIVEN] = True
    return table


# The position of a passed row; no column has this name unless by intent.
ORDINAL = "seachange ordinal"


def _compile_over_rows(expressions: list[exp.Expr], table: Table, target: DmlTarget) -> Template:
    ordinal = exp.column(ORDINAL, table=target.alias, quoted=True)
    source = given_table(_CHANGED, target.alias)
    query = exp.Select(expressions=[ordinal, *expressions], from_=exp.From(this=source))
    columns = [BoundColumn(ORDINAL, BIGINT), *(relation_columns(table) or ())]
    return compile_template(query, catalog=KnownRelations({(GIVEN_SCHEMA, _CHANGED): columns}))


def rows_as_arrow(table: Table, rows: Sequence[Row], port: TransactionPort) -> pa.Table:
    """Rows as an Arrow table with all visible columns by name, and their position."""
    arrays = [array_of(range(len(rows)), pa.int64())]
    fields = [pa.field(ORDINAL, pa.int64())]
    for position, column in enumerate(table.columns):
        if column in table.visible_columns:
            arrays.append(array_of([row[position] for row in rows], arrow_type(column.type)))
            fields.append(given_field(column.name, column.type, duck_type(column.type, port)))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
