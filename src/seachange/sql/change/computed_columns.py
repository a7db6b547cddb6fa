"""Type checks of expression defaults and generated columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seachange.model.ids import ColumnId
from seachange.model.schema.constraint import column_reference
from seachange.model.schema.descriptor import Column, Table
from seachange.model.statements import AddColumn, AlterTable, DdlStatement, ExpressionDefinition, Volatility
from seachange.sql.change.local_times import refuse_local_times
from seachange.sql.ddl.expression import GENERATED
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.sql.duck.default_text import drawn_text, is_drawn, read_drawn
from seachange.sql.port.port import TransactionPort
from seachange.sql.translate.assignment_casts import check_assignable
from seachange.sql.translate.time_functions import CLOCK, STATEMENT, TRANSACTION
from seachange.values.canonical import format_canonical
from seachange.values.types import SqlType


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
            text = "".join(default.pieces)
            (value,) = port.sequences.defaults(Column(ColumnId(0), definition.name, type_, default=text), 1)
            found[text] = format_canonical(type_, value)
    return found
