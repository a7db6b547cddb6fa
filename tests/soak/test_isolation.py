"""The checker finds each anomaly in the smallest history that shows it, at the levels that forbid it alone."""

import pytest

from soak.checker.isolation import check_isolation
from soak.checker.model import Append, Level, Operation, Outcome, Read, Statement, Transaction
from soak.checker.shrink import shrink

RC, RR, SER = Level.READ_COMMITTED, Level.REPEATABLE_READ, Level.SERIALIZABLE
ALL = (RC, RR, SER)


def txn(
    name: str, level: Level, *operations: Operation | Statement, outcome: Outcome = Outcome.COMMITTED
) -> Transaction:
    statements = tuple(o if isinstance(o, Statement) else Statement((o,)) for o in operations)
    return Transaction(name, level, outcome, statements)


def timed(transaction: Transaction, began: int, *spans: tuple[int, int], commit: tuple[int, int]) -> Transaction:
    """With a span for each statement."""
    statements = tuple(Statement(s.operations, *span) for s, span in zip(transaction.statements, spans, strict=True))
    t = transaction
    return Transaction(t.name, t.level, t.outcome, statements, began, commit[0], commit[1])


def anomalies(*history: Transaction) -> set[str]:
    return {violation.anomaly for violation in check_isolation(history)}


def end(**lists: tuple[int, ...]) -> Transaction:
    """A last transaction that reads every list: k1=(1, 2)."""
    return txn("end", RR, *(Read(int(key[1:]), values) for key, values in lists.items()))


def good(level: Level) -> tuple[Transaction, ...]:
    return (
        txn("a", level, Append(1, 1), Read(1, (1,))),
        txn("b", level, Append(1, 2), outcome=Outcome.ABORTED),
        txn("c", level, Read(1, (1,)), Append(2, 1), Append(2, 2), Read(2, (1, 2))),
        txn("d", level, Append(2, 3), outcome=Outcome.UNKNOWN),
        txn("e", level, Append(2, 4), outcome=Outcome.UNKNOWN),
        end(k1=(1,), k2=(1, 2, 4)),
    )


def g0(level: Level) -> tuple[Transaction, ...]:
    return (
        txn("a", level, Append(1, 1), Append(2, 1)),
        txn("b", level, Append(1, 2), Append(2, 2)),
        txn("end", RC, Read(1, (1, 2)), Read(2, (2, 1))),
    )


def g1a(level: Level) -> tuple[Transaction, ...]:
    return (txn("a", level, Append(1, 1), outcome=Outcome.ABORTED), txn("b", level, Read(1, (1,))))


def g1b(level: Level) -> tuple[Transaction, ...]:
    return (txn("a", level, Append(1, 1), Append(1, 2)), txn("b", level, Read(1, (1,))), end(k1=(1, 2)))


def g1c(level: Level) -> tuple[Transaction, ...]:
    return (txn("a", level, Append(1, 1), Read(2, (1,))), txn("b", level, Append(2, 1), Read(1, (1,))))


def read_skew(level: Level) -> tuple[Transaction, ...]:
    return (
        txn("a", level, Append(1, 1), Append(2, 1)),
        txn("b", level, Read(1, ()), Read(2, (1,))),
        end(k1=(1,), k2=(1,)),
    )


def lost_update(level: Level) -> tuple[Transaction, ...]:
    return (txn("a", level, Append(1, 1)), txn("b", level, Read(1, ()), Append(1, 2)), end(k1=(1, 2)))


def write_skew(level: Level) -> tuple[Transaction, ...]:
    return (
        txn("a", level, Read(1, ()), Append(2, 1)),
        txn("b", level, Read(2, ()), Append(1, 1)),
        end(k1=(1,), k2=(1,)),
    )


def torn_statement(level: Level) -> tuple[Transaction, ...]:
    """One statement that saw half of a transaction."""
    return (
        txn("a", level, Append(1, 1), Append(2, 1)),
        txn("b", level, Statement((Read(1, ()), Read(2, (1,))))),
        end(k1=(1,), k2=(1,)),
    )


def going_back(level: Level) -> tuple[Transaction, ...]:
    """A second statement that saw less than the first."""
    return (
        txn("a", level, Append(1, 1), Append(2, 1)),
        txn("b", level, Read(1, (1,)), Read(2, ())),
        end(k1=(1,), k2=(1,)),
    )


def internal(level: Level) -> tuple[Transaction, ...]:
    return (txn("a", level, Append(1, 1), Read(1, ())), end(k1=(1,)))


def two_orders(level: Level) -> tuple[Transaction, ...]:
    return (
        txn("a", level, Append(1, 1)),
        txn("b", level, Append(1, 2)),
        txn("c", level, Read(1, (2,))),
        end(k1=(1, 2)),
    )


def twice(level: Level) -> tuple[Transaction, ...]:
    return (txn("a", level, Append(1, 1)), end(k1=(1, 1)))


def made_up(level: Level) -> tuple[Transaction, ...]:
    return (txn("a", level, Read(1, (7,))),)


