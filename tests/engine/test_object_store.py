"""A database in an object store: the same SQL, through the cache, from several machines."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("obstore", reason="obstore is not installed (make setup)")
pytest.importorskip("moto", reason="moto is not installed (make setup)")

import seachange
from seachange import errors
from seachange.cli.main import main
from seachange.engine.database.backup import back_up, restore
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.runtime.location import DataLocation, default_folder, find_location
from tests.support.patience import PATIENCE_S
from tests.support.s3 import FaultProxy, S3Server, StoreServer, fault_proxy

# Only some behaviour depends on the kind of store.
ANY_STORE = pytest.mark.parametrize(
    "store_server", ["s3", pytest.param("azure", marks=pytest.mark.slow)], indirect=True
)
ROWS = 6_000
LOAD = f"insert into t select x, 'v' || x from generate_series(1, {ROWS}) s(x)"
SUMS = "select count(*), sum(id), count(distinct v) from t"


@pytest.fixture
def store_server(request: pytest.FixtureRequest) -> StoreServer:
    """S3, if the test does not say otherwise."""
    kind = getattr(request, "param", "s3")
    server: StoreServer = request.getfixturevalue("s3_server" if kind == "s3" else "azurite_server")
    return server


@pytest.fixture
def proxy(store_server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    with fault_proxy(store_server) as made:
        for name, value in store_server.environment(made.port).items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def url(store_server: StoreServer, proxy: FaultProxy) -> str:
    return f"{store_server.create_place()}/shop"


def connect(url: str, folder: Path, catalog: str | None = None) -> seachange.Connection:
    return seachange.connect(url, catalog, local=folder, autocommit=True)


def run(url: str, folder: Path, *statements: str, catalog: str | None = None) -> list[Any]:
    with closing(connect(url, folder, catalog)) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def machine(tmp_path: Path, name: str, cache_size: str = "10GB") -> Path:
    """The local folder of a machine."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "seachange.toml").write_text(f'[seachange]\ncache_size = "{cache_size}"\n')
    return folder


