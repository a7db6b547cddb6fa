"""Quotients that are found together are those that are found one by one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.storage.duck_numerics import divide_all
from seachange.values.quotients import divide

NUMBERS = st.integers(-(10**15), 10**15) | st.integers(-100, 100) | st.sampled_from([10**n for n in range(15)])
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS.filter(bool)), min_size=1, max_size=20)


@settings(max_examples=30)
@given(PAIRS, st.integers(0, 9), st.integers(0, 9))
def test_vectorised_quotients_equal_single_ones(pairs: list[tuple[int, int]], behind: int, divisor_behind: int) -> None:
    dividends, divisors = zip(*pairs, strict=True)
    found = divide_all(dividends, divisors, behind, divisor_behind, 21)
    assert found is None or found == [divide(*pair, behind, divisor_behind, 21) for pair in pairs]


def test_common_quotients_are_vectorised() -> None:
    assert divide_all([100, -7], [3, 2], 2, 0, 21) == [333333333333333333330, -35000000000000000000]
    # Where all of a vector is NULL there is nothing to divide.
    assert divide_all([], [], 2, 0, 21) == []
    assert divide_all([1], [0], 0, 0, 21) is None
    assert divide_all([10**18], [1], 0, 0, 21) is None
