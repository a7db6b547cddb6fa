"""A transaction block around a schema change ends at a fault point that it passes: its process is killed, its client is
gone, or the catalog is. Its rows and changes are there together or not at all, and the next change of the table goes on
at once.

Without --exhaustive: each point once, on one of the catalogs, for few changes."""

import signal
import socket
from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from seachange.runtime.faults import FAULTS, POINTS
from tests.cluster.sqlprocess import SqlProcess
from tests.crash.block_runs import (
    EXPIRY_MS,
    Ending,
    Fault,
    Trace,
    judge_block,
    judge_node,
    run_until_killed,
    statements,
    trace,
)
from tests.crash.killing import Tally
from tests.schemachange.case import Case
from tests.schemachange.cases import CASES
from tests.schemachange.world import Worlds
from tests.support.databases import CATALOGS, MakePlace
from tests.support.postgres import LocalPostgres
from tests.support.serving import serving

TraceOf = Callable[[Case, Ending], Trace]
CASE = {case.name: case for case in CASES}
# Each of the points that it is about; the rest is the same as for an index.
SAMPLE = {
    ("create index", Ending.COMMIT): ("",),
    ("add check that a row breaks", Ending.COMMIT): ("job.",),
    ("add check", Ending.ROLLBACK): ("block.", "job.validated"),
}
# What COMMIT alone publishes passes few points: all of it is one test.
GROUPS = {
    **{case.name: (case,) for case in CASES if not case.at_once},
    "at once": tuple(case for case in CASES if case.at_once),
}
# A job that COMMIT publishes has nothing left to do; a worker takes no job of a block.
ELSEWHERE = {"job.taken"}


@pytest.fixture(scope="session")
def known_traces() -> dict[tuple[str, str, Ending], Trace]:
    return {}


@pytest.fixture
def worlds(place_for: MakePlace) -> Worlds:
    return Worlds(place_for)


@pytest.fixture
def trace_of(known_traces: dict[tuple[str, str, Ending], Trace], catalog_kind: str, worlds: Worlds) -> TraceOf:
    def find(case: Case, ending: Ending) -> Trace:
        key = (catalog_kind, case.name, ending)
        if key not in known_traces:
            known_traces[key] = trace(worlds.make(case), case, ending)
        return known_traces[key]

    return find


@pytest.mark.parametrize("catalog_kind", CATALOGS[:1])
def test_blocks_pass_every_fault_point_of_blocks_and_jobs(trace_of: TraceOf):
    passed = {point for name, ending in SAMPLE for point in trace_of(CASE[name], ending).passages}
    wanted = {point for point in POINTS if point.startswith(("block.", "job."))}
    assert wanted - passed == ELSEWHERE


@pytest.mark.parametrize(("name", "ending"), SAMPLE)
def test_killed_at_each_point(
    name: str, ending: Ending, catalog_kind: str, worlds: Worlds, trace_of: TraceOf, tally: Tally
):
    found = trace_of(CASE[name], ending)
    # Each on one of the catalogs: the first passage on the one, the last on the other.
    is_first = catalog_kind == CATALOGS[0]
    points = [p for p in list(POINTS)[is_first::2] if p in found.passages and p.startswith(SAMPLE[name, ending])]
    faults = [Fault(point, 1 if is_first else found.passages[point]) for point in points]
    problems = [p for f in faults for p in kill(CASE[name], ending, f, catalog_kind, worlds, found, tally)]
    assert not problems, "\n".join(problems)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("group", GROUPS)
def test_killed_at_every_passage(group: str, catalog_kind: str, worlds: Worlds, trace_of: TraceOf, tally: Tally):
    problems = []
    for case in GROUPS[group]:
        for ending in Ending:
            found = trace_of(case, ending)
            for fault in found.faults if ending is Ending.COMMIT else found.last_faults:
                problems += kill(case, ending, fault, catalog_kind, worlds, found, tally)
    assert not problems, "\n".join(problems)


def kill(case: Case, ending: Ending, fault: Fault, kind: str, worlds: Worlds, found: Trace, tally: Tally) -> list[str]:
    place = worlds.make(case)
    run_until_killed(place, case, ending, fault)
    tally.kills.append((kind, fault.point))
    problems = judge_block(place, case, ending, found, found.expected(fault))
    tally.violations += len(problems)
    worlds.forget(place)
    return [f"{case}, {ending}, killed at {fault}: {problem}" for problem in problems]


