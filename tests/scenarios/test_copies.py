"""Rows that are copied while they are written: what shadow tables, triggers and logs got wrong, and lakehouses."""

from itertools import count

import pyarrow as pa
import pytest

from seachange import errors
from tests.scenarios.scenario import MOMENTS, ROWS, Scenario

PRIMARY = "alter table concurrently item alter primary key using columns (code)"


def fold(db: Scenario, full: bool = True) -> None:
    for table in db.node.epoch.schemas.newest.by_id.values():
        db.node.compact(table, full=full)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_late_duplicate_deletes_no_row(db: Scenario, moment: str):
    """gh-ost #1636: UNIQUE is added while duplicates arrive after the copy: REPLACE deletes the older row."""
    outcomes: list[str] = []

    def insert() -> None:
        try:
            db.run("insert into item values (1000, 'c1', 0, 0)")
            outcomes.append("")
        except errors.UniqueViolation as problem:
            outcomes.append(problem.sqlstate)

    changed = db.change("create unique index concurrently item_code on item (code)", {moment: insert})
    # One of the two is refused, the later one, and the row that existed before stays.
    assert sorted([changed, *outcomes]) == ["", "23505"]
    assert db.run("select n from item where id = 1") == [(1,)]
    db.judge()


def test_keys_with_trailing_zero_bytes(db: Scenario):
    """gh-ost #654, #909: updates and deletes of rows with binary keys were not applied to the copy."""
    db.run("create table blob (k bytea primary key, n int)")
    keys = (b"", b"\x00", b"a", b"a\x00", b"a\x00\x00", b"\xff\x00", b"\xff")
    for number, key in enumerate(keys):
        db.run("insert into blob values ($1, $2)", (key, number))
    fold(db)

    def write() -> None:
        for key in keys:
            db.run("update blob set n = n + 10 where k = $1", (key,))
        db.run("delete from blob where k = $1", (b"a\x00",))
        db.run("insert into blob values ($1, 100)", (b"a\x00",))

    assert db.change("create unique index concurrently blob_n on blob (n, k)", {"job.raised": write}) == ""
    assert db.run("select count(*) from blob") == [(len(keys),)]
    assert db.run("select n from blob where k = $1", (b"a\x00\x00",)) == [(14,)]
    db.judge()


def test_the_last_rows_before_the_switch_are_there(db: Scenario):
    """spirit PR #156, vitess PR #8390: a race at the cut-over loses the last rows; the stop position is taken too
    early."""
    rows = count(1_000)
    written: list[int] = []

    def write() -> None:
        written.append(next(rows))
        db.run(f"insert into item values ({written[-1]}, 'late {written[-1]}', 0, 0)")
        db.run(f"update item set n = -1 where id = {len(written)}")

    assert db.change(PRIMARY, write) == ""
    assert db.run("select count(*) from item where id >= 1000") == [(len(written),)]
    assert db.run("select count(*) from item where n = -1") == [(len(written),)]
    db.judge()


def test_unique_values_are_swapped_while_they_are_copied(db: Scenario):
    """pg_repack #70: replaying the log row by row meets its own values."""

    def swap() -> None:
        db.run("update item set code = case id when 1 then 'c2' else 'c1' end where id in (1, 2) and code = 'c' || id")
        db.run("update item set code = 'c' || id where id in (1, 2)")

    assert db.change("create unique index concurrently item_code on item (code)", swap) == ""
    db.judge()
    assert db.change(PRIMARY, swap) == ""
    db.judge()


def test_a_twin_that_is_written_in_the_same_transactions(db: Scenario):
    """pg-osc #58: a race between replay and swap, found by comparing with a table that was written alongside."""
    db.run("create table twin (id int primary key, code text, n int)")
    db.run("insert into twin select id, code, n from item")
    steps = count(1)

    def write() -> None:
        step = next(steps)
        session = db.session()
        session.execute("begin")
        for table in ("item", "twin"):
            session.execute(f"update {table} set n = n + {step} where id % {step + 1} = 0")
            session.execute(f"update {table} set code = code || '.{step}' where id = {step}")
            session.execute(f"delete from {table} where id = {50 + step}")
            session.execute(f"insert into {table} (id, code, n) values ({1_000 + step}, 'new {step}', {step})")
        session.execute("commit")

    assert db.change(PRIMARY, write) == ""
    db.run("alter table item drop column category")
    write()
    shown = "select id, code, n from {} order by id"
    assert db.run(shown.format("item")) == db.run(shown.format("twin"))
    db.judge()