@ANY_STORE
@pytest.mark.parametrize("cache_size", ["10GB", "0"])
def test_changes_of_one_machine_are_read_on_another(url: str, tmp_path: Path, cache_size: str):
    """With a cache that holds nothing, every file that is not in use is removed at once."""
    one, other = machine(tmp_path, "one", cache_size), machine(tmp_path, "other", cache_size)
    catalog = f"sqlite:///{tmp_path}/catalog.sqlite"
    run(url, one, "create table t (id bigint primary key, v text)", LOAD, catalog=catalog)
    with closing(connect(url, other, catalog)) as connection:
        assert connection.execute(SUMS).fetchall() == [(ROWS, ROWS * (ROWS + 1) // 2, ROWS)]
        assert connection.execute("select v from t where id = 77").fetchall() == [("v77",)]
        connection.execute("update t set v = 'w' || id where id % 2 = 0")
        connection.execute("create index on t (v)")
        connection.execute("alter table t alter column v type varchar(20) using v || '!'")
        connection.execute("delete from t where id > 5000")
        connection.execute("vacuum t")
        assert connection.execute("select id from t where v = 'w78!'").fetchall() == [(78,)]
        found = connection.execute("select files, pinned_files, hits, misses from seachange.cache").fetchall()
    expected = (5_000, 5_000 * 5_001 // 2, 5_000)
    assert run(url, one, SUMS, catalog=catalog) == [expected]
    assert found[0][3] >= 1
    arguments = ["--data", url, "--catalog", catalog, "--local", str(tmp_path / "third")]
    assert main(["check", *arguments, "--full"]) == 0


def test_second_read_asks_the_store_for_nothing(url: str, proxy: FaultProxy, tmp_path: Path):
    run(url, tmp_path / "local", "create table t (id bigint primary key, v text)", LOAD)
    with closing(connect(url, tmp_path / "local")) as connection:
        connection.execute(SUMS)
        before = proxy.faults.seen.total()
        connection.execute(SUMS)
        connection.execute("select v from t where id = 5")
        assert proxy.faults.seen.total() == before


def test_load_needs_one_put_per_segment_and_no_listing(url: str, proxy: FaultProxy, tmp_path: Path):
    run(url, tmp_path / "local", "create table t (id bigint primary key, v text)")
    with closing(connect(url, tmp_path / "local")) as connection:
        before = dict(proxy.faults.seen)
        connection.execute(LOAD)
        after = proxy.faults.seen
        assert after["PUT"] - before["PUT"] == 1
        assert after["GET"] == before["GET"]
        (segments,) = connection.execute("select count(*) from seachange.segments").fetchall()
        assert segments == (1,)


def test_files_of_the_other_machine_are_verified(url: str, s3_server: S3Server, tmp_path: Path):
    catalog = f"sqlite:///{tmp_path}/catalog.sqlite"
    run(url, tmp_path / "one", "create table t (id bigint primary key, v text)", LOAD, catalog=catalog)
    path = f"/{url.removeprefix('s3://')}/segments/0000000000000001.parquet"
    _, content = s3_server.request("GET", path)
    s3_server.request("PUT", path, content[:-1] + b"x")
    with pytest.raises(errors.SegmentDamaged):
        run(url, tmp_path / "other", SUMS, catalog=catalog)
    arguments = ["--data", url, "--catalog", catalog, "--local", str(tmp_path / "one")]
    # The machine that wrote the file has a good copy; the check does not rely on it.
    assert main(["check", *arguments]) == 1
    s3_server.request("PUT", path, content)
    assert main(["check", *arguments]) == 0


def test_check_reports_missing_and_unknown_objects(
    url: str, s3_server: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run(url, tmp_path / "local", "create table t (id bigint primary key, v text)", LOAD)
    prefix = f"/{url.removeprefix('s3://')}/segments"
    s3_server.request("PUT", f"{prefix}/00000000000000ff.parquet", b"stray")
    s3_server.request("DELETE", f"{prefix}/0000000000000001.parquet")
    assert main(["check", "--data", url, "--local", str(tmp_path / "local")]) == 1
    shown = capsys.readouterr().out
    assert "00000000000000ff.parquet" in shown
    assert "0000000000000001.parquet" in shown


@pytest.mark.parametrize(
    ("fault", "methods", "reason"),
    [
        ("expire", ("HEAD", "GET"), "the credentials have expired"),
        ("expire", ("GET",), "the credentials have expired"),
        ("vanish", ("HEAD", "GET"), "the bucket does not exist"),
    ],
)
def test_store_that_fails_during_a_check_is_no_damage(
    url: str,
    proxy: FaultProxy,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    fault: str,
    methods: tuple[str, ...],
    reason: str,
):
    run(url, tmp_path / "local", "create table t (id bigint primary key, v text)", LOAD)
    for method in methods:
        proxy.faults.add(fault, method, 1, ".parquet")
    assert main(["check", "--data", url, "--local", str(tmp_path / "local")]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "58030" in shown.err
    assert reason in shown.err
    assert "HINT" in shown.err
    assert main(["check", "--data", url, "--local", str(tmp_path / "local")]) == 0


def test_damaged_cache_is_noticed_after_a_restart(url: str, tmp_path: Path):
    folder = tmp_path / "local"
    run(url, folder, "create table t (id bigint primary key, v text)", LOAD)
    (cached,) = (folder / "cache").rglob("*.parquet")
    content = cached.read_bytes()
    cached.write_bytes(content[:100] + b"?" + content[101:])
    assert run(url, folder, SUMS) == [(ROWS, ROWS * (ROWS + 1) // 2, ROWS)]
    (cached,) = (folder / "cache").rglob("*.parquet")
    assert cached.read_bytes() == content


@ANY_STORE
def test_garbage_is_deleted_in_the_store(url: str, s3_server: S3Server, tmp_path: Path):
    location = find_location(url, tmp_path / "local")
    node = open_node(location, retention_us=0)
    with closing(node), closing(Session(node)) as session:
        session.execute("create table t (id bigint primary key, v text)")
        session.execute(LOAD)
        session.execute("drop table t")
        # Files are garbage when the marks of all nodes have passed the DROP.
        deadline = time.monotonic() + PATIENCE_S
        while node.parts.files.names() and time.monotonic() < deadline:
            node.maintenance.collect(node.epoch)
            time.sleep(0.05)
        assert node.parts.files.names() == []
    assert not list((tmp_path / "local" / "cache").rglob("*.parquet"))


def test_removed_files_are_not_kept_open(url: str, tmp_path: Path):
    node = open_node(find_location(url, machine(tmp_path, "local", cache_size="0")))

    def removed() -> list[str]:
        found = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
        return [path for path in found if str(tmp_path) in path and path.endswith("(deleted)")]

    with closing(node), closing(Session(node)) as session:
        session.execute("create table t (id bigint primary key, v text)")
        session.execute(LOAD)
        session.execute("select v from t where id = 5")
        node.parts.files.tidy()
        # The reader of the point query can go on.
        assert removed()
        node.maintenance.collect(node.epoch)
        assert not removed()
        session.execute("select v from t where id = 6")


@ANY_STORE
def test_backup_and_restore_between_stores_and_folders(url: str, tmp_path: Path):
    run(url, tmp_path / "local", "create table t (id bigint primary key, v text)", LOAD)
    back_up(find_location(url, tmp_path / "local"), None, tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "folder", None)
    assert run(str(tmp_path / "folder"), None, SUMS) == [(ROWS, ROWS * (ROWS + 1) // 2, ROWS)]  # type: ignore[arg-type]
    again = find_location(f"{url}-again", tmp_path / "again")
    restore(tmp_path / "copy", again, None)
    assert run(f"{url}-again", tmp_path / "again", SUMS) == [(ROWS, ROWS * (ROWS + 1) // 2, ROWS)]
    with pytest.raises(errors.DataFolderProblem, match="not empty"):
        restore(tmp_path / "copy", again, None)


def test_store_and_catalog_must_belong_together(url: str, tmp_path: Path):
    run(url, tmp_path / "one", "create table t (id int primary key)")
    with pytest.raises(errors.CatalogMissing):
        run(url, tmp_path / "two", "select 1")
    run(f"{url}-2", tmp_path / "two", "create table t (id int primary key)")
    with pytest.raises(errors.WrongDatabase):
        run(url, tmp_path / "two", "select 1")


def test_helpful_errors(proxy: FaultProxy, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(errors.StoreNeedsCatalog):
        seachange.connect(url)
    with pytest.raises(errors.StoreProblem, match="the bucket does not exist"):
        connect("s3://no-such-bucket/shop", tmp_path / "local")
    for wrong in ("s3://", "ftp://host/x", "s3://key:secret@bucket/shop", "s3://bucket/a/../b", "s3://bucket/a?x=y"):
        with pytest.raises(errors.InvalidStore) as caught:
            connect(wrong, tmp_path / "local")
        assert "secret" not in str(caught.value)
    assert main(["check", "--data", url, "--local", str(tmp_path / "local")]) == 1
    assert "does not contain a database" in capsys.readouterr().err
    assert main(["sql", "--data", url, "-c", "select 1"]) == 1
    assert "--catalog" in capsys.readouterr().err


@pytest.mark.parametrize("ignores", [False, True])
def test_store_that_ignores_conditions_is_reported(url: str, proxy: FaultProxy, tmp_path: Path, ignores: bool):
    if ignores:
        proxy.faults.add("overwrite", "PUT", 100)
    run(url, tmp_path / "local", "create table t (id bigint primary key, v text)", LOAD)
    events = run(url, tmp_path / "local", "select event from seachange.events")
    assert any("ignores the conditions" in event for (event,) in events) == ignores
    assert run(url, tmp_path / "local", SUMS) == [(ROWS, ROWS * (ROWS + 1) // 2, ROWS)]


def test_default_folder_is_the_users(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert find_location(url) == DataLocation(default_folder(url), url, is_chosen=False)
    assert default_folder(url).parent == tmp_path / "seachange"
    assert default_folder(url) != default_folder(f"{url}-2")


def test_no_credential_is_stored(url: str, tmp_path: Path):
    run(url, tmp_path / "local", "create table t (id bigint primary key, v text)", LOAD)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"secret-of-the-test" not in path.read_bytes(), path


def test_statement_fails_while_credentials_are_expired(url: str, proxy: FaultProxy, tmp_path: Path):
    catalog = f"sqlite:///{tmp_path}/catalog.sqlite"
    run(url, tmp_path / "one", "create table t (id bigint primary key, v text)", LOAD, catalog=catalog)
    with closing(connect(url, tmp_path / "other", catalog)) as connection:
        for method, statement in (("GET", SUMS), ("PUT", LOAD.replace("x,", "-x,"))):
            proxy.faults.add("expire", method, ending=".parquet")
            with pytest.raises(errors.StoreProblem, match="the credentials have expired") as caught:
                connection.execute(statement)
            assert caught.value.sqlstate == "58030"
            assert "secret-of-the-test" not in f"{caught.value}{caught.value.hint}"
        connection.execute(LOAD.replace("x,", "-x,"))
        assert connection.execute(SUMS).fetchall() == [(2 * ROWS, 0, ROWS)]
    assert main(["check", "--data", url, "--catalog", catalog, "--local", str(tmp_path / "other")]) == 0


KILLED = """
import sys
import seachange
connection = seachange.connect(sys.argv[1], sys.argv[3], local=sys.argv[2], autocommit=True)
connection.execute(sys.argv[4])
"""


@pytest.mark.parametrize("point", ["segment.written", "segment.published", "commit.locked", "commit.decided"])
def test_killed_load_is_whole_or_absent(url: str, tmp_path: Path, point: str):
    catalog = f"sqlite:///{tmp_path}/catalog.sqlite"
    run(url, tmp_path / "one", "create table t (id bigint primary key, v text)", catalog=catalog)
    environment_ = {**os.environ, "SEACHANGE_FAULT": point}
    command = [sys.executable, "-c", KILLED, url, str(tmp_path / "one"), catalog, LOAD]
    assert subprocess.run(command, env=environment_).returncode == -9
    found = run(url, tmp_path / "other", "select count(*) from t", catalog=catalog)
    assert found == [(ROWS if point == "commit.decided" else 0,)]
    run(url, tmp_path / "one", "insert into t values (-1, 'more')", catalog=catalog)
    arguments = ["--data", url, "--catalog", catalog, "--local", str(tmp_path / "one")]
    assert main(["check", *arguments]) == 0
