"""Errors of values that a type does not accept, as PostgreSQL raises them."""

from __future__ import annotations

from seachange import errors
from seachange.values.types import SqlType


def invalid(type_: SqlType, value: object) -> errors.Error:
    return errors.InvalidTextRepresentation(type=type_, value=value)


def out_of_range(type_: SqlType, value: object) -> errors.Error:
    return errors.NumericValueOutOfRange(type=type_, value=value)


def mismatch(type_: SqlType, value: object) -> errors.Error:
    name = type(value).__name__
    return errors.DatatypeMismatch(detail=f"a value of Python type {name} cannot be stored as {type_}")
