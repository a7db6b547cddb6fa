"""Assignment casts: which types may be assigned to a column without an explicit cast, by families of types.

A literal or parameter that stands alone has no type yet and takes the column's; it never comes here.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seachange import errors
from seachange.model.schema.descriptor import Column
from seachange.values.types import Kind, from_duckdb

_TEXTS = frozenset({Kind.TEXT, Kind.VARCHAR})
_NUMBERS = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.REAL, Kind.DOUBLE, Kind.NUMERIC, Kind.OID})
_MOMENTS = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})

# From which kinds a column takes values; a text takes all.
_TAKEN: dict[Kind, frozenset[Kind]] = {
    **dict.fromkeys(_NUMBERS, _NUMBERS),
    **dict.fromkeys(_MOMENTS, _MOMENTS),
    Kind.TIME: frozenset({Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ}),
    Kind.BOOLEAN: frozenset({Kind.BOOLEAN}),
    Kind.BYTEA: frozenset({Kind.BYTEA}),
    Kind.UUID: frozenset({Kind.UUID}),
    Kind.INET: frozenset({Kind.INET}),
    Kind.CIDR: frozenset({Kind.INET}),
    Kind.OID: frozenset({Kind.OID, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT}),
    Kind.INTERVAL: frozenset({Kind.INTERVAL, Kind.TIME}),
    # DuckDB has texts where PostgreSQL has json, and a result of || may be one.
    Kind.JSON: frozenset({Kind.JSON, Kind.JSONB, Kind.TEXT}),
    Kind.JSONB: frozenset({Kind.JSON, Kind.JSONB, Kind.TEXT}),
    Kind.ARRAY: frozenset({Kind.ARRAY}),
}


def check_assignments(columns: Sequence[Column], duck_types: Sequence[str]) -> None:
    """Columns with the types of what they are assigned."""
    for column, type_ in zip(columns, duck_types, strict=True):
        check_assignable(column, type_)


def check_assignable(column: Column, duck_type: str) -> None:
    """Of types that are none of ours DuckDB says whether it can convert them."""
    known = from_duckdb(duck_type)
    # What is computed from labels is a text: whether it is one, its value tells.
    taken = _TEXTS if column.type.enum and column.type.element is None else _TAKEN.get(column.type.kind)
    if known is not None and taken is not None and known.kind not in taken:
        raise errors.NotAssignable(column=column.name, type=column.type, given=known)


def untyped_positions(query: exp.Expr, width: int) -> frozenset[int]:
    """The places in a query's result at which stand literals or parameters that have no type of their own."""
    if not isinstance(query, exp.Select):
        return frozenset()
    places = [i for i, projection in enumerate(query.expressions) if projection.is_star]
    found = set()
    for i, projection in enumerate(query.expressions):
        if not places or i < places[0]:
            place = i
        elif i > places[-1]:
            place = i - len(query.expressions) + width
        else:
            continue
        if isinstance(projection.unalias().unnest(), exp.Literal | exp.Null | exp.Parameter):
            found.add(place)
    return frozenset(found)
