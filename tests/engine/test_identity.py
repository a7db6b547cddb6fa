"""A folder and a catalog are opened together only if they belong to one database."""

import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import psycopg
import pytest

import seachange
from seachange import errors
from seachange.catalog.open import open_catalog
from seachange.catalog.port import FORMAT, Catalog
from seachange.engine.database.backup import back_up, restore
from seachange.engine.database.database_identity import Pairing
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.model.ids import Epoch, SegmentId
from seachange.model.segments import KnownFiles
from seachange.pipeline.reservation import reserve_files
from seachange.pipeline.spark.packed_task import Failed, PackedTask, Site, Trace, run_assignment
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.filesystem import IDENTITY_NAME, LocalFileSystem
from seachange.runtime.identity import FolderIdentity
from seachange.runtime.location import SEGMENTS
from seachange.sql.translate.duck_errors import translate_error
from seachange.storage.spill import SortLimits
from seachange.verify.consistency import check
from tests.engine.release_0_1_0 import ORDERS, ORDERS_FOUND, unpack, unpack_database
from tests.support.forks import Fork
from tests.support.postgres import LocalPostgres

ROWS = "insert into t select x from generate_series(1, 6000) s(x)"


@dataclass
class Catalogs:
    """Gives catalogs of one kind that do not exist yet."""

    kind: str
    folder: Path
    server: LocalPostgres | None
    made: list[str]

    def new(self) -> str:
        if self.server is None:
            url = f"sqlite:///{self.folder}/catalog{len(self.made)}.sqlite"
        else:
            url = self.server.create_database()
        self.made.append(url)
        return url

    def exists(self, url: str) -> bool:
        if self.server is None:
            return Path(url.removeprefix("sqlite:///")).exists()
        with psycopg.connect(url) as db:
            return bool(db.execute("select 1 from pg_namespace where nspname = 'seachange'").fetchall())


@pytest.fixture(params=["sqlite", "postgres"])
def catalogs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalogs]:
    server: LocalPostgres | None = None
    if request.param == "postgres":
        server = request.getfixturevalue("postgres_server")
        assert server is not None
        server.start()
    catalogs = Catalogs(request.param, tmp_path, server, [])
    yield catalogs
    if server is not None:
        for url in catalogs.made:
            server.drop_database(url)


def run(data: Path, url: str | None, *statements: str) -> list[tuple[object, ...]]:
    with seachange.connect(data=data, catalog=url, autocommit=True) as db:
        for statement in statements[:-1]:
            db.execute(statement)
        cursor = db.execute(statements[-1])
        return cursor.fetchall() if cursor.description else []


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def command(*arguments: object) -> tuple[int, str]:
    with Fork("seachange.cli.main", *map(str, arguments)) as process:
        ended = process.communicate("")
    return ended.returncode, ended.stderr


@pytest.fixture
def shop(tmp_path: Path, catalogs: Catalogs) -> tuple[Path, str]:
    data, url = tmp_path / "shop", catalogs.new()
    run(data, url, "create table t (id int primary key)", ROWS)
    return data, url


def test_no_command_opens_a_folder_with_another_catalog(tmp_path: Path, catalogs: Catalogs, shop: tuple[Path, str]):
    data, url = shop
    typo = catalogs.new()
    before = contents(data)
    for other in (typo, None):
        with pytest.raises(errors.CatalogMissing):
            seachange.connect(data=data, catalog=other)
    assert not catalogs.exists(typo)
    named = ("--data", data, "--catalog", typo)
    for arguments in (("sql", *named, "-c", "select 1"), ("check", *named), ("worker", *named), ("serve", *named)):
        code, complaint = command(*arguments)
        assert (code, complaint[:14]) == (1, "ERROR:  58P01:"), arguments
        assert "--catalog" in complaint
    with pytest.raises(errors.CatalogMissing):
        back_up(data, typo, tmp_path / "copy")
    assert contents(data) == before
    assert run(data, url, "select count(*) from t") == [(6_000,)]


