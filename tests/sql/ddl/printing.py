"""Printing of values as text, the inverse of the parser, for tests: what all statements are made of."""

from functools import singledispatch

from seachange.model.relation import RelationName
from seachange.model.statements.object_statements import (
    OwnedBy,
    SequenceOptions,
)
from seachange.model.statements.table_statements import ConstantDefault, ExpressionDefinition, UserType
from seachange.values.types import SqlType


def join(*parts):
    return " ".join(part for part in parts if part)


def given(condition, text):
    return text if condition else ""


def ident(name):
    return '"' + name.replace('"', '""') + '"'


def string(text):
    return "'" + text.replace("'", "''") + "'"


def idents(names):
    return "(" + ", ".join(map(ident, names)) + ")"


def listed(values):
    return ", ".join(map(show, values))


def cascade(statement):
    return given(statement.cascade, "CASCADE")


def exists(statement):
    return given(statement.if_exists, "IF EXISTS")


@singledispatch
def show(value) -> str:
    raise AssertionError(value)


@show.register
def _(value: RelationName):
    return ident(value.name) if value.schema is None else f"{ident(value.schema)}.{ident(value.name)}"


@show.register
def _(value: SqlType):
    return str(value)


@show.register
def _(value: UserType):
    return show(value.name)


@show.register
def _(value: ConstantDefault):
    if value.text is None:
        return "NULL"
    return string(value.text) if value.quoted else value.text


@show.register
def _(value: ExpressionDefinition):
    """DuckDB's text of these expressions is PostgreSQL's too."""
    gaps = [*map(ident, value.columns), ""]
    return "".join(piece + gap for piece, gap in zip(value.pieces, gaps, strict=True))


@show.register
def _(value: SequenceOptions):
    return join(
        given(value.type is not None, f"AS {value.type}"),
        given(value.increment is not None, f"INCREMENT BY {value.increment}"),
        given(value.minimum is not None, f"MINVALUE {value.minimum}"),
        given(value.no_minimum, "NO MINVALUE"),
        given(value.maximum is not None, f"MAXVALUE {value.maximum}"),
        given(value.no_maximum, "NO MAXVALUE"),
        given(value.start is not None, f"START WITH {value.start}"),
        given(value.restart is not None, f"RESTART WITH {value.restart}"),
        given(value.restart_at_start, "RESTART"),
        given(value.cache is not None, f"CACHE {value.cache}"),
        given(value.cycle is not None, "CYCLE" if value.cycle else "NO CYCLE"),
    )


@show.register
def _(value: OwnedBy):
    return "OWNED BY " + ("NONE" if value.table is None else f"{show(value.table)}.{ident(value.column or '')}")
