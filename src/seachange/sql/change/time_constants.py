"""Time functions in a change of a column's type: replaced by constants when the statement is run.

During the change every writer computes a row's new value, and again when the row is deleted; the results must be equal
on all nodes. So now() and the like have one value for all rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from seachange.model import statements
from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Column
from seachange.model.schema.enums import quote_text
from seachange.sql.bind.names import NOW
from seachange.sql.ddl.expression import VOLATILITIES
from seachange.sql.duck.default_text import replace_words
from seachange.sql.port.port import TransactionPort
from seachange.values.canonical import format_canonical
from seachange.values.types import Kind, SqlType

_TYPES: Final[dict[str, SqlType]] = {
    NOW: SqlType(Kind.TIMESTAMPTZ),
    "current_timestamp": SqlType(Kind.TIMESTAMPTZ),
    "transaction_timestamp": SqlType(Kind.TIMESTAMPTZ),
    "statement_timestamp": SqlType(Kind.TIMESTAMPTZ),
    "localtimestamp": SqlType(Kind.TIMESTAMP),
    "current_date": SqlType(Kind.DATE),
    "localtime": SqlType(Kind.TIME),
}


def resolve_time_functions(statement: statements.DdlStatement, port: TransactionPort) -> statements.DdlStatement:
    """The statement with time functions replaced by constants. Other stable functions remain."""
    if not isinstance(statement, statements.AlterTable) or not any(
        isinstance(a, statements.AlterColumnType) for a in statement.actions
    ):
        return statement
    return replace(statement, actions=tuple(_settle(action, port) for action in statement.actions))


def _settle(action: statements.AlterAction, port: TransactionPort) -> statements.AlterAction:
    match action:
        case statements.AlterColumnType(
            using=statements.ExpressionDefinition(volatility=statements.Volatility.STABLE) as using
        ):
            unknown: list[str] = []

            def tell(word: str) -> str | None:
                if word in _TYPES:
                    return _moment(word, port)
                if VOLATILITIES.get(word) is statements.Volatility.STABLE:
                    unknown.append(word)
                return None

            pieces = tuple(replace_words(piece, tell) for piece in using.pieces)
            if unknown:
                return action
            return replace(action, using=replace(using, pieces=pieces, volatility=statements.Volatility.IMMUTABLE))
        case _:
            return action


def _moment(word: str, port: TransactionPort) -> str:
    type_ = _TYPES[word]
    (value,) = port.sequences.defaults(Column(ColumnId(0), word, type_, default=f"({word})"), 1)
    return f"CAST({quote_text(str(format_canonical(type_, value)))} AS {type_.duckdb})"