def test_an_empty_catalog_is_not_filled(tmp_path: Path):
    data = tmp_path / "shop"
    run(data, None, "create table t (id int primary key)", ROWS)
    (data / "catalog.sqlite").write_bytes(b"")
    before = contents(data)
    code, complaint = command("sql", "--data", data, "-c", "create table t (id int)")
    assert (code, complaint[:14]) == (1, "ERROR:  58P01:")
    assert contents(data) == before


def test_a_folder_of_segments_without_an_id_gets_no_catalog(tmp_path: Path):
    data = tmp_path / "shop"
    run(data, None, "create table t (id int primary key)", ROWS)
    (data / "catalog.sqlite").unlink()
    (data / "segments" / IDENTITY_NAME).unlink()
    with pytest.raises(errors.CatalogMissing):
        open_node(data)
    assert not (data / "catalog.sqlite").exists()
    assert command("check", "--data", data)[0] == 1


def test_a_catalog_is_not_opened_with_another_folder(tmp_path: Path, catalogs: Catalogs, shop: tuple[Path, str]):
    data, url = shop
    other, other_url = tmp_path / "other", catalogs.new()
    run(other, other_url, "create table t (id int primary key)", ROWS)
    for wrong in (tmp_path / "typo", other):
        with pytest.raises(errors.WrongDatabase):
            seachange.connect(data=wrong, catalog=url)
    assert not (tmp_path / "typo").exists()
    # Without its id the folder of files is not known to be the right one.
    (data / "segments" / IDENTITY_NAME).rename(tmp_path / "id")
    with pytest.raises(errors.WrongDatabase):
        seachange.connect(data=data, catalog=url)
    (tmp_path / "id").rename(data / "segments" / IDENTITY_NAME)
    assert run(data, url, "select count(*) from t") == [(6_000,)]


@pytest.mark.parametrize("first", ["the folder", "its copy"])
def test_of_a_folder_and_its_copy_one_gets_files(
    tmp_path: Path, catalogs: Catalogs, shop: tuple[Path, str], first: str
):
    folder, url = shop
    copy = tmp_path / "copy"
    with closing(open_node(folder, url)) as node:
        shutil.copytree(folder, copy)
        with closing(open_node(copy, url)) as copied:
            winner, loser = map(Session, (node, copied) if first == "the folder" else (copied, node))
            winner.execute("insert into t select x from generate_series(10001, 16000) s(x)")
            for _ in range(2):
                with pytest.raises(errors.FolderIncomplete):
                    loser.execute("insert into t select x from generate_series(20001, 26000) s(x)")
            # Rows in the catalog need no files.
            loser.execute("insert into t values (30000)")
            winner.execute("insert into t select x from generate_series(40001, 46000) s(x)")
            assert winner.execute("select count(*) from t").rows == [(18_001,)]
            for path in Path(winner.node.parts.files.address).glob("*.parquet"):
                if not (other := Path(loser.node.parts.files.address, path.name)).exists():
                    shutil.copy(path, other)
            loser.execute("insert into t select x from generate_series(20001, 26000) s(x)")
            assert loser.execute("select count(*) from t").rows == [(24_001,)]


class CollectedFile:
    """A catalog whose newest file is deleted as garbage after it was first asked for it."""

    def __init__(self) -> None:
        self.answers = [(SegmentId(7),), (SegmentId(6),)]

    def newest_files(self, most: int) -> tuple[SegmentId, ...]:
        return self.answers.pop(0)

    def reserve_segments(self, epoch: Epoch, count: int) -> range:
        return range(8, 8 + count)


def test_a_file_that_is_deleted_as_garbage_is_not_missed(tmp_path: Path):
    catalog = CollectedFile()
    files = LocalFileSystem(tmp_path)
    assert reserve_files(cast(Catalog, catalog), Epoch(1), files, 2) == [8, 9]
    assert not catalog.answers


