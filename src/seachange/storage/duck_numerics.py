"""Calculations with numerics that DuckDB would do in floating point: vectorised functions, one for each combination of
operand scales, which are part of the name.

**Invariant:** an operand with more decimal digits than its function accepts is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Final

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from duckdb.func import PythonUDFType

from seachange.values.quotients import DIGITS_MIN, GROUP, divide, multiply, spread
from seachange.values.types import NUMERIC_DEFAULT, NUMERIC_PRECISION_MAX

# The prefix of a text that is not a number but an error message.
COMPLAINT: Final = "no number: "
SCALE_PHRASE: Final = "an operand has more digits behind its point than were expected"
# The prefix of these functions and of those that only they call.
_CALL: Final = "seachange_"
_NAME: Final = re.compile(_CALL + r"numeric_([a-z]+)((?:_[0-9]+)+)")
_VECTOR_NAME: Final = re.compile(_CALL + r"vector_([a-z]+)((?:_[0-9]+)+)")
# Aggregates that are computed from others. DuckDB's own aggregate is passed first, and not computed.
_GATHERED: Final = frozenset({"average", "variance", "deviation", "wholevariance", "wholedeviation"})
# Only converts to another scale.
_COMMON: Final = "common"
# NULL for a single value.
_OF_SAMPLES: Final = frozenset({"variance", "deviation"})
_WIDTH: Final = 16
_CALCULATIONS: Final[dict[str, Callable[..., int]]] = {
    "quotient": divide,
    "product": multiply,
    "average": divide,
    "variance": partial(spread, 1, False),
    "deviation": partial(spread, 1, True),
    "wholevariance": partial(spread, 0, False),
    "wholedeviation": partial(spread, 0, True),
}
_GROUPS: Final = np.array([10 ** (GROUP * count) for count in range(5)], np.int64)
# The maximum that, multiplied by a thousand, fits in 64 bits.
_ALIGNED_MAX: Final = 2**63 // 1000
_LIMIT: Final = 10**NUMERIC_PRECISION_MAX

Numbers = npt.NDArray[np.int64]


def numeric_name(calculation: str, *scales: int) -> str:
    """The function of numerics with these scales, the last of which is that of the result."""
    return f"{_CALL}numeric_{calculation}_{'_'.join(map(str, scales))}"


def macro_definition(name: str) -> str | None:
    """The definition of such a name; None for other names."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    if match[1] == _COMMON:
        return f"(x) AS CAST(x AS DECIMAL({NUMERIC_PRECISION_MAX},{_scales(match)[0]}))"
    scales = _scales(match)[:-1]
    parameters = [f"x{place}" for place in range(len(scales))]
    operands = [_operand(*each) for each in zip(parameters, scales, strict=True)]
    if match[1] in _OF_SAMPLES:
        operands[0] = f"nullif({operands[0]}, 1)"
    if match[1] in _GATHERED:
        parameters = ["x", *parameters]
    return f"({', '.join(parameters)}) AS {_CALL}vector_{match[1]}{match[2]}({', '.join(operands)})"


def _scales(match: re.Match[str]) -> list[int]:
    return [int(scale) for scale in match[2].split("_")[1:]]


def _operand(name: str, behind: int) -> str:
    """DuckDB would round silently. The type of an operand is a constant for it, so this costs nothing at run time."""
    found = f"CAST(coalesce(nullif(regexp_extract(typeof({name}), ',([0-9]+)', 1), ''), '0') AS INTEGER)"
    type_ = f"DECIMAL({NUMERIC_PRECISION_MAX},{behind})"
    return f"CASE WHEN {found} <= {behind} THEN CAST({name} AS {type_}) ELSE {complaint(SCALE_PHRASE, type_)} END"


def complaint(phrase: str, type_: str) -> str:
    """An expression that fails with this message when it is evaluated. DuckDB's `error` is volatile: a correlated
    subquery with it would be evaluated for every pair of rows."""
    return f"CAST('{COMPLAINT}{phrase}' AS {type_})"


def is_vector_function(name: str) -> bool:
    return _VECTOR_NAME.fullmatch(name) is not None


