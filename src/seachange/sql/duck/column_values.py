"""Arrow arrays in canonical form: values of a column's type, as rows store them.

**Invariant:** each value is what `values/coercion.py` would have made of it, or its error.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from seachange import errors
from seachange.storage.arrow import arrow_type
from seachange.values.coercion import check_characters, coercer
from seachange.values.types import Kind, SqlType

_ADDRESSES = frozenset({Kind.INET, Kind.CIDR})
# Kinds for which not every text is a value, or not in canonical form.
_NORMALISED = frozenset({Kind.CHAR, Kind.NAME, Kind.JSON, Kind.JSONB, Kind.INTERVAL})


def canonical_array(array: pa.Array, type_: SqlType) -> pa.Array:
    """`array` has the Arrow type of the column."""
    element = type_.element
    if type_.kind in _NORMALISED or (element is not None and (element.kind in _NORMALISED or element.length)):
        convert = coercer(type_)
        return pa.array([convert(value) for value in array.to_pylist()], arrow_type(type_))
    if type_.length:
        return _fitting(array, type_)
    return _rounded(array, type_) if type_.scale and type_.kind is not Kind.NUMERIC else array


def _fitting(array: pa.Array, type_: SqlType) -> pa.Array:
    """Texts of at most this many characters, not counting trailing spaces."""
    if (pc.max(pc.utf8_length(array)).as_py() or 0) <= type_.length:
        return array
    convert = coercer(type_)
    return pa.array([convert(value) for value in array.to_pylist()], array.type)


def _rounded(array: pa.Array, type_: SqlType) -> pa.Array:
    convert = coercer(type_)
    return pa.array([convert(value) for value in array.to_pylist()], array.type)


def convert_array(array: pa.Array, name: str, type_: SqlType) -> pa.Array:
    """Arrow data from a caller, for a column of that name."""
    wanted = arrow_type(type_)
    if (type_.element or type_).kind in _ADDRESSES:
        convert = coercer(type_)
        return pa.array([convert(value) for value in array.to_pylist()], wanted)
    if type_.kind is Kind.INTERVAL and not pa.types.is_string(array.type):
        return _intervals(array, name, type_)
    try:
        given = array if array.type == wanted else array.cast(wanted)
    except pa.ArrowInvalid as error:
        raise errors.QueryFailed(detail=f'column "{name}": {error}') from None
    except pa.ArrowNotImplementedError:
        raise errors.DatatypeMismatch(detail=f'column "{name}" cannot be converted from {array.type}') from None
    check_texts(given)
    return canonical_array(given, type_)


def check_texts(array: pa.Array) -> None:
    """Raises for text, or lists of it, that cannot be stored."""
    if pa.types.is_list(array.type):
        array = array.flatten()
    if pa.types.is_string(array.type) and pc.any(pc.match_substring(array, "\x00")).as_py():
        check_characters("\x00")


def _intervals(array: pa.Array, name: str, type_: SqlType) -> pa.Array:
    """From durations, or from months, days and nanoseconds."""
    convert = coercer(type_)
    if pa.types.is_duration(array.type):
        return pa.array([convert(value) for value in array.cast(pa.duration("us")).to_pylist()], arrow_type(type_))
    if pa.types.is_interval(array.type):
        texts = [None if v is None else _parts(v.months, v.days, v.nanoseconds) for v in array.to_pylist()]
        return pa.array([convert(text) for text in texts], arrow_type(type_))
    raise errors.DatatypeMismatch(detail=f'column "{name}" cannot be converted from {array.type}')


def _parts(months: int, days: int, nanoseconds: int) -> str:
    microseconds, rest = divmod(nanoseconds, 1000)
    if rest:
        raise errors.DatetimeFieldOverflow(type=SqlType(Kind.INTERVAL), value=f"{nanoseconds} nanoseconds")
    return f"{months} months {days} days {microseconds} microseconds"