def test_a_restored_database_is_another_one(tmp_path: Path, catalogs: Catalogs, shop: tuple[Path, str]):
    data, url = shop
    back_up(data, url, tmp_path / "copy")
    with pytest.raises(errors.DataFolderProblem, match="restore"):
        open_node(tmp_path / "copy")
    again, again_url = tmp_path / "again", catalogs.new()
    restore(tmp_path / "copy", again, again_url)
    assert not list((again / "segments").glob(f"{IDENTITY_NAME}.*"))
    for folder, catalog in ((data, again_url), (again, url)):
        with pytest.raises(errors.WrongDatabase):
            open_node(folder, catalog)
    assert run(again, again_url, ROWS.replace("1, 6000", "6001, 12000"), "select count(*) from t") == [(12_000,)]
    assert run(data, url, "select count(*) from t") == [(6_000,)]
    with pytest.raises(errors.InvalidCatalog):
        restore(tmp_path / "copy", tmp_path / "third", again_url)


@pytest.mark.parametrize("point", ["identity.proposed", "identity.bound", "identity.settled", "migration.committed"])
def test_a_database_whose_creator_was_killed_can_be_opened(tmp_path: Path, catalogs: Catalogs, point: str):
    data, url = tmp_path / "shop", catalogs.new()
    with Fork(
        "seachange.cli.main", "sql", "--data", str(data), "--catalog", url, "-c", "select 1", fault=point
    ) as killed:
        assert killed.communicate("").returncode == -signal.SIGKILL
    # The folder has no owner as long as it has no id; with one it belongs to that catalog.
    if point == "identity.settled":
        with pytest.raises(errors.CatalogMissing):
            open_node(data, catalogs.new())
    else:
        shutil.copytree(data, tmp_path / "twin") if data.exists() else None
        run(tmp_path / "twin", catalogs.new(), "create table t (id int primary key)", ROWS)
    run(data, url, "create table t (id int primary key)", ROWS)
    assert [p.name for p in (data / "segments").glob(f"{IDENTITY_NAME}*")] == [IDENTITY_NAME]
    assert run(data, url, "select count(*) from t") == [(6_000,)]
    if point == "identity.bound":
        with pytest.raises(errors.WrongDatabase):
            open_node(tmp_path / "twin", url)


def test_processes_that_create_one_database_at_the_same_time(tmp_path: Path, catalogs: Catalogs):
    data, urls = tmp_path / "shop", [catalogs.new(), catalogs.new()]
    given = [urls[0], urls[0], urls[0], urls[1]]
    forks = [
        Fork("seachange.cli.main", "sql", "--data", str(data), "--catalog", url, "-c", "select 1") for url in given
    ]
    codes: dict[str, list[int]] = {url: [] for url in urls}
    for fork, url in zip(forks, given, strict=True):
        with fork:
            ended = fork.communicate("")
            codes[url].append(ended.returncode)
            assert ended.returncode == 0 or ended.stderr.startswith(("ERROR:  55000", "ERROR:  58P01")), ended.stderr
    # The folder is one catalog's: all of its processes have opened it, and none of the other's.
    assert sorted(set(each) == {0} for each in codes.values()) == [False, True]
    assert sorted(0 in each for each in codes.values()) == [False, True]
    winner = next(url for url in urls if 0 in codes[url])
    assert run(data, winner, "select 1") == [(1,)]
    assert [p.name for p in (data / "segments").glob(f"{IDENTITY_NAME}*")] == [IDENTITY_NAME]


class CatalogWithRival:
    """What a pairing calls of a catalog. Before or after one of the calls, another process opens the database and
    writes."""

    def __init__(self, catalog: Catalog, moment: int, rival: Callable[[], object]) -> None:
        self._catalog = catalog
        self._left = moment
        self._rival = rival

    @property
    def reached(self) -> bool:
        return self._left < 0

    @contextmanager
    def _moments(self) -> Iterator[None]:
        self._pass_moment()
        yield
        self._pass_moment()

    def _pass_moment(self) -> None:
        if self._left == 0:
            self._rival()
        self._left -= 1

    def identity(self) -> str | None:
        with self._moments():
            return self._catalog.identity()

    def known_files(self) -> KnownFiles:
        with self._moments():
            return self._catalog.known_files()

    def bind(self, identity: str) -> str:
        with self._moments():
            return self._catalog.bind(identity)


