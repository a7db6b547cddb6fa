"""Command aliases: short statements for queries of the views and functions of schema `seachange`."""

from __future__ import annotations

from sqlglot import exp

from seachange.sql.text.names import read_relation
from seachange.sql.text.tokens import Reader

_VERBS = ("pause", "resume", "cancel")


def read_alias(reader: Reader) -> str | None:
    """The query that the alias stands for; None if it is another statement."""
    if reader.take("show", "jobs"):
        return _query("jobs", order="id")
    if reader.take("show", "job"):
        return _query("jobs", ("id", exp.Literal.number(reader.integer())))
    if reader.take("show", "leases"):
        return _query("leases", order="node")
    if reader.take("show", "layouts", "from"):
        table = read_relation(reader)
        schema = ("table_schema", exp.Literal.string(table.schema or "public"))
        return _query("layouts", schema, ("table_name", exp.Literal.string(table.name)), order="layout_id")
    for verb in _VERBS:
        if reader.take(verb, "job"):
            call = exp.Anonymous(this=f"{verb}_job", expressions=[exp.Literal.number(reader.integer())])
            return exp.select(exp.Dot(this=exp.to_identifier("seachange"), expression=call)).sql("postgres")
    return None


def _query(view: str, *conditions: tuple[str, exp.Expr], order: str | None = None) -> str:
    query = exp.select("*").from_(exp.to_table(f"seachange.{view}"))
    for column, value in conditions:
        query = query.where(exp.column(column).eq(value))
    return (query.order_by(order) if order is not None else query).sql("postgres")
