"""CHECK constraints: their definition, and the check of one against the types of the columns."""

from __future__ import annotations

from seachange import errors
from seachange.model.constraint import column_reference
from seachange.model.descriptor import Table
from seachange.model.statements import CheckDefinition
from seachange.sql.ddl.expression import CHECK, compile_expression
from seachange.sql.duck import DuckQuery, DuckSession
from seachange.sql.tokens import Reader


def read_check(reader: Reader, name: str | None) -> CheckDefinition:
    definition = compile_check(reader.parenthesized(), name)
    if reader.take("no", "inherit"):
        raise errors.FeatureNotSupported(feature="NO INHERIT", instead="Leave it out: no table inherits from another.")
    return definition


def compile_check(text: str, name: str | None = None) -> CheckDefinition:
    expression = compile_expression(text, CHECK)
    return CheckDefinition(expression.pieces, expression.columns, name)


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