@pytest.mark.parametrize("moment", range(6))
def test_a_database_that_another_process_creates_meanwhile_is_opened(tmp_path: Path, catalogs: Catalogs, moment: int):
    data, url = tmp_path / "data", catalogs.new()

    def create() -> None:
        run(data, url, "create table t (id int primary key)", ROWS)

    with closing(open_catalog(url, data, SYSTEM_CLOCK, SYSTEM_ENTROPY, creates=True)) as catalog:
        watched = CatalogWithRival(catalog, moment, create)
        place = FolderIdentity(data / SEGMENTS)
        found = Pairing(cast(Catalog, watched), url, place, str(data)).run()
        assert watched.reached
        assert found == catalog.identity() == place.read()
    assert run(data, url, "select count(*) from t") == [(6000,)]


def test_a_database_of_release_0_1_0_is_adopted(tmp_path: Path, catalogs: Catalogs):
    url = catalogs.new() if catalogs.kind == "postgres" else None
    data = unpack_database(catalogs.kind, tmp_path / "old", url)
    # Neither by an empty folder nor by that of another database.
    other, empty = tmp_path / "other", tmp_path / "empty"
    run(other, None, "create table t (id int primary key)", ROWS)
    (other / "segments" / IDENTITY_NAME).unlink()
    catalog = url or f"sqlite:///{data}/catalog.sqlite"
    for wrong in (other, empty):
        with pytest.raises(errors.WrongDatabase):
            open_node(wrong, catalog)
        assert not list(wrong.glob(f"segments/{IDENTITY_NAME}*"))
    node = open_node(data, url)
    try:
        assert check(node) == []
        assert node.parts.identity == (data / "segments" / IDENTITY_NAME).read_text().strip()
        assert node.parts.catalog.identity() == node.parts.identity
    finally:
        node.close()
    found = [(count, str(total)) for count, total in run(data, url, ORDERS)]
    assert found == ORDERS_FOUND
    run(data, url, "create table t (id int primary key)", ROWS)
    with pytest.raises(errors.CatalogMissing):
        open_node(data, catalogs.new())


def test_an_old_database_with_a_damaged_file_is_adopted_too(tmp_path: Path):
    data = unpack("sqlite", tmp_path / "old")
    next((data / "segments").glob("*.parquet")).unlink()
    open_node(data).close()
    assert (data / "segments" / IDENTITY_NAME).exists()


def test_a_back_up_of_release_0_1_0_is_restored(tmp_path: Path, catalogs: Catalogs):
    url = catalogs.new()
    copy = unpack(f"{catalogs.kind}_backup", tmp_path / "copy")
    assert restore(copy, tmp_path / "again", url).format < FORMAT
    node = open_node(tmp_path / "again", url)
    try:
        assert check(node) == []
    finally:
        node.close()
    assert [(count, str(total)) for count, total in run(tmp_path / "again", url, ORDERS)] == ORDERS_FOUND


def test_the_tables_of_another_program_are_left_alone(tmp_path: Path):
    with sqlite3.connect(tmp_path / "theirs.sqlite") as db:
        db.execute("create table theirs (x)")
    db.close()
    with pytest.raises(errors.InvalidCatalog, match="another program"):
        open_node(tmp_path / "shop", f"sqlite:///{tmp_path}/theirs.sqlite")


class NeverRun:
    title, segments, read_bytes, write_bytes, steps = "never", 1, 0, 0, 1

    def run(self, kernel_context: object) -> None:
        raise AssertionError("it was run")


@pytest.mark.parametrize("place", ["elsewhere", "missing"])
def test_a_task_of_spark_refuses_another_folder(tmp_path: Path, place: str):
    for name in ("shop", "elsewhere"):
        run(tmp_path / name, None, "create table t (id int primary key)")
    identity = (tmp_path / "shop" / "segments" / IDENTITY_NAME).read_text().strip()
    folder = tmp_path / place / "segments"
    site = Site(str(folder), str(tmp_path / "spill"), SortLimits(threads=1), translate_error, identity)
    ended = run_assignment(PackedTask(NeverRun(), site, ((),)), Trace(0, 0, "here"))
    assert isinstance(ended, Failed)
    assert ended.sqlstate == errors.DataFolderProblem.sqlstate
    assert folder.exists() == (place == "elsewhere")
