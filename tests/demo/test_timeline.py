"""What the demonstration makes of its samples."""

from hypothesis import given
from hypothesis import strategies as st

from demo.timeline import Sample, Timeline, quantile, sparkline

NUMBERS = st.lists(st.floats(0, 1e6), min_size=1)


@given(NUMBERS, st.integers(1, 100))
def test_a_quantile_is_the_least_value_that_enough_do_not_exceed(values: list[float], percent: int):
    found = quantile(values, percent)
    assert found in values
    assert 100 * sum(value <= found for value in values) >= percent * len(values)
    assert 100 * sum(value < found for value in values) < percent * len(values)


def test_a_second_in_which_nothing_was_done_is_seen():
    timeline = Timeline([Sample(10.0, 1.0, "transfer"), Sample(10.9, 3.0, "transfer"), Sample(12.1, 9.0, "transfer")])
    assert [(second.at, second.done, second.p99_ms) for second in timeline.seconds()] == [
        (10.0, 2, 3.0),
        (11.0, 0, 0.0),
        (12.0, 1, 9.0),
    ]


@given(NUMBERS, st.integers(1, 80))
def test_every_sample_is_in_one_second(moments: list[float], width: int):
    timeline = Timeline([Sample(at % 1_000, 1.0, "look_up") for at in moments])
    assert sum(second.done for second in timeline.seconds()) == len(moments)
    assert len(sparkline([float(second.done) for second in timeline.seconds()], width)) <= width


def test_failures_and_retries_are_counted_separately():
    failed, retried = Sample(1.0, 1.0, "open", 5, "40001: x"), Sample(1.0, 1.0, "close", 1)
    timeline = Timeline([failed, retried, Sample(1.0, 1.0, "transfer")])
    assert timeline.failed == [failed]
    assert timeline.retried == [retried]


def test_the_bars_of_a_sparkline_stand_between_nothing_and_the_greatest():
    assert sparkline([0, 4, 8], 3) == "▁▅█"
    assert sparkline([0, 0], 3) == "▁▁"
    assert sparkline([1, 2, 8], 1) == "█"
