"""Type checks by DuckDB of new defaults, generated columns, CHECK constraints, index expressions and predicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from seachange import errors
from seachange.model.ids import ColumnId
from seachange.model.schema.constraint import column_reference
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.expression import Expression
from seachange.model.statements import AddColumn, AlterTable, DdlStatement, ExpressionDefinition, Volatility
from seachange.model.statements.table_statements import without_types
from seachange.sql.change.local_times import refuse_local_times
from seachange.sql.ddl.expression import DOWN, GENERATED, INDEX, PREDICATE, Use
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.sql.duck.default_text import drawn_text, is_drawn, read_drawn
from seachange.sql.port.port import TransactionPort
from seachange.sql.translate.assignment_casts import check_assignable
from seachange.sql.translate.time_functions import CLOCK, STATEMENT, TRANSACTION
from seachange.values.canonical import format_canonical
from seachange.values.types import SqlType, from_duckdb


def verify_computed(before: Table | None, after: Table, duck: DuckSession) -> None:
    """Has DuckDB bind the expressions that a change adds: functions and operators must exist for the columns' types,
    and the result must be assignable to the target column."""
    known = {c.id: (c.default, c.generated, c.type) for c in before.columns} if before is not None else {}
    for column in after.columns:
        if known.get(column.id) == (column.default, column.generated, column.type) or column.virtual:
            continue
        if column.generated is not None:
            refuse_local_times(column.generated, after, duck, GENERATED, column.type)
        for text, names in _expressions(column, after):
            moments = tuple(name for name in (TRANSACTION, STATEMENT, CLOCK) if f"${name})" in text)
            nulls = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for name, type_ in names) or "1"
            sql = f"SELECT {text} FROM (SELECT {nulls}) WHERE false"  # noqa: S608 - columns are named by id
            (found,) = duck.rows(DuckQuery(sql, {}, {}, moments)).types
            check_assignable(column, found)


def _expressions(column: Column, table: Table) -> Iterator[tuple[str, Sequence[tuple[str, str]]]]:
    """The DuckDB text of each expression, with the names and types of its columns."""
    if is_drawn(column):
        drawn = read_drawn(drawn_text(column))
        yield drawn.text, [(f'"s{i}"', "BIGINT") for i in range(len(drawn.sequences))]
    for expression in (column.conversion, column.generated):
        if expression is None:
            continue
        used = [table.column_by_id[c] for c in expression.columns]
        yield expression.text, [(column_reference(c.id), c.type.duckdb) for c in used]


def evaluate_stable(statement: DdlStatement, port: TransactionPort) -> dict[str, str | None]:
    """The values, by their text, of stable defaults of added columns: they are the same for all rows."""
    found: dict[str, str | None] = {}
    for action in statement.actions if isinstance(statement, AlterTable) else ():
        match action:
            case AddColumn(column=definition):
                default, type_ = definition.default, definition.type
            case _:
                continue
        if not isinstance(default, ExpressionDefinition) or not isinstance(type_, SqlType):
            continue
        if default.volatility is not Volatility.VOLATILE:
            # As the planner binds it.
            text = without_types("".join(default.pieces))
            (value,) = port.sequences.defaults(Column(ColumnId(0), definition.name, type_, default=text), 1)
            found[text] = format_canonical(type_, value)
    return found


def verify_checks(before: Table | None, after: Table, duck: DuckSession) -> None:
    """Has DuckDB bind the CHECK constraints that a change adds: functions and operators must exist for the columns'
    types, and the result must be a boolean. The same for DOWN of columns that go."""
    _verify_downs(before, after, duck)
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


def _verify_downs(before: Table | None, after: Table, duck: DuckSession) -> None:
    known = before.retired_by_id if before is not None else {}
    for retired in after.retired:
        down = retired.down
        if down is None or retired.column.id in known or not all(c in after.column_by_id for c in down.columns):
            continue
        refuse_local_times(down, after, duck, DOWN, retired.column.type)
        used = [after.column_by_id[c] for c in down.columns]
        nulls = ", ".join(f"CAST(NULL AS {c.type.duckdb}) AS {column_reference(c.id)}" for c in used) or "1"
        sql = f"SELECT {down.text} FROM (SELECT {nulls}) WHERE false"  # noqa: S608 - columns are named by id
        (found,) = duck.rows(DuckQuery(sql, {}, {})).types
        check_assignable(retired.column, found)


def resolve_index_types(before: Table | None, after: Table, duck: DuckSession) -> Table:
    """The new version of a table, with the types of its new virtual columns."""
    known = {column.id for column in before.columns} if before is not None else set()
    if before is not None:
        _refuse_retyping(before, after)
    columns = tuple(_resolved(c, after, duck) if c.virtual and c.id not in known else c for c in after.columns)
    for index in after.secondary:
        if index.where is None or (before is not None and index.id in before.index_by_id):
            continue
        found = _type_of(index.where, after, duck, PREDICATE)
        if found != "BOOLEAN":
            raise errors.DatatypeMismatch(detail=f"argument of WHERE must be type boolean, not type {found.lower()}")
    return after if columns == after.columns else replace(after, columns=columns)


def _refuse_retyping(before: Table, after: Table) -> None:
    """Rejects a change of a column's type that would change the values which an index has computed from the column."""
    for index in after.secondary:
        if index.id not in before.index_by_id:
            continue
        computed = [index.where, *(after.column_by_id[c].generated for c in index.key)]
        for column_id in [c for expression in computed if expression is not None for c in expression.columns]:
            if before.column_by_id[column_id].type != after.column_by_id[column_id].type:
                name = after.column_by_id[column_id].name
                raise errors.FeatureNotSupported(
                    feature=f"changing the type of column {name}, which index {index.name} computes with,",
                    instead="Drop the index first.",
                )


def _resolved(column: Column, table: Table, duck: DuckSession) -> Column:
    assert column.generated is not None
    found = _type_of(column.generated, table, duck, INDEX)
    type_ = from_duckdb(found)
    if type_ is None or not type_.is_key:
        raise errors.FeatureNotSupported(
            feature=f"an index on an expression of type {found.lower()}", instead="Add a cast."
        )
    return replace(column, type=type_)


def _type_of(expression: Expression, table: Table, duck: DuckSession, use: Use) -> str:
    refuse_local_times(expression, table, duck, use)
    used = [table.column_by_id[c] for c in expression.columns]
    nulls = ", ".join(f"CAST(NULL AS {c.type.duckdb}) AS {column_reference(c.id)}" for c in used) or "1"
    sql = f"SELECT {expression.text} FROM (SELECT {nulls}) WHERE false"  # noqa: S608 - columns are named by id
    (found,) = duck.rows(DuckQuery(sql, {}, {})).types
    return found
