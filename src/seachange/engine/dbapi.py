"""The type objects and constructors that PEP 249 requires of a module.

>>> NUMBER == 23, STRING == 23
(True, False)
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from seachange.values.types import NAMES, Category, Kind


@dataclass(frozen=True, slots=True, eq=False)
class TypeGroup:
    """Equals the type codes of `Cursor.description` that it represents."""

    name: str
    oids: frozenset[int]

    def __eq__(self, other: object) -> bool:
        return other in self.oids if isinstance(other, int) else self is other

    # It equals several numbers with different hashes.
    __hash__ = None  # type: ignore[assignment]


def _group(name: str, *categories: Category) -> TypeGroup:
    kinds = [kind for kind in NAMES if NAMES[kind].category in categories and kind is not Kind.OID]
    return TypeGroup(name, frozenset(NAMES[kind].oid for kind in kinds))


STRING = _group("STRING", Category.STRING)
NUMBER = _group("NUMBER", Category.NUMBER)
DATETIME = _group("DATETIME", Category.MOMENT, Category.SPAN)
BINARY = TypeGroup("BINARY", frozenset({NAMES[Kind.BYTEA].oid}))
ROWID = TypeGroup("ROWID", frozenset({NAMES[Kind.OID].oid}))

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:  # noqa: N802 - the name is PEP 249's
    """From seconds since 1970, in the machine's time zone."""
    return TimestampFromTicks(ticks).date()


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802 - the name is PEP 249's
    return TimestampFromTicks(ticks).time()


def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802 - the name is PEP 249's
    return dt.datetime.fromtimestamp(ticks)
