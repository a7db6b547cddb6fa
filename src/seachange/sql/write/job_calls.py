"""SELECT seachange.pause_job(id) and similar calls: made by the engine, never by DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from seachange import errors
from seachange.model.jobs import JobId, JobRequest
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.duck.operands import Argument, Given, argument_count, check_argument_count, read_operand
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, table_column
from seachange.sql.port.system_columns import SYSTEM_SCHEMA
from seachange.values.coercion import coercer
from seachange.values.types import BIGINT, Kind, SqlType

FUNCTIONS: dict[str, JobRequest] = {
    "pause_job": JobRequest.PAUSE,
    "resume_job": JobRequest.RESUME,
    "cancel_job": JobRequest.CANCEL,
    "publish_job": JobRequest.PUBLISH,
}


def calls_job(tree: exp.Expr) -> bool:
    return any(_called(node) is not None for node in tree.find_all(exp.Dot))


def _called(node: exp.Expr) -> str | None:
    """The name of the function, if the expression is a call of one of these."""
    if not isinstance(node, exp.Dot) or not isinstance(node.expression, exp.Anonymous):
        return None
    name = node.expression.name.lower()
    return name if node.this.name.lower() == SYSTEM_SCHEMA and name in FUNCTIONS else None


class JobSelect:
    """`SELECT seachange.pause_job(operand)`, with nothing else in the statement."""

    def __init__(self, tree: exp.Query) -> None:
        clauses = {key for key, value in tree.args.items() if value}
        projections = tree.expressions if isinstance(tree, exp.Select) and clauses == {"expressions"} else []
        call = projections[0].unalias() if len(projections) == 1 else None
        name = _called(call) if call is not None else None
        if call is None or name is None:
            raise errors.FeatureNotSupported(
                feature="a change of a job inside of a query", instead="Use SELECT seachange.cancel_job(1) alone."
            )
        arguments = call.expression.expressions
        operand = read_operand(arguments[0]) if len(arguments) == 1 else None
        if not isinstance(operand, Given | Argument):
            raise errors.UndefinedFunction(detail=f"function {SYSTEM_SCHEMA}.{name} requires the id of one job")
        self._request = FUNCTIONS[name]
        self._operand = operand
        self.columns = (table_column(projections[0].alias or name, SqlType(Kind.BOOLEAN)),)

    def is_current(self, port: TransactionPort) -> bool:
        return True

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result:
        check_argument_count(argument_count([self._operand]), values)
        given = self._operand.value if isinstance(self._operand, Given) else values[self._operand.number - 1]
        job_id = coercer(BIGINT)(given)
        if job_id is None:
            return Result("SELECT 1", self.columns, [(None,)], 1)
        port.jobs.request_job(JobId(job_id), self._request)
        return Result("SELECT 1", self.columns, [(True,)], 1)
