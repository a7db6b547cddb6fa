"""A database is moved to another folder or object store while it is in use."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("obstore", reason="obstore is not installed (make setup)")
pytest.importorskip("moto", reason="moto is not installed (make setup)")

import seachange
from seachange import errors
from seachange.cli.main import main
from seachange.engine.database.copying import move_database
from seachange.engine.database.opening import open_node
from seachange.runtime.location import DataLocation, find_location
from tests.support.s3 import S3Server, environment

LOAD = "insert into t select x, 'v' || x from generate_series({0} + 1, {0} + 6000) s(x)"


@pytest.fixture
def url(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in environment(s3_server.port).items():
        monkeypatch.setenv(name, value)
    return f"s3://{s3_server.create_bucket()}/shop"


@pytest.fixture(params=["sqlite", "postgres"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/catalog.sqlite"
    else:
        yield request.getfixturevalue("postgres_catalog_url")


def count(location: DataLocation, catalog: str) -> int:
    data = str(location)
    local = location.local if location.store is not None else None
    with closing(seachange.connect(data, catalog, local=local, autocommit=True)) as connection:
        found: int = connection.execute("select count(*) from t").fetchall()[0][0]
        return found


def test_database_moves_under_a_writer(url: str, catalog: str, tmp_path: Path):
    folder, store = find_location(tmp_path / "folder"), find_location(url, tmp_path / "local")
    with closing(seachange.connect(str(folder), catalog, autocommit=True)) as connection:
        connection.execute("create table t (id bigint primary key, v text)")
        connection.execute(LOAD.format(0))
        written, begun, problems = [1], threading.Event(), list[errors.Error]()

        def write() -> None:
            try:
                while True:
                    connection.execute(LOAD.format(6_000 * written[0]))
                    written[0] += 1
                    begun.set()
            except errors.Error as problem:
                problems.append(problem)

        writer = threading.Thread(target=write)
        writer.start()
        begun.wait()
        moved = move_database(folder, catalog, store)
        writer.join()
        with pytest.raises(errors.DatabaseMoved):
            connection.execute("select 1 from t")
    assert [problem.sqlstate for problem in problems] in (["55000"], ["40001"])
    assert moved.files >= 2
    # Every acknowledged row is there, and no other.
    assert count(store, catalog) == 6_000 * written[0]
    with pytest.raises(errors.WrongDatabase):
        open_node(folder, catalog)
    assert main(["check", "--data", url, "--catalog", catalog, "--local", str(tmp_path / "local")]) == 0
    back = find_location(tmp_path / "back")
    assert (
        main(["copy", "--data", url, "--local", str(tmp_path / "local"), "--catalog", catalog, "--to", str(back)]) == 0
    )
    assert count(back, catalog) == 6_000 * written[0]


MOVE = """
import sys
from seachange.engine.database.copying import move_database
from seachange.runtime.location import find_location
move_database(find_location(sys.argv[1]), sys.argv[2], find_location(sys.argv[3], sys.argv[4]))
"""


# The first waits until the epoch of the dead process has expired.
@pytest.mark.parametrize("point", [pytest.param("copy.copied", marks=pytest.mark.slow), "copy.moved"])
def test_killed_move_is_resumed_or_complete(url: str, tmp_path: Path, point: str):
    folder, store = find_location(tmp_path / "folder"), find_location(url, tmp_path / "local")
    catalog = f"sqlite:///{tmp_path}/catalog.sqlite"
    with closing(seachange.connect(str(folder), catalog, autocommit=True)) as connection:
        connection.execute("create table t (id bigint primary key, v text)")
        connection.execute(LOAD.format(0))
    command = [sys.executable, "-c", MOVE, str(folder), catalog, url, str(tmp_path / "local")]
    assert subprocess.run(command, env={**os.environ, "SEACHANGE_FAULT": point}).returncode == -9
    if point == "copy.copied":
        assert count(folder, catalog) == 6_000
        move_database(folder, catalog, store)
    assert count(store, catalog) == 6_000
    with pytest.raises(errors.WrongDatabase):
        open_node(folder, catalog)


def test_place_with_a_database_is_refused(url: str, tmp_path: Path):
    folder, store = find_location(tmp_path / "folder"), find_location(url, tmp_path / "local")
    for location in (folder, store):
        open_node(location).close()
    with pytest.raises(errors.DataFolderProblem):
        move_database(folder, None, store)
    with pytest.raises(errors.DataFolderProblem):
        move_database(folder, None, folder)
    with pytest.raises(errors.DataFolderProblem):
        move_database(find_location(tmp_path / "none"), None, find_location(f"{url}-2", tmp_path / "more"))
