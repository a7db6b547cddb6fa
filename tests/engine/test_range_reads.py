"""Single rows of large files in an object store are read without fetching the files."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("obstore", reason="obstore is not installed (make setup)")
pytest.importorskip("moto", reason="moto is not installed (make setup)")

import seachange
from seachange import errors
from tests.support.s3 import FaultProxy, S3Server, environment, fault_proxy

# Text that does not become small: the file has 10 MB.
ROWS = 300_000
LOAD = f"""insert into t select x, md5(x::text), md5((x * 7)::text), x from generate_series(1, {ROWS}) s(x)"""
ROW = "select id, n from t where id = {0}"


@pytest.fixture(scope="module")
def loaded(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The URL and the catalog of a database with a large file."""
    folder = tmp_path_factory.mktemp("loaded")
    url, catalog = f"{s3_server.create_place()}/shop", f"sqlite:///{folder}/catalog.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(s3_server.port).items():
            patch.setenv(name, value)
        with closing(seachange.connect(url, catalog, local=folder / "local", autocommit=True)) as connection:
            connection.execute("create table t (id bigint primary key, a text, b text, n bigint)")
            connection.execute(LOAD)
    return url, catalog


@pytest.fixture
def proxy(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    with fault_proxy(s3_server) as made:
        for name, value in environment(made.port).items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def connection(loaded: tuple[str, str], proxy: FaultProxy, tmp_path: Path) -> Iterator[seachange.Connection]:
    """On a machine that has nothing of the file."""
    url, catalog = loaded
    with closing(seachange.connect(url, catalog, local=tmp_path / "other", autocommit=True)) as opened:
        yield opened


def test_cold_row_needs_few_requests(connection: seachange.Connection, proxy: FaultProxy):
    before = proxy.faults.seen["GET"]
    assert connection.execute(ROW.format(123_456)).fetchall() == [(123_456, 123_456)]
    requests = proxy.faults.seen["GET"] - before
    assert 1 <= requests <= 3
    assert proxy.faults.ranges == requests
    # Rows nearby are there already.
    assert connection.execute(ROW.format(123_457)).fetchall() == [(123_457, 123_457)]
    assert proxy.faults.seen["GET"] - before == requests
    ((files, downloaded),) = connection.execute("select files, downloaded_bytes from seachange.cache").fetchall()
    ((size,),) = connection.execute("select sum(size_bytes) from seachange.segments").fetchall()
    assert files == 0
    assert downloaded < size / 4


def test_export_transfers_the_end_of_a_file(
    connection: seachange.Connection, proxy: FaultProxy, s3_server: S3Server, loaded: tuple[str, str]
):
    """The statistics of its columns are there."""
    pytest.importorskip("fastavro", reason="fastavro is not installed (make setup)")
    connection.execute("call seachange.export_iceberg('t')")
    ((files, downloaded),) = connection.execute("select files, downloaded_bytes from seachange.cache").fetchall()
    ((size,),) = connection.execute("select sum(size_bytes) from seachange.segments").fetchall()
    assert files == 0
    assert 0 < downloaded < size / 10


def test_file_that_is_read_much_is_fetched(connection: seachange.Connection, proxy: FaultProxy):
    for step in range(12):
        wanted = 1 + step * (ROWS // 12)
        assert connection.execute(ROW.format(wanted)).fetchall() == [(wanted, wanted)]
    ((files,),) = connection.execute("select files from seachange.cache").fetchall()
    assert files == 1
    before = proxy.faults.seen["GET"]
    assert connection.execute("select count(*), sum(n) from t").fetchall() == [(ROWS, ROWS * (ROWS + 1) // 2)]
    assert connection.execute(ROW.format(77_777)).fetchall() == [(77_777, 77_777)]
    assert proxy.faults.seen["GET"] == before


def test_many_rows_of_one_statement_do_not_transfer_a_file_twice(connection: seachange.Connection, proxy: FaultProxy):
    ids = range(1, ROWS, ROWS // 14)
    found = connection.execute(f"select id from t where id in ({', '.join(map(str, ids))}) order by id").fetchall()
    assert found == [(n,) for n in ids]
    ((files, downloaded),) = connection.execute("select files, downloaded_bytes from seachange.cache").fetchall()
    ((size,),) = connection.execute("select sum(size_bytes) from seachange.segments").fetchall()
    assert files == 1
    assert downloaded < size * 1.6


def test_broken_transfer_of_a_part_is_repeated(connection: seachange.Connection, proxy: FaultProxy):
    proxy.faults.add("cut", "GET", 2)
    assert connection.execute(ROW.format(30_000)).fetchall() == [(30_000, 30_000)]
    assert proxy.faults.seen["cut"] == 2


def test_damaged_parts_are_refused(loaded: tuple[str, str], s3_server: S3Server, connection: seachange.Connection):
    path = f"/{loaded[0].removeprefix('s3://')}/segments/0000000000000001.parquet"
    _, content = s3_server.request("GET", path)
    try:
        for damaged in (content[:100_000] + bytes(600_000) + content[700_000:], content + b"x"):
            s3_server.request("PUT", path, damaged)
            with pytest.raises(errors.SegmentDamaged):
                connection.execute("select id, a, b, n from t where id = 30000")
    finally:
        s3_server.request("PUT", path, content)
    assert connection.execute(ROW.format(30_000)).fetchall() == [(30_000, 30_000)]
