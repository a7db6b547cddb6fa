"""CALL seachange.import_table: files and tables of other engines become tables."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seachange import errors
from seachange.engine.imports.import_folders import ImportFolders
from seachange.runtime.faults import FAULTS
from seachange.verify.consistency import inspect
from tests.iceberg.reading import Lake, in_order, open_lake, read

ROWS = {
    "id": pa.array([1, 2, 3], pa.int64()),
    "Name": pa.array(["a", None, "äß"]),
    "price": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(9, 2)),
    "day": pa.array([0, 18321, None], pa.date32()),
    "at": pa.array([0, 1_600_000_000_123_456, None], pa.timestamp("us", tz="UTC")),
    "tags": pa.array([["x", None], [], None], pa.list_(pa.string())),
    "raw": pa.array([b"\x00\xff", b"", None], pa.binary()),
    "ok": pa.array([True, False, None]),
    "small": pa.array([1, 2, None], pa.uint16()),
}


@pytest.fixture
def incoming(tmp_path: Path) -> Path:
    folder = tmp_path / "incoming"
    folder.mkdir()
    return folder


@pytest.fixture
def lake(tmp_path: Path, incoming: Path) -> Iterator[Lake]:
    with open_importing(tmp_path / "data", str(incoming)) as lake:
        yield lake


def open_importing(data: Path, folders: str) -> Any:
    data.mkdir(exist_ok=True)
    (data / "seachange.toml").write_text(f'"seachange.import_folders" = "{folders}"\n')
    return open_lake(data)


def write(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def load(lake: Lake, *arguments: object) -> list[tuple[Any, ...]]:
    given = ", ".join("'" + str(each).replace("'", "''") + "'" for each in arguments)
    lake.run(f"call seachange.import_table({given})")
    return [*lake.session.execute("select * from t order by 1").rows]


def test_parquet_becomes_a_table_with_its_columns(lake: Lake, incoming: Path):
    rows = load(lake, "t", "parquet", write(incoming / "a.parquet", **ROWS), "id")
    assert len(rows) == 3
    shown = lake.session.execute(
        "select column_name, data_type, is_nullable from information_schema.columns where table_name = 't'"
    ).rows
    assert [(name, type_) for name, type_, _ in shown] == [
        ("id", "bigint"),
        ("Name", "text"),
        ("price", "numeric"),
        ("day", "date"),
        ("at", "timestamp with time zone"),
        ("tags", "ARRAY"),
        ("raw", "bytea"),
        ("ok", "boolean"),
        ("small", "integer"),
    ]
    assert in_order([dict(zip(ROWS, row, strict=True)) for row in rows]) == lake.sql()
    assert [row[0] for row in rows] == [1, 2, 3]
    assert rows[0][2] == Decimal("1.50")
    assert rows[0][6] == b"\x00\xff"
    with pytest.raises(errors.UniqueViolation):
        load(lake, "t", "parquet", incoming / "a.parquet")
    assert len(lake.sql()) == 3


def test_many_files_by_a_glob_into_a_table_that_exists(lake: Lake, incoming: Path):
    for number in range(4):
        first = number * 3_000
        ids = pa.array(range(first, first + 3_000), pa.int32())
        write(incoming / f"part-{number}.parquet", ID=ids, s=pa.array([f"s{i}" for i in range(first, first + 3_000)]))
    lake.run("create table t (id bigint primary key, n serial, s text unique, more text default 'd')")
    rows = load(lake, "t", "parquet", incoming / "part-*.parquet")
    assert len(rows) == len({n for _, n, _, _ in rows}) == 12_000
    assert {more for *_, more in rows} == {"d"}
    assert lake.session.execute("select id from t where s = 's7001'").rows == [(7001,)]
    assert not inspect(lake.node).anomalies


def test_errors_name_the_file_and_the_column(lake: Lake, incoming: Path):
    write(incoming / "1.parquet", id=pa.array([1, 2]), n=pa.array(["1", "2"]))
    write(incoming / "2.parquet", id=pa.array([3, 4]), n=pa.array(["3", "four"]))
    lake.run("create table t (id int primary key, n text)", "create table n (id int primary key, n int)")
    with pytest.raises(errors.NotAssignable):
        lake.run(f"call seachange.import_table('n', 'parquet', '{incoming}/*.parquet')")
    write(incoming / "3.parquet", id=pa.array([5, 5_000_000_000]), n=pa.array(["3", "4"]))
    with pytest.raises(errors.DataError) as caught:
        load(lake, "t", "parquet", incoming / "*.parquet")
    assert caught.value.sqlstate == "22003"
    assert 'column "id"' in str(caught.value)
    assert "3.parquet" in str(caught.value)
    write(incoming / "4.parquet", id=pa.array([5]), m=pa.array(["3"]))
    with pytest.raises(errors.ImportFailed, match=r'1.parquet": there is no column "m"'):
        load(lake, "t", "parquet", incoming / "*.parquet")
    (incoming / "4.parquet").write_bytes(b"PAR1 is not enough")
    with pytest.raises(errors.ImportFailed, match=r"4.parquet"):
        load(lake, "t", "parquet", incoming / "*.parquet")
    write(incoming / "5.parquet", id=pa.array([1]), s=pa.array([{"a": 1}]))
    with pytest.raises(errors.FeatureNotSupported, match='column "s" of type struct'):
        load(lake, "x", "parquet", incoming / "5.parquet")
    assert lake.sql() == []


def test_odd_columns_are_taken_as_they_are_or_refused(lake: Lake, incoming: Path):
    numbers = {"a": pa.array([2**32 - 1], pa.uint32()), "b": pa.array([[2**32 - 1]], pa.list_(pa.uint32()))}
    assert load(lake, "t", "parquet", write(incoming / "a.parquet", **numbers)) == [(2**32 - 1, [2**32 - 1])]
    types = lake.session.execute("select pg_typeof(a)::text, pg_typeof(b)::text from t").rows
    assert types == [("bigint", "bigint[]")]
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(twice, incoming / "b.parquet")
    with pytest.raises(errors.ImportFailed, match='more than one column "a"'):
        load(lake, "u", "parquet", incoming / "b.parquet")
    write(incoming / "c.parquet", a=pa.array([Decimal("1.5")], pa.decimal256(50, 3)))
    with pytest.raises(errors.ImportFailed, match="more than 38 digits"):
        load(lake, "u", "parquet", incoming / "c.parquet")
    for text in (pa.array(["x", "a\0b"]), pa.array([["x", None], ["a\0b"]])):
        write(incoming / "d.parquet", id=pa.array([1, 2]), s=text)
        with pytest.raises(errors.CharacterNotInRepertoire):
            load(lake, "u", "parquet", incoming / "d.parquet")


def test_files_that_cannot_be_read_are_no_damage_of_the_database(lake: Lake, incoming: Path):
    good = write(incoming / "a[1].parquet", id=pa.array(range(10_000)))
    # A name with the signs of a pattern is one file.
    write(incoming / "a1.parquet", id=pa.array([-1]))
    assert len(load(lake, "t", "parquet", good)) == 10_000
    content = good.read_bytes()
    (incoming / "damaged.parquet").write_bytes(content[:100] + bytes(2_000) + content[2_100:])
    invalid = pa.StringArray.from_buffers(1, pa.array([0, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe"))
    pq.write_table(pa.table({"id": invalid}), incoming / "invalid.parquet")
    pq.write_table(pa.table({"id": [1]}).select([]), incoming / "empty.parquet")
    for name in ("damaged", "invalid", "empty"):
        with pytest.raises(errors.ImportFailed, match=f"{name}.parquet") as caught:
            load(lake, "u", "parquet", incoming / f"{name}.parquet")
        assert caught.value.sqlstate == "22000"
    assert not inspect(lake.node).anomalies


def test_an_import_is_part_of_a_transaction_block(lake: Lake, incoming: Path):
    path = write(incoming / "a.parquet", **ROWS)
    lake.run("begin", f"call seachange.import_table('t', 'parquet', '{path}', 'id')", "update t set price = 9")
    lake.run("rollback")
    with pytest.raises(errors.UndefinedTable):
        lake.run("select 1 from t")
    lake.run("begin", "create table t (id int primary key, note text default 'n')", "savepoint s")
    narrow = write(incoming / "b.parquet", id=pa.array([7, 8]))
    load(lake, "t", "parquet", narrow)
    lake.run("rollback to s", f"call seachange.import_table('t', 'parquet', '{narrow}')", "delete from t where id = 7")
    lake.run("commit")
    assert lake.sql() == [{"id": "8", "note": "n"}]


def test_only_files_below_the_folders_are_read(lake: Lake, incoming: Path, tmp_path: Path):
    secret = write(tmp_path / "secret.parquet", id=pa.array([1]))
    (incoming / "link.parquet").symlink_to(secret)
    (incoming / "folder").symlink_to(tmp_path)
    for place in (
        secret,
        tmp_path / "missing.parquet",
        tmp_path / "*.parquet",
        f"{incoming}/../secret.parquet",
        f"{incoming}/*/secret.parquet",
        f"{incoming}/link.parquet",
        f"file://{secret}",
        f"{incoming}x/*.parquet",
    ):
        with pytest.raises(errors.InsufficientPrivilege, match="not below"):
            load(lake, "t", "parquet", place)
        if "*" not in str(place):
            with pytest.raises(errors.InsufficientPrivilege, match="not below"):
                load(lake, "t", "iceberg", place)
    # Whether a file exists elsewhere is not shown.
    for place in ("relative.parquet", "", f"{incoming}/*/../../secret.parquet", f"{incoming}/*/../../nothing"):
        with pytest.raises(errors.InvalidParameterValue):
            load(lake, "t", "parquet", place)
    with pytest.raises(errors.InputOutputError, match="no such file"):
        load(lake, "t", "parquet", incoming / "missing*.parquet")
    with pytest.raises(errors.SettingOfNode):
        lake.run("set seachange.import_folders = '/'")


def test_who_may_import(lake: Lake, incoming: Path):
    path = write(incoming / "a.parquet", **ROWS)
    lake.run("create role ann", "create role bob createrole", "grant create on schema public to ann")
    lake.run("set role ann")
    with pytest.raises(errors.InsufficientPrivilege, match="pg_read_server_files"):
        load(lake, "t", "parquet", path)
    lake.run("reset role", "set role bob")
    with pytest.raises(errors.InsufficientPrivilege):
        lake.run("grant pg_read_server_files to bob")
    lake.run("reset role", "grant pg_read_server_files to ann", "set role ann")
    assert len(load(lake, "t", "parquet", path)) == 3
    lake.run("reset role", "create table owned (id int)", "set role ann")
    with pytest.raises(errors.InsufficientPrivilege):
        lake.run(f"call seachange.import_table('owned', 'parquet', '{path}')")
    lake.run("reset role")


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("call nothing()", "42883"),
        ("call seachange.import_table('t')", "42883"),
        ("call seachange.import_table('t', 'csv', '/x')", "22023"),
        ("call seachange.import_table('t; drop', 'parquet', '/x')", "42602"),
        ("call seachange.import_table('', 'parquet', '/x')", "42602"),
        ("call seachange.import_table(1, 'parquet', '/x')", "42601"),
        ("call seachange.export_iceberg('missing')", "42P01"),
    ],
)
def test_calls_that_are_refused(lake: Lake, statement: str, sqlstate: str):
    with pytest.raises(errors.Error) as caught:
        lake.run(statement)
    assert caught.value.sqlstate == sqlstate


def test_an_iceberg_table_with_deletes_and_changed_columns(tmp_path: Path, incoming: Path):
    """What one database exports another one imports."""
    with open_lake(incoming / "source") as source:
        source.run("create table t (id int primary key, s text, n int, gone text)")
        source.run("insert into t select i, 'x' || i, i, 'g' from generate_series(1, 6000) i")
        source.run(
            "alter table t rename s to title", "alter table t drop column gone", "alter table t alter n type bigint"
        )
        source.run("alter table t add column price numeric(9,2) not null default 12.5", "alter table t add tags text[]")
        source.run("delete from t where id % 10 = 0", "update t set tags = array['a', null] where id < 20")
        source.run("insert into t values (9000, 'new', 1, 3, null)")
        exported, rows = source.export(), source.sql()
    with open_importing(tmp_path / "data", str(incoming)) as lake:
        load(lake, "t", "iceberg", exported.address)
        assert lake.sql() == rows
        load(lake, "t2", "iceberg", Path(exported.address).parent, "id")
        assert lake.sql("t2") == rows
        with pytest.raises(errors.UniqueViolation):
            load(lake, "t2", "iceberg", exported.address)


def test_metadata_that_names_other_files_is_refused(tmp_path: Path, incoming: Path):
    """The metadata is below the folder, the segments are not."""
    with open_lake(tmp_path / "source") as source:
        source.run("create table t (id int primary key)", "insert into t select i from generate_series(1, 6000) i")
        exported = source.export()
    folder = str(Path(exported.address).parent)
    with open_importing(tmp_path / "data", folder) as lake:
        with pytest.raises(errors.InsufficientPrivilege, match="/segments/"):
            load(lake, "t", "iceberg", exported.address)
        broken = Path(folder) / "00001-broken.metadata.json"
        broken.write_text("{}")
        with pytest.raises(errors.ImportFailed):
            load(lake, "t", "iceberg", broken)


@pytest.mark.parametrize(
    ("place", "is_allowed"),
    [
        ("https://lake.example/catalog/v1/a/namespaces/b/tables/c", True),
        ("https://lake.example/catalog/../admin/v1/a/namespaces/b/tables/c", False),
        ("https://lake.example/catalog/%2e%2E/admin/v1/a/namespaces/b/tables/c", False),
        ("https://lake.example/catalog/%252e%252e/admin/v1/a/namespaces/b/tables/c", False),
        ("https://lake.example/catalog/v1/a/namespaces/b/tables/%2e%2e%2f%2e%2e", False),
        ("https://lake.example/catalog/v1/a/namespaces/b/tables/..%5c..", False),
        ("https://lake.example/catalogue/v1/a/namespaces/b/tables/c", False),
        ("https://lake.example@elsewhere/catalog/v1/a/namespaces/b/tables/c", False),
        ("s3://bucket/lake/data/x.parquet", True),
        ("s3://bucket/other/x.parquet", False),
        ("file:/etc/passwd", False),
        ("file://host/etc/passwd", False),
        ("/srv/incoming/x", True),
        ("file:///srv/incoming/x", True),
    ],
)
def test_places_that_are_allowed(place: str, is_allowed: bool):
    folders = ImportFolders(("https://lake.example/catalog", "s3://bucket/lake", "/srv/incoming", "/srv/files"))
    if is_allowed:
        folders.check(place)
    else:
        with pytest.raises(errors.InsufficientPrivilege):
            folders.check(place)


@pytest.mark.parametrize("ending", ["?x", "#x"])
def test_metadata_cannot_hide_a_link_behind_what_is_no_path(lake: Lake, incoming: Path, tmp_path: Path, ending: str):
    """Only the part before it is opened."""
    (tmp_path / "secret.metadata.json").write_text("{}")
    (incoming / "link.metadata.json").symlink_to(tmp_path / "secret.metadata.json")
    with pytest.raises(errors.InsufficientPrivilege):
        load(lake, "t", "iceberg", f"file://{incoming}/link.metadata.json{ending}/v1.metadata.json")


class _Catalog(BaseHTTPRequestHandler):
    """A REST catalog with one table, whose metadata is in a file."""

    metadata: Path
    properties: dict[str, str]

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        content: dict[str, Any] = {"defaults": {}, "overrides": {}}
        if self.path.endswith("/tables/t"):
            metadata = json.loads(self.metadata.read_text())
            metadata["properties"] = {**metadata.get("properties", {}), **self.properties}
            content = {"metadata-location": str(self.metadata), "metadata": metadata, "config": {}}
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(metadata: Path, **properties: str) -> Iterator[str]:
    names = {"metadata": metadata, "properties": properties}
    listener = ThreadingHTTPServer(("127.0.0.1", 0), type("Catalog", (_Catalog,), names))
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_address[1]}"
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()


def test_writers_of_a_table_choose_no_class_of_the_importer(tmp_path: Path, incoming: Path):
    """Properties of a table reach the program that opens its files."""
    with open_lake(incoming / "source") as source:
        source.run("create table t (id int primary key)", "insert into t select i from generate_series(1, 6000) i")
        exported, rows = source.export(), source.sql()
    mark = tmp_path / "chosen"
    chosen = {"py-io-impl": "tests.iceberg.chosen_class.ChosenFileIO", "mark": str(mark), "DEFAULT_SCHEME": "s3"}
    with (
        serving(Path(exported.address), **chosen) as uri,
        open_importing(tmp_path / "data", f"{incoming},{uri}") as lake,
    ):
        load(lake, "t", "iceberg", f"{uri}/v1/namespaces/public/tables/t")
        assert lake.sql() == rows
    assert not mark.exists()


def test_an_import_can_be_cancelled(lake: Lake, incoming: Path):
    path = write(incoming / "a.parquet", id=pa.array(range(200_000)))
    lake.run("create table t (id int primary key)")
    FAULTS.arm("segment.written", lake.session.interrupt)
    try:
        with pytest.raises(errors.QueryCanceled):
            load(lake, "t", "parquet", path)
    finally:
        FAULTS.disarm()
    assert lake.sql() == []


def test_a_table_is_exported_on_demand(lake: Lake):
    lake.run("create table t (id int primary key)", "insert into t values (1)")
    lake.session.notices.clear()
    lake.run("call seachange.export_iceberg('public.t')")
    (record,) = lake.node.parts.catalog.exports()
    assert record.metadata in lake.session.notices[-1]
    assert read(record.metadata) == lake.sql()
    lake.run("create role ann", "set role ann")
    with pytest.raises(errors.InsufficientPrivilege):
        lake.run("call seachange.export_iceberg('t')")
    lake.run("reset role", "begin")
    with pytest.raises(errors.InsideBlock):
        lake.run("call seachange.export_iceberg('t')")
    lake.run("rollback")