def make_vector_function(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    match = _VECTOR_NAME.fullmatch(name)
    assert match is not None
    *given, result = [f"DECIMAL({NUMERIC_PRECISION_MAX},{behind})" for behind in _scales(match)]
    connection.create_function(name, _vector_function(name), list(given), result, type=PythonUDFType.ARROW)


# Cached for ever: DuckDB releases a function when the connection closes that registered it, but still calls it.
@cache
def _vector_function(name: str) -> Callable[..., pa.Array]:
    found = _VECTOR_NAME.fullmatch(name)
    assert found is not None
    scales = _scales(found)

    def calculate(*vectors: pa.Array) -> pa.Array:
        numbers = [_whole_numbers(vector) for vector in vectors]
        made = b"".join(value.to_bytes(_WIDTH, "little", signed=True) for value in _each(found[1], numbers, scales))
        type_ = pa.decimal128(NUMERIC_PRECISION_MAX, scales[-1])
        return pa.Array.from_buffers(type_, len(vectors[0]), [None, pa.py_buffer(made)])

    return _TAKING[len(scales) - 1](calculate)


def _each(calculation: str, numbers: Sequence[list[int]], scales: Sequence[int]) -> Iterable[int]:
    if calculation == "quotient":
        found = divide_all(numbers[0], numbers[1], *scales)
        if found is not None:
            return found
    one = _CALCULATIONS[calculation]
    return (one(*row, *scales) for row in zip(*numbers, strict=True))


# DuckDB asks a function how many arguments it has.
def _take_two(calculate: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
    return lambda x, y: calculate(x, y)  # noqa: PLW0108 - two


def _take_three(calculate: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
    return lambda x, y, z: calculate(x, y, z)  # noqa: PLW0108 - three


_TAKING: Final = {2: _take_two, 3: _take_three}


def _whole_numbers(vector: pa.Array) -> list[int]:
    """The unscaled integers; DuckDB passes no NULLs."""
    numbers: list[int] = []
    for chunk in vector.chunks if isinstance(vector, pa.ChunkedArray) else [vector]:
        halves = np.frombuffer(chunk.buffers()[1], np.int64)[2 * chunk.offset : 2 * (chunk.offset + len(chunk))]
        low, high = halves[0::2], halves[1::2]
        if np.array_equal(high, low >> 63):
            numbers += low.tolist()
        else:
            pairs = zip(high.tolist(), low.view(np.uint64).tolist(), strict=True)
            numbers += [(upper << 64) | lower for upper, lower in pairs]
    return numbers


# Vectorised exact division: the number of digits of each quotient is computed for all of them together.
#
# **Invariant:** the results equal those of `values/quotients.py`.
def divide_all(
    dividends: Sequence[int], divisors: Sequence[int], behind: int, divisor_behind: int, scale: int
) -> list[int] | None:
    """None if a number or quotient is out of the range handled here: then each row is divided by itself."""
    if not divisors:
        # All rows are NULL.
        return []
    if max(behind, divisor_behind) >= NUMERIC_DEFAULT[1] or 0 in divisors:
        return None
    if any(max(numbers) >= _ALIGNED_MAX or min(numbers) <= -_ALIGNED_MAX for numbers in (dividends, divisors)):
        return None
    first, weight = _first_groups(np.array(dividends, np.int64), behind)
    divisor_first, divisor_weight = _first_groups(np.array(divisors, np.int64), divisor_behind)
    weights = weight - divisor_weight - (first <= divisor_first)
    digits = np.clip(DIGITS_MIN - GROUP * weights, max(behind, divisor_behind), scale)
    found = [
        _divide(dividend * 10**shift, divisor) * 10**zeros
        for dividend, divisor, shift, zeros in zip(
            dividends, divisors, (digits - behind + divisor_behind).tolist(), (scale - digits).tolist(), strict=True
        )
    ]
    return found if max(found) < _LIMIT and min(found) > -_LIMIT else None


def _first_groups(whole: Numbers, behind: int) -> tuple[Numbers, Numbers]:
    aligned = np.abs(whole) * 10 ** (-behind % GROUP)
    place = np.maximum(np.searchsorted(_GROUPS, aligned, "right") - 1, 0)
    return aligned // _GROUPS[place], place + -behind // GROUP


def _divide(dividend: int, divisor: int) -> int:
    """Rounds halves away from zero."""
    if divisor < 0:
        dividend, divisor = -dividend, -divisor
    if dividend < 0:
        return -((divisor - 2 * dividend) // (2 * divisor))
    return (2 * dividend + divisor) // (2 * divisor)
