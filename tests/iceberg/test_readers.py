"""pyiceberg reads the rows that SQL shows, whatever has happened to the table."""

import threading

import pytest

from seachange import errors
from tests.iceberg.reading import Lake, Rows, in_order, read

EVERY_TYPE = """create table t (id int primary key, i2 smallint, i8 bigint, f4 real, f8 double precision,
    n numeric(9,2), n38 numeric(38,10), big numeric, s text, v varchar(9), b bytea, d date, ti time, ts timestamp,
    tz timestamptz, u uuid, ok boolean, j json, jb jsonb, o oid, words text[], numbers int[], ids uuid[],
    iv interval)"""
A_ROW = """insert into t values ({id}, 3, 9, 1.5, 'NaN', 12.50, 1e20, 7.25, 'äß', 'v', '\\x00ff', '2020-02-29',
    '12:34:56.7', '2020-01-02 03:04:05.678901', '2020-01-02 03:04:05+02', '7d444840-9dc0-11d1-b245-5ffdce74fad2',
    true, '{{"a": 1}}', '{{"b": [1, 2]}}', 4000000000, array['x', null, 'y'], array[1, 2],
    array['7d444840-9dc0-11d1-b245-5ffdce74fad2'::uuid],
    null)"""
MANY = "insert into t select i, 'x' || i, i * 2 from generate_series(1, 8000) i"


def simplified(lake: Lake) -> Rows:
    """The rows without trailing zeros of numerics without a declared scale."""
    rows = lake.sql()
    for row in rows:
        row["big"] = f"{float(row['big']):.18f}"
    return in_order(rows)


def test_every_type_from_files_and_from_the_catalog(lake: Lake):
    lake.run(EVERY_TYPE, A_ROW.format(id=1), "vacuum full t", A_ROW.format(id=2))
    exported = lake.export()
    assert read(exported.address) == simplified(lake)
    assert {m.record["content"] for m in exported.manifests} == {0}
    assert sum(len(m.files) for m in exported.manifests) == 2


def test_an_interval_is_its_canonical_text(lake: Lake):
    lake.run("create table t (id int primary key, i interval)", "insert into t values (1, '1 year 2 days 3 hours')")
    assert read(lake.export().address)[0]["i"] == "12 months 2 days 10800000000 microseconds"


def test_changes_of_rows(lake: Lake):
    lake.run("create table t (id bigint primary key, s text, n int)", MANY)
    lake.check()
    lake.run("insert into t values (9001, 'inline', 1)")
    lake.check()
    lake.run("update t set s = 'changed' where id % 7 = 0 and id < 1000", "delete from t where id between 20 and 90")
    exported = lake.check()
    assert [m.record["content"] for m in exported.manifests].count(1) == 1
    lake.run("delete from t")
    assert lake.check().snapshot
    lake.run("truncate t", "insert into t values (1, 'again', 1)")
    lake.check()


def test_each_change_of_the_schema_is_an_evolution_by_id(lake: Lake):
    lake.run("create table t (id int primary key, s text, n int, x real)", MANY.replace("i * 2", "i * 2, 0.5"))
    lake.check()
    before = {field["name"]: field["id"] for field in fields_of(lake)}
    lake.run("alter table t rename s to title", "alter table t drop column x", "alter table t alter n type bigint")
    lake.check()
    lake.run("alter table t add column since timestamptz default '2021-01-01 00:00+00'")
    lake.run("alter table t add column price numeric(9,2) not null default 12.5")
    lake.run("alter table t add column code bytea default '\\x0a0b'", "alter table t add column maybe text")
    lake.check()
    lake.run("update t set price = 3 where id < 100", "insert into t (id, title) values (9000, 'new')")
    lake.check()
    now = {field["name"]: field["id"] for field in fields_of(lake)}
    assert (now["title"], now["n"], now["id"]) == (before["s"], before["n"], before["id"])
    assert next(f for f in fields_of(lake) if f["name"] == "n")["type"] == "long"
    lake.run("alter table t alter n type text using 'n' || n")
    lake.check()
    rebuilt = {field["name"]: field["id"] for field in fields_of(lake)}
    assert rebuilt["n"] not in now.values()
    lake.run("vacuum full t")
    lake.check()


