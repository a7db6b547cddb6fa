"""Counting the outcomes of transactions."""

from seachange.replay.tally import WriterTally


def test_violations_are_counted_apart_and_never_as_success():
    tally = WriterTally()
    tally.succeed(1_000, ["insert"])
    tally.fail("23505", "duplicate key", "insert")
    tally.fail("40001", "conflict", "COMMIT")
    tally.fail("42703", "no column", "update")
    assert (tally.done, dict(tally.refused), dict(tally.failed)) == (1, {"23505": 1}, {"40001": 1, "42703": 1})
    assert tally.examples_of(tally.refused) == ["23505: duplicate key -- insert"]


def test_tallies_of_processes_add_up():
    one, total = WriterTally(), WriterTally()
    one.succeed(5_000, ["insert", "update"])
    one.fail("40001", "conflict", "COMMIT")
    for _ in range(2):
        total.add(WriterTally.from_json(one.to_json()))
    assert (total.done, total.failed["40001"], total.actions["update"], len(total.examples)) == (2, 2, 2, 2)


def test_percentiles_are_those_of_the_recorded_times():
    tally = WriterTally()
    assert tally.percentile_ms(99) == 0
    for time_us in range(1, 101):
        tally.succeed(time_us * 1_000, [])
    assert (tally.percentile_ms(50), tally.percentile_ms(99), tally.percentile_ms(100)) == (51, 100, 100)
