"""SIGKILL at every fault point of a process whose segments are in an object store; another machine, without its cache,
finds what was acknowledged once, and what was not whole or not at all."""

from pathlib import Path

import pytest

pytest.importorskip("obstore", reason="obstore is not installed (make setup)")
pytest.importorskip("moto", reason="moto is not installed (make setup)")

from tests.crash.killing import SEED, Tally, judge_after, run_until_killed
from tests.crash.script import make_script
from tests.crash.test_kills import POINTS
from tests.support.nodes import Place
from tests.support.s3 import S3Server
from tests.support.workers import Workers

# Steps of a folder's own, and the first migration of a catalog.
OF_FOLDERS = {"segment.synced", "segment.renamed"}
REACHED = [point for point in POINTS if point not in OF_FOLDERS]


@pytest.fixture
def environment(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    found = s3_server.environment(s3_server.port)
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    return found


@pytest.fixture
def machine(environment: dict[str, str], s3_server: S3Server, tmp_path: Path) -> Place:
    return Place(_folder(tmp_path / "one"), f"sqlite:///{tmp_path}/catalog.sqlite", f"{s3_server.create_place()}/shop")


def _folder(path: Path) -> Path:
    path.mkdir(mode=0o700)
    return path


def test_the_script_passes_every_fault_point(machine: Place, environment: dict[str, str], workers: Workers):
    worker = workers.take()
    worker.open(machine, counts=True, environment=environment)
    worker.send("run", seed=SEED, first=0, last=len(make_script(SEED)))
    assert "done" in worker.hear_until("done", "error")[-1]
    passed = worker.ask("count")["counts"]
    assert {point for point in POINTS if not passed.get(point)} == OF_FOLDERS


@pytest.mark.one_in(4)
@pytest.mark.parametrize("occurrence", [1, 3])
@pytest.mark.parametrize("point", REACHED)
def test_killed_over_an_object_store(
    point: str,
    occurrence: int,
    machine: Place,
    environment: dict[str, str],
    workers: Workers,
    tally: Tally,
    tmp_path: Path,
):
    if occurrence > 1 and point.startswith("migration."):
        pytest.skip(f"{point} is passed by the migrations of a catalog, all at its creation")
    fault = f"{point}:{occurrence}"
    acknowledged = run_until_killed(workers, machine, fault, SEED, environment=environment)
    tally.kills.append(("sqlite", point))
    other = Place(_folder(tmp_path / "other"), machine.catalog, machine.store)
    problems = judge_after(other, SEED, acknowledged, thorough=True)
    tally.violations += len(problems)
    assert not problems, f"after {acknowledged} steps, killed at {fault}"
