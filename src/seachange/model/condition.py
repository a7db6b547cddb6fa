"""Conditions on a table's rows, from a statement's text: each is necessary for a row to be read, none need be
sufficient.

Values are converted to the columns' types and are never NULL, since no comparison with NULL is true. All but `IsNull`
reject rows without a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seachange.model.ids import ColumnId


@dataclass(frozen=True, slots=True)
class Among:
    """The column has one of these values."""

    column: ColumnId
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Above:
    """The column is greater than `value`, or equal to it where that is `inclusive`."""

    column: ColumnId
    value: Any
    inclusive: bool


@dataclass(frozen=True, slots=True)
class Below:
    column: ColumnId
    value: Any
    inclusive: bool


@dataclass(frozen=True, slots=True)
class StartsWith:
    """The text column starts with `value`."""

    column: ColumnId
    value: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column has no value."""

    column: ColumnId


@dataclass(frozen=True, slots=True)
class MeetsCondition:
    """The row meets a condition of any form: `text` is DuckDB text over columns named after their ids."""

    text: str
    # Not about a single column.
    column: ColumnId = ColumnId(0)  # noqa: RUF009 - a number


Condition = Among | Above | Below | StartsWith | IsNull | MeetsCondition
