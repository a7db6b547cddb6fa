"""The checker finds each kind of anomaly in the smallest history that has it, and none in a good one."""

import pytest

from tests.isolation.history import Anomaly, Append, Operation, Read, Status, Transaction, find_anomalies


def committed(name: str, *operations: Operation) -> Transaction:
    return Transaction(name, Status.COMMITTED, operations)


def kinds(*history: Transaction) -> set[Anomaly]:
    return {finding.anomaly for finding in find_anomalies(history)}


GOOD = (
    committed("a", Append(1, 1), Read(1, (1,))),
    Transaction("b", Status.ABORTED, (Append(1, 2),)),
    committed("c", Read(1, (1,)), Append(2, 1), Append(2, 2), Read(2, (1, 2))),
    committed("end", Read(1, (1,)), Read(2, (1, 2))),
)

BROKEN: dict[Anomaly, tuple[Transaction, ...]] = {
    Anomaly.G0: (
        committed("a", Append(1, 1), Append(2, 1)),
        committed("b", Append(1, 2), Append(2, 2)),
        committed("end", Read(1, (1, 2)), Read(2, (2, 1))),
    ),
    Anomaly.G1A: (Transaction("a", Status.ABORTED, (Append(1, 1),)), committed("b", Read(1, (1,)))),
    Anomaly.G1B: (
        committed("a", Append(1, 1), Append(1, 2)),
        committed("b", Read(1, (1,))),
        committed("end", Read(1, (1, 2))),
    ),
    Anomaly.G1C: (
        committed("a", Append(1, 1), Read(2, (1,))),
        committed("b", Append(2, 1), Read(1, (1,))),
    ),
    Anomaly.G_SINGLE: (
        committed("a", Append(1, 1), Append(2, 1)),
        committed("b", Read(1, ()), Read(2, (1,))),
        committed("end", Read(1, (1,)), Read(2, (1,))),
    ),
    Anomaly.G2: (
        committed("a", Read(1, ()), Append(2, 1)),
        committed("b", Read(2, ()), Append(1, 1)),
        committed("end", Read(1, (1,)), Read(2, (1,))),
    ),
    Anomaly.INTERNAL: (committed("a", Append(1, 1), Read(1, ())), committed("end", Read(1, (1,)))),
    Anomaly.ORDER: (
        committed("a", Append(1, 1)),
        committed("b", Append(1, 2)),
        committed("c", Read(1, (2,))),
        committed("end", Read(1, (1, 2))),
    ),
    Anomaly.LOST: (committed("a", Append(1, 1)), committed("end", Read(1, ()))),
}


def test_a_good_history_shows_nothing() -> None:
    assert kinds(*GOOD) == set()


@pytest.mark.parametrize("anomaly", BROKEN)
def test_a_planted_anomaly_is_found(anomaly: Anomaly) -> None:
    assert anomaly in kinds(*BROKEN[anomaly])


def test_every_anomaly_is_planted() -> None:
    assert set(BROKEN) == set(Anomaly)
