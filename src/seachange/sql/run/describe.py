"""Parameter and result types of a statement, without running it.

**Invariant:** nothing is run and nothing is changed: a query is only bound, with a sample value of each parameter's
type.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlglot import exp

from seachange import errors
from seachange.model.statements import Explain, ShowSetting, TransactionStatement
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.parsing.parse import Parsed, TreeStatement
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import ResultColumn, table_column
from seachange.sql.query.parameter_types import parameter_types
from seachange.sql.query.query import describe_query
from seachange.sql.run.execute import Prepared
from seachange.sql.write.advisory_calls import AdvisorySelect, calls_advisory
from seachange.sql.write.dml import compile_select
from seachange.sql.write.job_calls import JobSelect, calls_job
from seachange.sql.write.with_changes import changing_queries
from seachange.values.interval import Interval
from seachange.values.types import TEXT, Kind, SqlType

_SAMPLES: dict[Kind, Any] = {
    Kind.BOOLEAN: False,
    **dict.fromkeys((Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.OID), 1),
    **dict.fromkeys((Kind.REAL, Kind.DOUBLE), 1.5),
    Kind.NUMERIC: Decimal("1.5"),
    Kind.BYTEA: b"",
    Kind.DATE: dt.date(2000, 1, 1),
    Kind.TIME: dt.time(),
    Kind.TIMESTAMP: dt.datetime(2000, 1, 1),
    Kind.TIMESTAMPTZ: dt.datetime(2000, 1, 1, tzinfo=dt.UTC),
    Kind.INTERVAL: Interval(0, 0, 0),
    Kind.UUID: UUID(int=0),
    Kind.JSON: "null",
    Kind.JSONB: "null",
    Kind.INET: "0.0.0.0/0",
    Kind.CIDR: "0.0.0.0/0",
}


@dataclass(frozen=True, slots=True)
class Description:
    """`types` has None where a parameter's type is unknown; `columns` is None if the statement returns no rows."""

    types: tuple[SqlType | None, ...]
    columns: tuple[ResultColumn, ...] | None


def gives_rows(prepared: Prepared) -> bool:
    """Whether a statement may return rows."""
    if isinstance(prepared.parsed, TreeStatement):
        return prepared.command == "SELECT" or bool(prepared.parsed.tree.args.get("returning"))
    return not isinstance(prepared.parsed, TransactionStatement)


def plain_columns(statement: Parsed) -> tuple[ResultColumn, ...] | None:
    """Result columns of utility statements; they do not depend on the catalog."""
    match statement:
        case Explain():
            return (table_column("QUERY PLAN", TEXT),)
        case ShowSetting(None):
            return tuple(table_column(name, TEXT) for name in ("name", "setting", "description"))
        case ShowSetting(str(name)):
            return (table_column(name, TEXT),)
        case _:
            return None


def describe(
    prepared: Prepared, port: TransactionPort, duck: DuckSession, given: Sequence[SqlType | None], rows: bool
) -> Description:
    """`given` are the parameter types that the client has declared, None where it has not; `rows`: whether the result
    columns are needed."""
    parsed = prepared.parsed
    if not isinstance(parsed, TreeStatement):
        return Description((), plain_columns(parsed))
    try:
        return _describe_tree(prepared, parsed.tree, port, duck, given, rows)
    except RecursionError:
        raise errors.StatementTooComplex() from None


def _describe_tree(
    prepared: Prepared,
    tree: exp.Expr,
    port: TransactionPort,
    duck: DuckSession,
    given: Sequence[SqlType | None],
    rows: bool,
) -> Description:
    if prepared.lists is not None:
        declared = prepared.lists.declare(given)
        types = parameter_types(tree, port, declared or ())
        shown = prepared.lists.describe(given, types)
    else:
        shown = types = parameter_types(tree, port, given)
    if not rows or not gives_rows(prepared):
        return Description(shown, None)
    query = _query(tree)
    samples = [_sample(type_) for type_ in types]
    if isinstance(query, exp.Query) and calls_job(query):
        return Description(shown, JobSelect(query).columns)
    if isinstance(query, exp.Query) and calls_advisory(query):
        return Description(shown, AdvisorySelect(query).describe(port, duck, samples))
    template = compile_select(query, port, types)
    return Description(shown, describe_query(template, port, duck, samples[: max(template.parameters, default=0)]))


def _sample(type_: SqlType | None) -> Any:
    if type_ is not None and type_.element is not None:
        return [_sample(type_.element)]
    return _SAMPLES.get((type_ or TEXT).kind, "")


def _query(tree: exp.Expr) -> exp.Expr:
    """A query with the result columns of the statement."""
    if changing_queries(tree):
        tree = tree.copy()
        for cte in changing_queries(tree):
            cte.set("this", _query(cte.this) if cte.this.args.get("returning") else exp.select("1"))
    returning = tree.args.get("returning")
    if returning is None:
        query = tree.copy()
        query.set("locks", None)
        return query
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    query = exp.Select(expressions=[item.copy() for item in returning.expressions], from_=exp.From(this=target.copy()))
    others = tree.args.get("from_") or tree.args.get("using")
    for other in [others.this] if isinstance(others, exp.From) else others or []:
        query = query.join(other.copy(), join_type="cross", copy=False)
    if tree.args.get("with_") is not None:
        query.set("with_", tree.args["with_"].copy())
    return query