# The catalog goes, and comes back.


@pytest.mark.parametrize("catalog_kind", ["postgresql"])
@pytest.mark.parametrize("point", ["job.raised", "block.built", "commit.locked"])
def test_catalog_is_killed(point: str, worlds: Worlds, trace_of: TraceOf, postgres_server: LocalPostgres):
    case = CASE["create index"]
    found = trace_of(case, Ending.COMMIT)
    fault = Fault(point, found.passages[point])
    assert not kill_catalog(case, fault, worlds, found, postgres_server)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("catalog_kind", ["postgresql"])
@pytest.mark.parametrize("group", GROUPS)
def test_catalog_is_killed_at_every_passage(
    group: str, worlds: Worlds, trace_of: TraceOf, postgres_server: LocalPostgres
):
    problems = []
    for case in GROUPS[group]:
        found = trace_of(case, Ending.COMMIT)
        for fault in found.faults:
            problems += kill_catalog(case, fault, worlds, found, postgres_server)
    assert not problems, "\n".join(problems)


def kill_catalog(case: Case, fault: Fault, worlds: Worlds, found: Trace, server: LocalPostgres) -> list[str]:
    place = worlds.make(case)
    with SqlProcess(place, EXPIRY_MS) as process:
        process.arm(f"{fault}:stop")
        texts = statements(case, Ending.COMMIT)
        for sql in texts:
            process.send(sql)
        process.wait_stopped()
        server.kill()
        server.start()
        process.signal(signal.SIGCONT)
        answers = [process.hear() for _ in texts]
        failed = [answer for answer in answers if isinstance(answer, str)]
        is_done = not failed or tuple(failed) == found.sqlstates
        # An error of COMMIT alone says nothing.
        possible = [found.after] if is_done else [found.before, *([found.after] if answers[-1:] == failed else [])]
        problems = judge_block(place, case, Ending.COMMIT, found, possible)
    worlds.forget(place)
    return [f"{case}, the catalog was killed at {fault}, {failed}: {problem}" for problem in problems]


# The client of a server goes.


@pytest.mark.parametrize("catalog_kind", CATALOGS[:1])
@pytest.mark.parametrize("name", ["create index"])
def test_client_is_gone(name: str, worlds: Worlds, trace_of: TraceOf):
    found = trace_of(CASE[name], Ending.COMMIT)
    faults = [Fault(point, 1) for point in ("job.raised", "job.unit", "block.built", "block.committed")]
    problems = [p for fault in faults for p in lose_client(CASE[name], fault, worlds, found)]
    assert not problems, "\n".join(problems)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("catalog_kind", CATALOGS[:1])
@pytest.mark.parametrize("group", GROUPS)
def test_client_is_gone_at_every_passage(group: str, worlds: Worlds, trace_of: TraceOf):
    problems = []
    for case in GROUPS[group]:
        found = trace_of(case, Ending.COMMIT)
        for fault in found.faults:
            problems += lose_client(case, fault, worlds, found)
    assert not problems, "\n".join(problems)


def lose_client(case: Case, fault: Fault, worlds: Worlds, found: Trace) -> list[str]:
    place = worlds.make(case)
    in_commit = False
    with serving(place.location) as served:
        with closing(psycopg.connect(served.url, autocommit=True)) as client:
            FAULTS.arm(fault.point, lambda: _cut(client), fault.occurrence)
            for sql in statements(case, Ending.COMMIT):
                in_commit = sql == "commit"
                try:
                    client.execute(sql)
                except psycopg.Error:
                    if client.broken:
                        break
            FAULTS.disarm()
            assert client.broken, f"{fault} was not reached"
        # A COMMIT that has arrived is carried out or not.
        possible = [found.before, found.after] if in_commit else [found.before]
        problems = judge_node(served.node, case, Ending.COMMIT, found, possible)
    worlds.forget(place)
    return [f"{case}, the client was gone at {fault}: {problem}" for problem in problems]


def _cut(client: psycopg.Connection) -> None:
    with socket.socket(fileno=client.fileno()) as connection:
        connection.shutdown(socket.SHUT_RDWR)
        connection.detach()
