"""Vectorised exact division: the number of digits of each quotient is computed for all of them together.

**Invariant:** the results equal those of `values/quotients.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from seachange.values.quotients import DIGITS_MIN, GROUP
from seachange.values.types import NUMERIC_DEFAULT, NUMERIC_PRECISION_MAX

_GROUPS: Final = np.array([10 ** (GROUP * count) for count in range(5)], np.int64)
# The maximum that, multiplied by a thousand, fits in 64 bits.
_ALIGNED_MAX: Final = 2**63 // 1000
_LIMIT: Final = 10**NUMERIC_PRECISION_MAX

Numbers = npt.NDArray[np.int64]


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
