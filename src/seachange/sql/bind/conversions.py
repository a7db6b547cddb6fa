"""Conversions: which types are cast to which, and which values may be stored in a column of a type."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from seachange import errors
from seachange.sql.bind import postgres
from seachange.sql.bind.places import place_of, place_of_operator
from seachange.sql.bind.scope import BoundColumn
from seachange.sql.bind.types import UNKNOWN, BoundType, element_of

# A type as error messages show it.
ShowType = Callable[[BoundType | None], str]

_STRING = "S"
# By the letter of pg_cast: those that an assignment makes without being asked.
_ASSIGNED = frozenset({"i", "a"})


def check_cast(source: BoundType | None, target: BoundType | None, cast: exp.Expr, show: ShowType) -> None:
    if not _is_possible(source, target, explicit=True):
        raise errors.CannotCoerce(source=show(source), target=show(target)).at(place_of_operator(cast))


def check_stored(source: BoundType | None, column: BoundColumn, value: exp.Expr, show: ShowType) -> None:
    if not _is_possible(source, column.type, explicit=False):
        detail = f'column "{column.name}" is of type {show(column.type)} but expression is of type {show(source)}'
        raise errors.DatatypeMismatch(detail=detail).at(place_of(value))


def _is_possible(source: BoundType | None, target: BoundType | None, explicit: bool) -> bool:
    """Values are read from texts only if a cast says so, and written as texts where one is stored."""
    if source is None or target is None or UNKNOWN in (source, target) or source.name == target.name:
        return True
    if target.category == _STRING or (explicit and source.category == _STRING):
        return True
    if source.is_array and target.is_array:
        return _is_possible(element_of(source), element_of(target), explicit)
    if not (_is_known(source) and _is_known(target)):
        return True
    context = postgres.casts().get((source.name, target.name))
    return context is not None and (explicit or context in _ASSIGNED)


def _is_known(type_: BoundType) -> bool:
    """Not the pseudo-types, such as record, nor names of objects."""
    if type_.is_array or type_.is_enum:
        return True
    return type_.declared is not None and type_.name in postgres.types()
