"""Processes that share one database: killed, stopped, confused about names and clocks, they lose and double nothing."""

import threading

import pytest

from tests.cluster.shared import KEYS, create_shared, judge_shared
from tests.support.nodes import HOUR_S, Place, open_ported_node
from tests.support.workers import Answer, Worker, Workers, wait_until

SEED = 7
EXPIRY_MS = 1_000
# A process that is stopped with SQLite's lock in its hands holds up all others: it is then let go again.
STOPPED_S_MAX = 5.0


def acks(answers: list[Answer]) -> set[int]:
    return {answer["ack"] for answer in answers if "ack" in answer}


def hear_all(worker: Worker) -> set[int]:
    answers = worker.hear_until("done", "error")
    assert "done" in answers[-1], answers[-1]
    return acks(answers)


def hear_some(worker: Worker, count: int) -> set[int]:
    answers: list[Answer] = []
    while len(acks(answers)) < count:
        answers += worker.hear_until("ack")
    return acks(answers)


def sleep_past_expiry(worker: Worker, epoch: int, place: Place) -> None:
    worker.stop()
    alarm = threading.Timer(STOPPED_S_MAX, worker.resume)
    alarm.start()
    node = open_ported_node(place, "bystander")
    try:

        def is_dead() -> bool:
            node.parts.catalog.expire_nodes()
            return all(record.epoch != epoch or not record.live for record in node.parts.catalog.nodes())

        wait_until(lambda: is_dead() or not alarm.is_alive(), "the sleeper to expire")
        node.collect_garbage(0)
    finally:
        alarm.cancel()
        worker.resume()
        node.close()


@pytest.mark.parametrize("operations", [40, pytest.param(1_000, marks=[pytest.mark.slow, pytest.mark.timeout(1_800)])])
def test_one_is_killed_and_one_sleeps(operations: int, place: Place, workers: Workers):
    create_shared(place)
    executor = [workers.take() for _ in range(4)]
    epochs = [
        worker.open(place, expiry_ms=EXPIRY_MS, name=f"worker {n}")["opened"] for n, worker in enumerate(executor)
    ]
    for number, worker in enumerate(executor):
        worker.send("mix", seed=SEED + number, worker=number, count=operations, keys=KEYS)
    killed, sleeper, *others = executor
    acknowledged = hear_some(sleeper, 5)
    sleep_past_expiry(sleeper, epochs[1], place)
    acknowledged |= hear_some(killed, 5)
    killed.kill()
    acknowledged |= acks(list(killed.hear_until_silent()))
    possible = {max(marker for marker in acknowledged if marker < 1_000_000) + 1}
    for worker in (sleeper, *others):
        acknowledged |= hear_all(worker)
    assert len(acknowledged) >= 3 * operations
    problems = judge_shared(place, acknowledged, possible)
    assert not problems, f"seed {SEED}"


def test_two_processes_with_one_name_are_two_nodes(place: Place, workers: Workers):
    create_shared(place)
    twins = [workers.take(), workers.take()]
    epochs = {worker.open(place, name="twin", expiry_ms=EXPIRY_MS)["opened"] for worker in twins}
    assert len(epochs) == 2
    for number, worker in enumerate(twins):
        worker.send("mix", seed=SEED + number, worker=number, count=20, keys=KEYS)
    acknowledged = hear_all(twins[0]) | hear_all(twins[1])
    # The end of one is not the end of the other.
    assert twins[0].ask("close") == {"closed": True}
    twins[1].send("mix", seed=SEED, worker=2, count=5, keys=KEYS)
    acknowledged |= hear_all(twins[1])
    assert not judge_shared(place, acknowledged, set())


def test_clocks_that_are_an_hour_off_cost_time_at_most(place: Place, workers: Workers):
    create_shared(place)
    executor = [workers.take() for _ in range(3)]
    for offset_s, worker in zip((HOUR_S, 0, -HOUR_S), executor, strict=True):
        worker.open(place, clock_offset_s=offset_s, expiry_ms=EXPIRY_MS)
    acknowledged: set[int] = set()
    for round_ in range(3):
        for number, worker in enumerate(executor):
            worker.send("mix", seed=SEED + round_, worker=10 * round_ + number, count=8, keys=KEYS)
        for worker in executor:
            acknowledged |= hear_all(worker)
        # A node whose clock is ahead considers the others dead and collects what it considers garbage.
        for worker in executor:
            worker.send("collect")
        for worker in executor:
            answer = worker.hear()
            assert "collected" in answer or answer.get("error") == "40001", answer
    assert not judge_shared(place, acknowledged, set())
