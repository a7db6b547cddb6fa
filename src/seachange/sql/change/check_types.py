"""Type checks of new CHECK constraints: DuckDB binds them to the types of their columns."""

from __future__ import annotations

from seachange import errors
from seachange.model.schema.constraint import column_reference
from seachange.model.schema.descriptor import Table
from seachange.sql.duck.cursor import DuckQuery, DuckSession


def verify_checks(before: Table | None, after: Table, duck: DuckSession) -> None:
    """Has DuckDB bind the CHECK constraints that a change adds: functions and operators must exist for the columns'
    types, and the result must be a boolean."""
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