def fields_of(lake: Lake) -> Rows:
    metadata = lake.export().metadata
    return next(s["fields"] for s in metadata["schemas"] if s["schema-id"] == metadata["current-schema-id"])


def test_tables_without_a_key_hide_their_row_numbers(lake: Lake):
    lake.run("create table t (s text, n int generated always as (length(s)) stored)")
    lake.run("insert into t select 'x' || i from generate_series(1, 6000) i", "insert into t values ('inline')")
    lake.run("delete from t where s = 'x5'")
    lake.check()
    assert [field["name"] for field in fields_of(lake)] == ["s", "n"]


def test_time_travel_shows_rows_and_columns_as_they_were(lake: Lake):
    lake.run("create table t (id int primary key, n int)", "insert into t select i, i from generate_series(1, 6000) i")
    first = lake.export().snapshot
    old = lake.sql()
    lake.run(
        "alter table t alter n type text using 'n' || n", "alter table t rename n to m", "delete from t where id > 3"
    )
    exported = lake.check()
    assert read(exported.address, first) == old
    history = exported.metadata["snapshots"]
    assert [s.get("parent-snapshot-id") for s in history] == [None, *(s["snapshot-id"] for s in history[:-1])]
    moments = [s["timestamp-ms"] for s in history]
    assert moments == sorted(set(moments))


def test_compaction_replaces_files_but_no_rows(lake: Lake):
    lake.run("create table t (id bigint primary key, s text, n int)", MANY)
    for number in range(3):
        lake.run(
            f"insert into t select i, 'y', {number} from generate_series({number}0001, {number}6000) i "
            "on conflict do nothing",
            f"delete from t where id % 5 = {number}",
        )
        lake.check()
    lake.node.compact(lake.table(), full=False)
    lake.check()
    lake.node.compact(lake.table(), full=True)
    assert sum(len(m.files) for m in lake.check().manifests) == 1


def test_an_export_shows_one_snapshot_while_writers_run(lake: Lake):
    """Every transaction moves an amount between two rows, so the sum is the same in every snapshot."""
    lake.run("create table t (id bigint primary key, s text, n int)", MANY)
    total = sum(int(row["n"]) for row in lake.sql())
    stop, problems = threading.Event(), []

    def move(first: int) -> None:
        mine = Lake(lake.node)
        number = 0
        while not stop.is_set():
            number += 1
            source, target = first + number % 50, first + 1000 + number % 50
            try:
                mine.run(
                    "begin",
                    f"update t set n = n - 1 where id = {source}",
                    f"update t set n = n + 1 where id = {target}",
                    "commit",
                )
            except Exception as problem:  # noqa: BLE001 - reported by the test
                problems.append(problem)
                return
        mine.session.close()

    writers = [threading.Thread(target=move, args=(first,)) for first in (1, 3000)]
    for writer in writers:
        writer.start()
    try:
        for step in range(4):
            if step == 2:
                lake.run("alter table t add column extra int default 5")
            rows = read(lake.export().address)
            assert (len(rows), sum(int(row["n"]) for row in rows)) == (8000, total)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert problems == []
    lake.check()


@pytest.mark.parametrize("rename", [True, False])
def test_enum_labels(lake: Lake, rename: bool):
    lake.run("create type mood as enum ('sad', 'happy')", "create table t (id int primary key, m mood)")
    lake.run("insert into t values (1, 'sad'), (2, 'happy')")
    lake.check()
    if rename:
        lake.run("alter type mood rename value 'sad' to 'blue'")
        with pytest.raises(errors.NotMappable, match="labels were renamed"):
            lake.export()


def test_an_array_default_that_files_lack_is_refused_until_they_are_rewritten(lake: Lake):
    lake.run("create table t (id int primary key)", "insert into t select i from generate_series(1, 6000) i")
    lake.run("alter table t add column tags text[] default array['a']")
    with pytest.raises(errors.NotMappable, match="default that older files lack"):
        lake.export()
    lake.run("vacuum full t")
    lake.check()


def test_a_column_with_the_name_of_elements_is_refused(lake: Lake):
    lake.run('create table t (id int primary key, tags text[], "tags.element" int, "tags.other" int)')
    with pytest.raises(errors.NotMappable, match="the name of the elements"):
        lake.export()
    lake.run('alter table t rename "tags.element" to plain', "insert into t values (1, array['a'], 2, 3)")
    lake.check()
