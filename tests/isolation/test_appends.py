"""List-append histories of several processes over one database show no anomaly that their level rules out."""

import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from seachange.engine.opening import open_node
from seachange.engine.session import Session
from tests.isolation.appender import CREATE, Orders, decode, read_all
from tests.isolation.history import RULED_OUT, Status, Transaction, find_anomalies
from tests.support.forks import Fork
from tests.support.nodes import Place

LEVELS = tuple(RULED_OUT)
SEED = 20_260
PROCESSES = 3


def run(orders: Orders, processes: int = PROCESSES) -> list[Transaction]:
    """The history of `processes` appenders over a new table, with a last transaction that reads every list."""
    node = open_node(Path(orders.data), orders.catalog)
    session = Session(node)
    try:
        session.execute(CREATE)
        history = _run_processes([replace(orders, name=str(n + 1)) for n in range(processes)])
        return [*history, read_all(session, orders.keys)]
    finally:
        session.close()
        node.close()


def _run_processes(orders: list[Orders]) -> list[Transaction]:
    with ExitStack() as stack:
        started = [stack.enter_context(_start(o)) for o in orders]
        for process in started:
            assert process.stdout.readline() == b"ready\n", process.stderr.read().decode(errors="replace")
        for process in started:
            process.stdin.write(b"go\n")
            process.stdin.flush()
        return [t for process in started for t in decode(process.stdout.read().decode())]


def _start(orders: Orders) -> Fork:
    return Fork("tests.isolation.appender", json.dumps(asdict(orders)))


def orders_for(place: Place, level: str, seed: int, transactions: int) -> Orders:
    return Orders(str(place.data), place.catalog, level, "", seed, 2, transactions, keys=5)


def check(orders: Orders, counts: Counter[str]) -> None:
    history = run(orders)
    found = [f for f in find_anomalies(history) if f.anomaly in RULED_OUT[orders.level]]
    committed = sum(t.status is Status.COMMITTED for t in history)
    print(f"seed {orders.seed}, {orders.level}: {len(history)} transactions, {committed} committed")
    counts["transactions checked"] += len(history)
    assert committed > 1
    assert not found, f"seed {orders.seed}"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("level", LEVELS)
def test_processes_show_no_anomaly_that_their_level_rules_out(place: Place, level: str, counts: Counter[str]) -> None:
    check(orders_for(place, level, SEED, 40), counts)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("level", LEVELS)
def test_more_histories(place: Place, level: str, seed: int, counts: Counter[str]) -> None:
    check(orders_for(place, level, seed, 300), counts)


@pytest.mark.timeout(120)
def test_an_engine_without_conflict_checks_is_caught(tmp_path: Path, counts: Counter[str]) -> None:
    level = "read committed"
    orders = Orders(str(tmp_path), None, level, "", SEED, 1, 60, keys=3, careless=True)
    history = run(orders, processes=2)
    counts["transactions checked"] += len(history)
    found = {f.anomaly for f in find_anomalies(history)} & RULED_OUT[level]
    print(f"seed {SEED}, without conflict checks, {level}: {sorted(found)}")
    assert found
