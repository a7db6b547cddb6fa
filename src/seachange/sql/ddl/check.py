"""The expression of a CHECK constraint: what it may contain, and its DuckDB text with gaps for the columns."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import SqlglotError

from seachange import errors
from seachange.model.constraint import column_reference
from seachange.model.descriptor import Table
from seachange.model.statements import CheckDefinition
from seachange.sql.duck import DuckQuery, DuckSession
from seachange.sql.target import folded
from seachange.sql.template import compile_template
from seachange.sql.tokens import DIALECT, Reader

# Stands in generated text around the number of a column; no statement may contain it.
_GAP = "\x01"
_GAPS = re.compile(f'"{_GAP}([0-9]+){_GAP}"')

# What has no value of one row alone, or not the same one tomorrow: the error that PostgreSQL or we answer with.
_REFUSED: tuple[tuple[tuple[type[exp.Expr], ...], errors.Error], ...] = (
    ((exp.Query,), errors.FeatureNotSupported(feature="a subquery in a CHECK constraint", instead="")),
    ((exp.Window,), errors.WindowingProblem(detail="window functions are not allowed in check constraints")),
    ((exp.AggFunc,), errors.GroupingProblem(detail="aggregate functions are not allowed in check constraints")),
    ((exp.Parameter, exp.Placeholder), errors.SyntaxProblem(detail="a parameter in a CHECK constraint")),
    (
        (
            exp.CurrentDate,
            exp.CurrentTime,
            exp.CurrentTimestamp,
            exp.Localtime,
            exp.Localtimestamp,
            exp.CurrentUser,
            exp.SessionUser,
            exp.Rand,
            exp.Uuid,
        ),
        errors.FeatureNotSupported(feature="a CHECK constraint on more than the row's values", instead=""),
    ),
)
_VOLATILE = frozenset(
    {"now", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "gen_random_uuid", "age"}
)


def read_check(reader: Reader, name: str | None) -> CheckDefinition:
    definition = compile_check(reader.parenthesized(), name)
    if reader.take("no", "inherit"):
        raise errors.FeatureNotSupported(feature="NO INHERIT", instead="")
    return definition


def compile_check(text: str, name: str | None = None) -> CheckDefinition:
    if _GAP in text:
        raise errors.SyntaxProblem(detail="a CHECK constraint with a control character")
    tree = _parse(text)
    for kinds, refusal in _REFUSED:
        if tree.find(*kinds):
            raise refusal
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower() in _VOLATILE:
            raise errors.FeatureNotSupported(feature=f"function {call.name.lower()} in a CHECK constraint", instead="")
    columns: list[str] = []
    for column in list(tree.find_all(exp.Column)):
        if column.table:
            raise errors.FeatureNotSupported(
                feature="a column with the name of its table in a CHECK constraint", instead="Leave out the table."
            )
        columns.append(folded(column.this))
        column.replace(exp.column(f"{_GAP}{len(columns) - 1}{_GAP}", quoted=True))
    template = compile_template(exp.Select(expressions=[tree]))
    return _cut(template.pieces[0].removeprefix("SELECT "), columns, name)


def verify_checks(before: Table | None, after: Table, duck: DuckSession) -> None:
    """Has DuckDB look at the checks that a change of a table adds: functions and operators exist for the types of the
    columns, and the result is a boolean."""
    known = {check.id for check in before.checks} if before is not None else set()
    for check in after.checks:
        if check.id in known:
            continue
        used = [after.column_by_id[c] for c in check.columns]
        nulls = ", ".join(f"CAST(NULL AS {c.type.duckdb}) AS {column_reference(c.id)}" for c in used) or "1"
        sql = f"SELECT {check.expression} FROM (SELECT {nulls}) WHERE false"  # noqa: S608 - columns are named by id
        (found,) = duck.rows(DuckQuery(sql, {}, {})).types
        if found != "BOOLEAN":
            raise errors.DatatypeMismatch(
                detail=f'argument of CHECK constraint "{check.name}" must be type boolean, not {found.lower()}'
            )


def _parse(text: str) -> exp.Expr:
    try:
        trees = DIALECT.parse(f"SELECT {text}")
    except SqlglotError as error:
        raise errors.SyntaxProblem(detail=f"in a CHECK constraint: {str(error).splitlines()[0]}") from None
    tree = trees[0]
    if len(trees) != 1 or not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        raise errors.SyntaxProblem(detail="a CHECK constraint is one expression")
    found: exp.Expr = tree.expressions[0].pop()
    return found


def _cut(sql: str, columns: list[str], name: str | None) -> CheckDefinition:
    """DuckDB's text may use the columns in another order than the user's, or one of them twice."""
    parts = _GAPS.split(sql)
    return CheckDefinition(tuple(parts[0::2]), tuple(columns[int(number)] for number in parts[1::2]), name)
