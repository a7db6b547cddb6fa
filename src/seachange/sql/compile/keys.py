"""Statements by full primary key: finds the key that a WHERE clause names, without DuckDB.

**Invariant:** a key found here is exactly the one that DuckDB's comparison would find; a value that does not compare as
one of the column's own type is left to DuckDB.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlglot import exp

from seachange import errors
from seachange.model.schema.descriptor import Table
from seachange.sql.compile.target import DmlTarget, folded
from seachange.sql.duck.operands import Argument, DefaultValue, DrawnValue, Given, Operand, read_operand
from seachange.values.coercion import coercer
from seachange.values.network import ADDRESSES
from seachange.values.number_coercion import INTEGER_BITS
from seachange.values.types import Kind, SqlType

Row = tuple[Any, ...]


class NotByKey(Exception):
    """The value cannot be looked up by key: run the general plan."""


# No row has this key.
NOTHING: Final = object()

# Python types whose values compare with a column as values of its own type.
_EXACT: dict[Kind, tuple[type, ...]] = {
    Kind.BOOLEAN: (bool,),
    Kind.TEXT: (str,),
    Kind.VARCHAR: (str,),
    Kind.NAME: (str,),
    Kind.BYTEA: (bytes,),
    Kind.DATE: (dt.date,),
    Kind.TIME: (dt.time,),
    Kind.TIMESTAMP: (dt.datetime,),
    Kind.TIMESTAMPTZ: (dt.datetime,),
    Kind.UUID: (UUID,),
    Kind.DOUBLE: (float,),
    Kind.INET: ADDRESSES,
    Kind.CIDR: ADDRESSES,
}


def match_key(where: exp.Expr | None, table: Table, target: DmlTarget) -> tuple[Operand, ...] | None:
    """The operands of `key = operand AND ...`, in the order of the primary key; None for any other condition."""
    if not isinstance(where, exp.Where):
        return None
    names = [table.column_by_id[c].name for c in table.primary.key]
    found: dict[str, Operand] = {}
    for term in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
        matched = _match_term(term, target)
        if matched is None or matched[0] in found or matched[0] not in names:
            return None
        found[matched[0]] = matched[1]
    # In an earlier shape a column of the same name may have other values.
    if len(found) != len(names) or not all(table.column_by_id[c].is_shown for c in table.primary.key):
        return None
    return tuple(found[name] for name in names)


def _match_term(term: exp.Expr, target: DmlTarget) -> tuple[str, Operand] | None:
    if not isinstance(term, exp.EQ):
        return None
    for column, value in ((term.this, term.expression), (term.expression, term.this)):
        name = plain_column(column, target)
        operand = read_operand(value)
        if name is not None and isinstance(operand, Given | Argument):
            return name, operand
    return None


def plain_column(node: exp.Expr, target: DmlTarget) -> str | None:
    """The name of a column of the target, if the expression is nothing else."""
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        return None
    schema, qualifier = node.args.get("db"), node.args.get("table")
    if schema is not None and (target.alias != target.name or target.schema not in (None, folded(schema))):
        return None
    if qualifier is not None and folded(qualifier) != target.alias:
        return None
    return folded(node.this)


class KeyReader:
    """Reads the primary key from a statement's parameters."""

    __slots__ = ("_parts", "expected")

    def __init__(self, table: Table, operands: Sequence[Operand]) -> None:
        self._parts: list[tuple[int, Any, Callable[[Any], Any]]] = []
        for column_id, operand in zip(table.primary.key, operands, strict=True):
            convert = key_converter(table.column_by_id[column_id].type)
            match operand:
                case Argument(number):
                    self._parts.append((number - 1, None, convert))
                case Given(value):
                    self._parts.append((-1, value, convert))
                case DefaultValue() | DrawnValue():
                    raise errors.SyntaxProblem(detail="DEFAULT is not allowed in a condition")

    def read(self, values: Sequence[Any]) -> Row | None:
        """None if no row can have the key; NotByKey if the general plan must be used."""
        key = []
        for position, given, convert in self._parts:
            value = convert(values[position] if position >= 0 else given)
            if value is NOTHING:
                return None
            key.append(value)
        return tuple(key)


def key_converter(type_: SqlType) -> Callable[[Any], Any]:
    if type_.kind in INTEGER_BITS:
        return _integer_converter(type_)
    coerce = coercer(type_)
    exact = _EXACT.get(type_.kind, ())
    is_text = type_.kind in (Kind.TEXT, Kind.VARCHAR, Kind.NAME)
    if type_.kind is Kind.CHAR:
        return _convert_char

    def convert(value: Any) -> Any:
        if value is None:
            return NOTHING
        if type(value) is str:
            return value if is_text else coerce(value)
        if type(value) in exact and not _crosses_zones(type_, value):
            return coerce(value)
        if type_.kind is Kind.NUMERIC and type(value) in (int, Decimal):
            return _exact_numeric(coerce, value)
        raise NotByKey

    return convert


def _convert_char(value: Any) -> Any:
    """Trailing spaces are insignificant."""
    if value is None:
        return NOTHING
    if type(value) is not str:
        raise NotByKey
    return value.rstrip(" ")


def _crosses_zones(type_: SqlType, value: Any) -> bool:
    return isinstance(value, dt.datetime) and (value.tzinfo is None) is (type_.kind is Kind.TIMESTAMPTZ)


def _exact_numeric(coerce: Callable[[Any], Any], value: Any) -> Any:
    try:
        number = coerce(value)
    except errors.NumericValueOutOfRange:
        return NOTHING
    return number if number == value else NOTHING


def _integer_converter(type_: SqlType) -> Callable[[Any], Any]:
    limit = 1 << (INTEGER_BITS[type_.kind] - 1)
    coerce = coercer(type_)

    def convert(value: Any) -> Any:
        if type(value) is int:
            return value if -limit <= value < limit else NOTHING
        if value is None:
            return NOTHING
        if type(value) is str:
            return coerce(value)
        raise NotByKey

    return convert
