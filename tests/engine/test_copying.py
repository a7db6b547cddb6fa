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
from seachange.engine.session.session import Session
from seachange.runtime.location import DataLocation, find_location
from tests.support.s3 import S3Server, environment
from tests.support.workers import wait_until

SEACHANGE = str(Path(sys.executable).with_name("seachange"))
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


@pytest.mark.parametrize(
    ("point", "to_store"),
    [
        pytest.param("copy.noted", True, marks=pytest.mark.slow),
        pytest.param("copy.noted", False, marks=pytest.mark.slow),
        pytest.param("identity.proposed", True, marks=pytest.mark.slow),
        pytest.param("identity.proposed", False, marks=pytest.mark.slow),
        pytest.param("segment.renamed", False, marks=pytest.mark.slow),
        ("copy.copied", True),
        pytest.param("copy.copied", False, marks=pytest.mark.slow),
        ("copy.moved", True),
        pytest.param("copy.moved", False, marks=pytest.mark.slow),
        pytest.param("identity.settled", True, marks=pytest.mark.slow),
        pytest.param("identity.settled", False, marks=pytest.mark.slow),
    ],
)
def test_killed_move_is_finished_by_the_same_command(url: str, tmp_path: Path, point: str, to_store: bool):
    folder, other = find_location(tmp_path / "folder"), find_location(tmp_path / "other")
    target = find_location(url, tmp_path / "local") if to_store else other
    catalog = f"sqlite:///{tmp_path}/catalog.sqlite"
    with closing(seachange.connect(str(folder), catalog, autocommit=True)) as connection:
        connection.execute("create table t (id bigint primary key, v text)")
        connection.execute("create table gone (id bigint primary key, v text)")
        for first in (0, 6_000):
            connection.execute(LOAD.format(first))
        connection.execute(LOAD.format(0).replace("into t", "into gone"))
    command = [SEACHANGE, "copy", "--data", str(folder), "--catalog", catalog]
    command += ["--to", str(target), *(["--to-local", str(target.local)] if to_store else [])]
    assert subprocess.run(command, env={**os.environ, "SEACHANGE_FAULT": point}).returncode == -9
    if point not in ("copy.moved", "identity.settled"):
        drop_table(folder, catalog)
    again = subprocess.run(command, capture_output=True, text=True)
    assert (again.returncode, again.stderr) == (0, "")
    assert count(target, catalog) == 12_000
    with pytest.raises(errors.WrongDatabase):
        open_node(folder, catalog)
    local = ["--local", str(target.local)] if to_store else []
    assert main(["check", "--data", str(target), "--catalog", catalog, *local]) == 0
    # And it is done once more.
    assert subprocess.run(command).returncode == 0


def drop_table(location: DataLocation, catalog: str) -> None:
    """The files of a table go while no copy runs."""
    node = open_node(location, catalog, retention_us=0)
    with closing(node), closing(Session(node)) as session:
        before = len(node.parts.files.names())
        session.execute("drop table gone")

        def are_collected() -> bool:
            node.maintenance.collect(node.epoch)
            return len(node.parts.files.names()) < before

        wait_until(are_collected, "the files to be deleted")


def test_place_of_another_copy_is_refused(url: str, tmp_path: Path):
    folders = [find_location(tmp_path / name) for name in ("one", "two")]
    for folder in folders:
        open_node(folder).close()
    store = find_location(url, tmp_path / "local")
    command = [SEACHANGE, "copy", "--data", str(folders[0]), "--to", str(store)]
    assert subprocess.run(command, env={**os.environ, "SEACHANGE_FAULT": "copy.copied"}).returncode == -9
    with pytest.raises(errors.DataFolderProblem, match="another database"):
        move_database(folders[1], None, store)
    move_database(folders[0], None, store)


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
