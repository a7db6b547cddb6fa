"""Statistics of columns in manifests: readers skip files by them, and never rows that they look for."""

from collections.abc import Iterator

import pytest

from tests.iceberg.reading import Lake, Rows, in_order, open_lake
from tests.iceberg.test_readers import A_ROW, EVERY_TYPE

from pyiceberg.table import StaticTable  # isort: skip


def planned(address: str, condition: str) -> int:
    """The number of data files that a scan opens."""
    return len(list(StaticTable.from_metadata(address).scan(row_filter=condition).plan_files()))


def found(address: str, condition: str) -> Rows:
    return in_order(StaticTable.from_metadata(address).scan(row_filter=condition).to_arrow().to_pylist())


def three_files(lake: Lake) -> None:
    lake.run("create table t (id int primary key, s text, price numeric(9,2), at timestamptz, maybe int)")
    for number in range(3):
        lake.run(
            f"""insert into t select i, 's' || {number}, i / 4.0, '2020-01-0{number + 1} 12:00+00',
            case when {number} = 1 then i end from generate_series({number * 10_000}, {number * 10_000 + 5999}) i"""
        )


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("id = 10005", 1),
        ("id >= 20000", 1),
        ("id > 30000", 0),
        ("s = 's2'", 1),
        ("s = 'other'", 0),
        ("price < -1", 0),
        ("price >= 5000", 1),
        ("at > '2020-01-02T13:00:00+00:00'", 1),
        ("maybe is null", 2),
        ("maybe = 10007", 1),
    ],
)
def test_files_are_skipped(shared_lake: Lake, condition: str, files: int):
    address = shared_lake.export().address
    assert planned(address, condition) == files
    everything = found(address, "id >= 0")
    assert len(everything) == 18_000


@pytest.fixture(scope="module")
def shared_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with open_lake(tmp_path_factory.mktemp("lake") / "data") as lake:
        three_files(lake)
        yield lake


def test_no_row_of_any_type_is_lost(lake: Lake):
    lake.run(EVERY_TYPE, A_ROW.format(id=1), "vacuum full t")
    address = lake.export().address
    text = """i2 = 3; i8 = 9; f4 = 1.5; n = 12.50; s = 'äß'; v = 'v'; d = '2020-02-29'; o > 5; ok = true;
        ti = '12:34:56.7'; ts = '2020-01-02T03:04:05.678901'; tz = '2020-01-02T01:04:05+00:00'; iv is null;
        n38 = 100000000000000000000.0000000000;
        big = 7.250000000000000000; f8 is not null; i2 > 2; n < 12.51; n38 > 99.0000000000; big < 7.260000000000000000;
        s > 'z'; d >= '2020-02-29'; b is not null"""
    conditions = [each.strip() for each in text.split(";")]
    # pyiceberg cannot compare UUIDs of rows.
    assert planned(address, "u = '7d444840-9dc0-11d1-b245-5ffdce74fad2'") == 1
    assert planned(address, "u = '7d444840-9dc0-11d1-b245-5ffdce74fad3'") == 0
    assert [condition for condition in conditions if len(found(address, condition)) != 1] == []


def test_widened_columns_lose_the_bounds_of_older_files(lake: Lake):
    lake.run("create table t (id int primary key, n int, p numeric(5,2))")
    lake.run("insert into t select i, i, 1.5 from generate_series(1, 6000) i")
    first = lake.check()
    assert planned(first.address, "n > 7000") == 0
    lake.run("alter table t alter n type bigint", "alter table t alter p type numeric(9,2)")
    second = lake.check()
    assert planned(second.address, "n > 7000") == 1
    assert planned(second.address, "id > 7000") == 0
    assert len(found(second.address, "n > 5990")) == 10
    assert len(found(second.address, "p = 1.50")) == 6000
    lake.run("insert into t select i, i, 1.5 from generate_series(10001, 16000) i")
    third = lake.check()
    assert planned(third.address, "n > 7000") == 2
    assert {file.path for m in first.manifests for file in m.files} < {f.path for m in third.manifests for f in m.files}
    lake.run("vacuum full t")
    assert planned(lake.check().address, "n > 20000") == 0