# A history, the anomaly that it shows, and the levels that forbid it.
CASES = [
    (g0, "G0", ALL),
    (g1a, "G1a", ALL),
    (made_up, "G1a", ALL),
    (g1b, "G1b", ALL),
    (g1c, "G1c", ALL),
    (torn_statement, "G-single", ALL),
    (going_back, "G-single", ALL),
    (read_skew, "G-single", (RR, SER)),
    (lost_update, "G-single", (RR, SER)),
    (write_skew, "G2", (SER,)),
    (internal, "internal", ALL),
    (two_orders, "incompatible order", ALL),
    (twice, "duplicate append", ALL),
]


@pytest.mark.parametrize("level", ALL)
def test_clean_history_passes(level: Level):
    assert anomalies(*good(level)) == set()


@pytest.mark.parametrize("level", ALL)
@pytest.mark.parametrize(("make", "anomaly", "forbidden_at"), CASES, ids=[make.__name__ for make, *_ in CASES])
def test_anomaly_is_found_where_the_level_forbids_it(make, anomaly, forbidden_at, level):
    found = anomalies(*make(level))
    assert (anomaly in found) is (level in forbidden_at), found
    assert found or level not in forbidden_at


def test_levels_are_judged_each_by_its_own_rule():
    """A write skew of a serializable and a repeatable-read transaction: the serializable one may come first."""
    mixed = (write_skew(SER)[0], write_skew(RR)[1], end(k1=(1,), k2=(1,)))
    assert anomalies(*mixed) == set()


def test_acknowledged_append_that_is_missing_later_is_lost():
    writer = timed(txn("a", RC, Append(1, 1)), 1, (2, 3), commit=(4, 5))
    reader = timed(txn("b", RR, Read(1, ())), 7, (8, 9), commit=(10, 11))
    assert anomalies(writer, reader) == {"lost append"}
    early = timed(txn("b", RR, Read(1, ())), 3, (8, 9), commit=(10, 11))
    assert anomalies(writer, early) == set()


@pytest.mark.parametrize("level", ALL)
def test_statement_that_does_not_see_an_earlier_commit_is_stale(level: Level):
    writer = timed(txn("a", RC, Append(1, 1)), 10, (11, 12), commit=(13, 14))
    late = timed(txn("b", level, Read(2, ()), Read(1, ())), 1, (2, 3), (20, 21), commit=(22, 23))
    last = timed(txn("end", RR, Read(1, (1,))), 30, (31, 32), commit=(33, 34))
    # At READ COMMITTED the second statement has a snapshot of its own; else that is the first's, before the commit.
    assert anomalies(writer, late, last) == ({"G-single-realtime"} if level is RC else set())
    later = timed(txn("b", level, Read(1, ())), 15, (20, 21), commit=(22, 23))
    assert anomalies(writer, later, last) == {"G-single-realtime"}


@pytest.mark.parametrize("level", ALL)
def test_append_to_a_version_that_was_not_committed_yet_is_found(level: Level):
    """The statement had ended before the commit that it follows was sent: resumed at COMMIT, or at a later snapshot."""
    first = timed(txn("a", RC, Append(1, 1)), 1, (2, 3), commit=(20, 21))
    second = timed(txn("b", level, Append(1, 2)), 1, (4, 5), commit=(30, 31))
    last = timed(txn("end", RR, Read(1, (1, 2))), 40, (41, 42), commit=(43, 44))
    assert anomalies(first, second, last) == ({"G0-realtime"} if level is RR else set())
    # What it gave to its client it had read by then.
    told = Statement((Append(1, 2), Read(1, (1, 2))), 4, 5)
    second = timed(txn("b", level, told), 1, (4, 5), commit=(30, 31))
    assert bool(anomalies(first, second, last)) is (level is not SER)


@pytest.mark.parametrize("level", ALL)
def test_read_after_an_append_sees_what_the_append_has_waited_for(level: Level):
    """A list that programs append to first is a mutex, whether the block was resumed at COMMIT or not."""
    first = timed(txn("a", RC, Append(1, 1), Append(2, 1)), 1, (2, 3), (4, 5), commit=(20, 21))
    second = timed(txn("b", level, Append(1, 2), Read(2, ())), 1, (6, 7), (8, 9), commit=(30, 31))
    last = timed(txn("end", RR, Read(1, (1, 2)), Read(2, (1,))), 40, (41, 42), (43, 44), commit=(45, 46))
    assert "G-single" in {anomaly.removesuffix("-realtime") for anomaly in anomalies(first, second, last)}
    # What it read before that may be older.
    early = timed(txn("b", RC, Read(2, ()), Append(1, 2)), 1, (6, 7), (8, 9), commit=(30, 31))
    assert anomalies(first, early, last) == set()


@pytest.mark.parametrize("make", [g0, g1c, read_skew, write_skew], ids=lambda make: make.__name__)
def test_history_is_shrunk_to_what_shows_the_anomaly(make):
    history = make(SER)
    crowd = [txn(f"crowd{n}", SER, Append(9, n), Append(1, 100 + n)) for n in range(30)]
    lists = {"k9": tuple(range(30))}
    noise = txn("noise", RC, *(Read(int(key[1:]), values) for key, values in lists.items()))
    full = [*crowd[:15], *history, *crowd[15:], noise]
    violation = next(v for v in check_isolation(full) if v.transactions)
    small = shrink(full, violation)
    assert {t.name for t in small} <= {"a", "b", "end"}
    assert violation.anomaly in {v.anomaly for v in check_isolation(small)}
