"""SIGKILL of a process whose segments are in an object store; another machine, without its cache, finds what was
acknowledged once, and what was not whole or not at all. `--s3` runs all crash and cluster tests over a store."""

from pathlib import Path

import pytest

pytest.importorskip("obstore", reason="obstore is not installed (make setup)")
pytest.importorskip("moto", reason="moto is not installed (make setup)")

from tests.crash.killing import SEED, Tally, judge_after, run_until_killed
from tests.crash.test_kills import OF_FOLDERS, POINTS
from tests.support.nodes import Place, put_in_store
from tests.support.s3 import S3Server
from tests.support.workers import Workers

REACHED = [point for point in POINTS if point not in OF_FOLDERS]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("point", REACHED)
def test_killed_over_an_object_store(
    point: str,
    s3_server: S3Server,
    workers: Workers,
    tally: Tally,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    url, environment = f"{s3_server.create_place()}/shop", s3_server.environment(s3_server.port)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    one, other = (Place(tmp_path / name, f"sqlite:///{tmp_path}/catalog.sqlite") for name in ("one", "other"))
    for place in (one, other):
        place.data.mkdir(mode=0o700)
        put_in_store(place.data, url, environment)
    acknowledged = run_until_killed(workers, one, f"{point}:1", SEED)
    tally.kills.append(("sqlite", point))
    problems = judge_after(other, SEED, acknowledged, thorough=True)
    tally.violations += len(problems)
    assert not problems, f"after {acknowledged} steps, killed at {point}"
