"""ON CONFLICT DO NOTHING over a query: DuckDB filters out the conflicting rows, however many there are."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seachange.model.schema.descriptor import Column, Table
from seachange.sql.duck.cursor import DuckQuery
from seachange.sql.duck.default_text import is_drawn
from seachange.sql.port.port import TransactionPort
from seachange.sql.write.on_conflict import Arbiter
from seachange.sql.write.upsert import Upsert
from seachange.values.types import Kind

_NUMBER = "seachange number"


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
    scan = port.scan(table, columns=frozenset(name.lower() for name in names))
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
