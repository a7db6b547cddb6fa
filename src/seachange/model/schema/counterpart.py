"""What the value of a column that has gone is in the rows that there are."""

from __future__ import annotations

import re
from typing import Final

from seachange.model.ids import ColumnId
from seachange.model.schema.constraint import column_reference
from seachange.model.schema.descriptor import Column, RetiredColumn, Table
from seachange.model.schema.expression import Expression
from seachange.values.types import INTEGERS, Kind

# A cast from one of these to another says what a value is there and, by the reverse cast, here. Those of times depend
# on the time zone of a session.
_CAST_BACK: Final = INTEGERS | {
    Kind.NUMERIC,
    Kind.REAL,
    Kind.DOUBLE,
    Kind.BOOLEAN,
    Kind.DATE,
    Kind.UUID,
    Kind.TEXT,
    Kind.VARCHAR,
}
_OPENING: Final = re.compile(r"(?:CAST|SEACHANGE_TEXT|TRY_CAST)?\(")
_CLOSING: Final = re.compile(r"(?: AS [A-Z_ ]+(?:\([0-9, ]+\))?)?\)")


def down_of(retired: RetiredColumn, now: Table) -> Expression | None:
    """What was said by DOWN; else the expression that generated it, or the reverse of a plain cast."""
    if retired.down is not None:
        return retired.down
    column = retired.column
    if column.generated is not None:
        return column.generated
    for other in (*now.columns, *(each.column for each in now.retired)):
        up = other.from_earlier
        if up is not None and up.columns == (column.id,) and is_plain_cast(up.text, column.id):
            return _cast_back(column, other)
    return None


def is_plain_cast(text: str, column_id: ColumnId) -> bool:
    """
    >>> is_plain_cast('(CAST("c3" AS INTEGER))', 3), is_plain_cast('SEACHANGE_TEXT(CAST("c3" AS DECIMAL(9, 2)))', 3)
    (True, True)
    >>> is_plain_cast('"c3" + 1', 3), is_plain_cast('CAST("c3" + 1 AS INTEGER)', 3)
    (False, False)
    """
    before, reference, after = text.partition(column_reference(column_id))
    return bool(reference) and not _OPENING.sub("", before) and not _CLOSING.sub("", after)


def _cast_back(old: Column, new: Column) -> Expression | None:
    if not {old.type.kind, new.type.kind} <= _CAST_BACK or old.type.enum or new.type.enum:
        return None
    return Expression(f"(CAST({column_reference(new.id)} AS {old.type.duckdb}))", (new.id,))