def test_compaction_keeps_columns_that_are_newer_than_the_files(db: Scenario):
    """apache/paimon#6124: compaction dropped new columns."""
    db.run("alter table item add column more int default 5")
    db.run("insert into item select i, 'n' || i, 0, 0, i from generate_series(200, 290) g(i)")
    session = db.session()
    session.execute("begin isolation level repeatable read")
    session.execute("select count(*) from item")
    db.run("alter table item add column most int default 6")
    db.run("update item set most = id where id <= 10")
    fold(db)
    assert db.run("select sum(more)::int, sum(most)::int from item where id <= 20") == [(100, 55 + 60)]
    assert db.run("select more, most from item where id = 250") == [(250, 6)]
    # Who began before knows nothing of the newest, and reads as before.
    assert session.execute("select * from item where id = 1").rows == [(1, "c1", 1, 1, 5)]
    db.judge()


def test_statistics_do_not_hide_rows_that_came_meanwhile(db: Scenario):
    """duckdb/ducklake#1372: statistics were lost under concurrent inserts, and rows with them."""
    session = db.session()
    session.execute("begin")
    session.execute("insert into item select i, 'z' || i, 9, i from generate_series(10000, 10100) g(i)")
    db.run("insert into item select -i, 'a' || i, -9, -i from generate_series(1, 90) g(i)")
    session.execute("commit")
    fold(db, full=False)
    for condition, expected in (("id > 9999", 101), ("n < 0", 90), ("category = 9", 101), ("id between -5 and 5", 10)):
        assert db.run(f"select count(*) from item where {condition}") == [(expected,)]
    db.judge()


def test_rows_in_the_catalog_across_versions(db: Scenario):
    """duckdb/ducklake#1383, pg_ducklake#111: rows that were inlined under an older version were read wrongly under a
    newer one, or flushed wrongly."""
    db.run("create table note (id int primary key, a int, b text)")
    db.run("insert into note values (1, 1, 'one')")
    db.run("alter table note add column c int default 3")
    db.run("insert into note values (2, 2, 'two', 4)")
    db.run("alter table note drop column a")
    db.run("insert into note values (3, 'three', 5)")
    db.run("alter table note alter column c type bigint")
    db.run("alter table note rename column b to a")
    db.run("insert into note values (4, 'four', 6000000000)")
    db.run("update note set c = c + 1 where id = 1")
    expected = [(1, "one", 4), (2, "two", 4), (3, "three", 5), (4, "four", 6_000_000_000)]
    assert db.run("select * from note order by id") == expected
    fold(db)
    assert db.run("select * from note order by id") == expected
    db.judge()


def test_a_bulk_load_that_was_prepared_before_the_change(db: Scenario):
    """The same as for rows, for files that a transaction has written and not yet committed."""
    txn = db.node.begin()
    table = txn.schema.table(None, "item")
    ids = list(range(1_000, 1_200))
    loaded = pa.table(
        {"id": ids, "code": [f"b{i}" for i in ids], "category": [1] * len(ids), "n": ids},
        schema=pa.schema([("id", pa.int32()), ("code", pa.string()), ("category", pa.int32()), ("n", pa.int32())]),
    )
    txn.writes.insert_arrow(table, loaded.to_reader())
    assert db.change("create unique index concurrently item_code on item (code)") == ""
    db.run("alter table item add column more int default 5")
    txn.commit()
    assert db.run("select count(*), sum(more)::int from item where code like 'b%'") == [(200, 1_000)]
    assert db.entries("item_code") == ROWS + len(ids)
    db.judge()
