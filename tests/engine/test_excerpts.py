"""Scans of large files in an object store transfer the row groups and columns that they need, and find what a scan of
whole files finds."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("obstore", reason="obstore is not installed (make setup)")
pytest.importorskip("moto", reason="moto is not installed (make setup)")

import seachange
from seachange import errors
from tests.support.s3 import FaultProxy, S3Server, environment, fault_proxy

# Text that does not become small: the file has 10 MB in 8 row groups.
ROWS = 300_000
SET_UP = (
    "create table t (id bigint primary key, n int, a text, b text, m numeric(12, 2))",
    "insert into t select x, x % 1000, md5(x::text), md5((x * 7)::text), x / 100.0"
    f" from generate_series(1, {ROWS}) s(x)",
)
# Rows that newer ones replace, in all row groups and close together.
CHANGES = (
    "update t set n = -1, a = 'changed' where id % 6007 = 0",
    "delete from t where id % 5003 = 0 or id between 81900 and 81940",
    "alter table t add column later int default 7",
)
NARROW = "select count(*), sum(n) from t"
RANGE = "select count(*), min(a), max(b) from t where id between 100000 and 110000"


def used(connection: seachange.Connection) -> tuple[int, int, int]:
    """The number of whole files in the cache, the bytes that were downloaded, and those of all files."""
    ((files, downloaded),) = connection.execute("select files, downloaded_bytes from seachange.cache").fetchall()
    ((size,),) = connection.execute("select sum(size_bytes) from seachange.segments").fetchall()
    return files, downloaded, size


def excerpts(local: Path) -> list[Path]:
    return sorted(local.rglob("procs/*/*.parquet.*"))


class Place:
    """A database with a large file, and the same one in a folder."""

    def __init__(self, server: S3Server, folder: Path, changes: tuple[str, ...] = ()) -> None:
        self.server, self.folder = server, folder
        self.url, self.catalog = f"{server.create_place()}/shop", f"sqlite:///{folder}/catalog.sqlite"
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment(server.port).items():
                patch.setenv(name, value)
            with (
                closing(seachange.connect(self.url, self.catalog, local=folder / "local", autocommit=True)) as there,
                closing(seachange.connect(folder / "twin", autocommit=True)) as here,
            ):
                for sql in SET_UP + changes:
                    there.execute(sql)
                    here.execute(sql)

    def connect(self, local: Path) -> seachange.Connection:
        return seachange.connect(self.url, self.catalog, local=local, autocommit=True)

    def twin(self) -> seachange.Connection:
        return seachange.connect(self.folder / "twin", autocommit=True)

    @property
    def path(self) -> str:
        return f"/{self.url.removeprefix('s3://')}/segments/0000000000000001.parquet"


@pytest.fixture(scope="module")
def plain(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(s3_server, tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def changed(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(s3_server, tmp_path_factory.mktemp("changed"), CHANGES)


@pytest.fixture
def proxy(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    with fault_proxy(s3_server) as made:
        for name, value in environment(made.port).items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.mark.parametrize(
    ("query", "fewer"),
    [
        (NARROW, "select count(*) from t where n > 990"),
        (RANGE, "select min(a) from t where id between 100500 and 105000"),
    ],
)
def test_scan_transfers_what_it_needs(plain: Place, proxy: FaultProxy, tmp_path: Path, query: str, fewer: str):
    with closing(plain.connect(tmp_path)) as connection, closing(plain.twin()) as twin:
        before = proxy.faults.seen["GET"]
        assert connection.execute(query).fetchall() == twin.execute(query).fetchall()
        requests = proxy.faults.seen["GET"] - before
        assert 2 <= requests <= 10
        assert proxy.faults.ranges == requests
        files, downloaded, size = used(connection)
        assert files == 0
        assert downloaded < size / 3
        # It is still there for the next one, for fewer columns and keys too.
        for following in (query, fewer):
            assert connection.execute(following).fetchall() == twin.execute(following).fetchall()
        assert proxy.faults.seen["GET"] - before == requests


def test_file_of_which_much_is_needed_is_fetched(plain: Place, proxy: FaultProxy, tmp_path: Path):
    with closing(plain.connect(tmp_path)) as connection, closing(plain.twin()) as twin:
        query = "select count(*), sum(n), min(a), min(b) from t"
        assert connection.execute(query).fetchall() == twin.execute(query).fetchall()
        files, downloaded, size = used(connection)
        assert files == 1
        assert downloaded < size * 1.1


def test_file_that_is_scanned_again_and_again_is_fetched(plain: Place, proxy: FaultProxy, tmp_path: Path):
    """At most half of it is transferred twice."""
    with closing(plain.connect(tmp_path)) as connection, closing(plain.twin()) as twin:
        for start in range(1, ROWS, 30_000):
            query = f"select count(*), sum(n), max(a), max(b) from t where id between {start} and {start + 20_000}"
            assert connection.execute(query).fetchall() == twin.execute(query).fetchall()
        files, downloaded, size = used(connection)
        assert files == 1
        assert downloaded < size * 1.6
        connection.execute("vacuum")
        before = proxy.faults.seen["GET"]
        assert connection.execute(RANGE).fetchall() == twin.execute(RANGE).fetchall()
        assert proxy.faults.seen["GET"] == before


def test_scans_of_changed_rows_find_what_a_folder_has(changed: Place, proxy: FaultProxy, tmp_path: Path):
    """Superseded positions are those of the whole file; an added column is in none."""
    random = Random(7)
    columns = ("id", "n", "a", "m", "later")
    with closing(changed.twin()) as twin:
        for number in range(12):
            low = random.randrange(ROWS)
            high = low + random.choice((5_000, 50_000, 120_000))
            chosen = random.sample(columns, random.randint(1, 2))
            condition = random.choice(
                (f"id between {low} and {high}", f"id > {high} or id < {low}", f"n < {low % 1000}", "n = -1", "true")
            )
            query = f"select count(*), {', '.join(f'md5(string_agg({c}::text, chr(44) order by id))' for c in chosen)}"
            query += f" from t where {condition}"
            with closing(changed.connect(tmp_path / str(number))) as connection:
                assert connection.execute(query).fetchall() == twin.execute(query).fetchall(), query
                files, downloaded, size = used(connection)
                assert files == 0 or downloaded > size / 2, query
                assert downloaded < size * 1.6, query


def test_transaction_keeps_its_excerpts(s3_server: S3Server, proxy: FaultProxy, tmp_path: Path):
    """They are removed with the files when nothing can read them any more."""
    place = Place(s3_server, tmp_path)
    with closing(place.connect(tmp_path / "a")) as connection, closing(place.connect(tmp_path / "a")) as other:
        (before,) = connection.execute(NARROW).fetchall()
        assert excerpts(tmp_path)
        other.execute("begin isolation level repeatable read")
        assert other.execute(NARROW).fetchall() == [before]
        connection.execute("update t set m = 0 where id = 5")
        connection.execute("vacuum full t")
        assert other.execute(NARROW).fetchall() == [before]
        assert other.execute("select max(m) from t").fetchall() != []
        other.execute("commit")
        connection.execute("vacuum")
        assert connection.execute(NARROW).fetchall() == [before]
    assert not excerpts(tmp_path)


def test_part_that_is_damaged_on_its_way_is_fetched_again(plain: Place, proxy: FaultProxy, tmp_path: Path):
    proxy.faults.add("cut", "GET", 2)
    with closing(plain.connect(tmp_path)) as connection, closing(plain.twin()) as twin:
        assert connection.execute(RANGE).fetchall() == twin.execute(RANGE).fetchall()


def test_damaged_object_is_refused(plain: Place, s3_server: S3Server, proxy: FaultProxy, tmp_path: Path):
    _, content = s3_server.request("GET", plain.path)
    # Zeros in all row groups, and a file of another size.
    damaged = bytearray(content)
    for start in range(100_000, len(content) - 300_000, 200_000):
        damaged[start : start + 60_000] = bytes(60_000)
    try:
        for number, body in enumerate((bytes(damaged), content + b"x")):
            s3_server.request("PUT", plain.path, body)
            with closing(plain.connect(tmp_path / str(number))) as connection:
                for query in (NARROW, RANGE):
                    with pytest.raises(errors.SegmentDamaged):
                        connection.execute(query)
    finally:
        s3_server.request("PUT", plain.path, content)


def test_objects_checksum_is_compared(plain: Place, s3_server: S3Server, proxy: FaultProxy, tmp_path: Path):
    """Another object of the same size whose pages are right."""
    _, content = s3_server.request("GET", plain.path)
    try:
        s3_server.request("PUT", plain.path, content, {"x-amz-meta-seachangexxh3": "00" * 16})
        with closing(plain.connect(tmp_path)) as connection, pytest.raises(errors.SegmentDamaged):
            connection.execute("select id, a from t where id = 77")
    finally:
        s3_server.request("PUT", plain.path, content)
