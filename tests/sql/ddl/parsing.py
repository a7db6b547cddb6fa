"""What the tests of one statement family share: names, types, and the value that a text stands for."""

import pytest

from seachange.errors import Error
from seachange.model.relation import RelationName
from seachange.model.statements.table_statements import AlterTable, ExpressionDefinition, Volatility
from seachange.sql.parsing.parse import parse_script
from seachange.values.types import BIGINT, TEXT, Kind, SqlType

SMALLINT = SqlType(Kind.SMALLINT)
INTEGER = SqlType(Kind.INTEGER)
TIMESTAMPTZ = SqlType(Kind.TIMESTAMPTZ)
T = RelationName(None, "t")
U = RelationName(None, "u")
ST = RelationName("s", "t")
NOW = ExpressionDefinition(("(NOW())",), volatility=Volatility.STABLE)

__all__ = ["BIGINT", "INTEGER", "NOW", "SMALLINT", "ST", "TEXT", "TIMESTAMPTZ", "T", "U"]


def name(text):
    return RelationName(None, text)


def parse(text):
    (statement,) = parse_script(text)
    return statement


def altered(*actions, **fields):
    return AlterTable(T, actions, **fields)


def code(text):
    """The SQLSTATE with which a text is refused."""
    with pytest.raises(Error) as caught:
        parse_script(text)
    return caught.value.sqlstate
