"""Indexes that are built while others write."""

from contextlib import suppress
from itertools import count

import pytest

from seachange import errors
from tests.scenarios.scenario import CREATED, ROWS, Scenario
from tests.support.nodes import HOUR_S, Place, ShiftedClock, open_ported_node

INDEX = "create index concurrently item_code on item (code)"
UNIQUE = "create unique index concurrently item_code on item (code)"


@pytest.mark.parametrize("offset_s", [HOUR_S, -HOUR_S], ids=["ahead", "behind"])
def test_a_writer_whose_clock_is_wrong_leaves_entries(db: Scenario, offset_s: int):
    """CockroachDB #18533: a write on a node whose clock is ahead, and a backfill that reads at an older timestamp: an
    entry is missing."""
    place = Place(db.node.parts.data)
    other = Scenario(open_ported_node(place, "elsewhere", clock=ShiftedClock(offset_s)))
    numbers = count(1_000)

    def write() -> None:
        for sql in (
            f"insert into item values ({next(numbers)}, 'new {next(numbers)}', 0, 0)",
            f"delete from item where id = {next(numbers) - 995}",
        ):
            # The epoch of a node whose clock is behind is ended whenever another node looks, also during a statement.
            while not is_written(sql):
                pass

    def is_written(sql: str) -> bool:
        with suppress(errors.StaleNode):
            other.run(sql)
            return True
        return False

    # A node whose clock is ahead ends the epochs of others: that costs the runner its job, and nothing else.
    other.node.jobs.paused = True
    try:
        assert db.change(INDEX, write) == ""
    finally:
        other.node.close()
    db.judge()


def test_a_unique_key_that_comes_and_goes_before_the_backfill(db: Scenario):
    """TiDB #40464: a key is inserted and deleted while the index is only written to; then comes the backfill."""

    def come_and_go() -> None:
        db.run("insert into item values (1000, 'fleeting', 0, 0)")
        db.run("delete from item where id = 1000")
        db.run("delete from item where id = 7")
        db.run("insert into item values (7, 'c7', 0, 0)")

    assert db.change(UNIQUE, come_and_go) == ""
    db.judge()
    db.run("insert into item values (1001, 'fleeting', 0, 0)")
    assert db.refuse("insert into item values (1002, 'c7', 0, 0)") == "23505"


def test_deletes_during_the_backfill_stay_deletes(db: Scenario):
    """TiDB #39232, #44449: what was deleted while the index was built comes back when temporary entries are merged."""
    ids = count(1)
    assert db.change(UNIQUE, lambda: db.run(f"delete from item where id = {next(ids)}")) == ""
    db.judge()
    assert db.run("select count(*) from item where code in ('c1', 'c2', 'c3')") == [(0,)]


def test_updates_during_the_backfill_are_not_missed(db: Scenario):
    """YugabyteDB #24313: concurrent updates, not only appends, are missed by the backfill."""
    changes = count()

    def update() -> None:
        db.run(f"update item set code = code || '.{next(changes)}' where id % 5 = 0")

    assert db.change(INDEX, update) == ""
    db.judge()


def test_a_long_transaction_commits_two_states_later(db: Scenario):
    """TiDB #59960, #59961: a transaction from before the index commits when it is PUBLIC, and leaves no entry. There it
    has to be refused or waited for; here it is made to fit."""
    session = db.session()
    session.execute("begin")
    session.execute("insert into item values (1000, 'long', 0, 0)")
    session.execute("update item set code = 'moved' where id = 3")
    session.execute("delete from item where id = 4")
    assert db.change(UNIQUE) == ""
    session.execute("commit")
    db.judge()
    assert db.run("select id from item where code in ('long', 'moved', 'c3', 'c4') order by id") == [(3,), (1000,)]


def test_a_long_transaction_that_brings_a_duplicate_is_refused(db: Scenario):
    """The same, where it cannot be made to fit: by the constraint, at its COMMIT."""
    session = db.session()
    session.execute("begin")
    session.execute("insert into item values (1000, 'c1', 0, 0)")
    assert db.change(UNIQUE) == ""
    with pytest.raises(errors.UniqueViolation):
        session.execute("commit")
    db.judge()


def test_updates_and_compaction_during_the_build_of_a_key(db: Scenario):
    """PostgreSQL 14.0 to 14.3: updates that do not touch the key, and pruning, lose entries of CREATE INDEX
    CONCURRENTLY."""

    def churn() -> None:
        db.run("update item set n = n + 1 where id <= 50")
        (table,) = db.node.epoch.schemas.newest.by_id.values()
        db.node.compact(table)
        db.node.collect_garbage(0)

    assert db.change(INDEX, churn) == ""
    db.judge()


def test_a_new_index_is_not_taken_for_one_that_was_dropped(db: Scenario):
    """PostgreSQL 3c84046: "just created" and "about to be dropped" looked alike, so writers skipped the new index."""
    assert db.change(INDEX) == ""
    session = db.session()
    session.execute("begin")
    session.execute("insert into item values (1000, 'between', 0, 0)")
    db.run("drop index item_code")
    assert db.change(INDEX, {CREATED: lambda: db.run("insert into item values (1001, 'new', 0, 0)")}) == ""
    session.execute("commit")
    db.judge()
    assert db.entries("item_code") == ROWS + 2


def test_readers_see_every_row_once_at_every_moment(db: Scenario):
    """PostgreSQL 3c84046: the switch was seen twice, or not at all, by a concurrent reader."""
    snapshot = db.session()
    snapshot.execute("begin isolation level repeatable read")

    def read() -> None:
        for run in (db.run, lambda sql: snapshot.execute(sql).rows):
            assert run("select id from item where code = 'c9'") == [(9,)]
            assert run("select count(*), count(distinct id) from item where code like 'c%'") == [(ROWS, ROWS)]

    assert db.change(UNIQUE, read) == ""
    read()


def test_an_index_never_has_more_entries_than_the_table_has_rows(db: Scenario):
    """CockroachDB #18744."""
    changes = count(5_000)

    def churn() -> None:
        db.run(f"update item set code = 'again {next(changes)}' where id = 1")
        db.run(f"delete from item where id = {next(changes) - 4_990}")

    job_id = db.begin(INDEX)
    churn()
    db.run(f"cancel job {job_id}")
    assert db.finish(job_id) == "57014"
    assert db.change(INDEX, churn) == ""
    assert [(db.entries("item_code"),)] == db.run("select count(*) from item")
    db.judge()


def test_two_partial_indexes_with_one_predicate(db: Scenario):
    """CockroachDB PR #74475: they corrupted each other."""
    rows = count(1_000)

    def write() -> None:
        db.run(f"insert into item values ({next(rows)}, 'new {next(rows)}', 3, {next(rows)})")
        db.run("update item set category = 3 - category where category in (0, 3) and id < 50")

    assert db.change("create unique index concurrently one on item (code) where category = 3", write) == ""
    assert db.change("create unique index concurrently two on item (n) where category = 3", write) == ""
    db.run("drop index one")
    write()
    db.judge()


def test_an_index_over_moments_built_by_one_in_another_time_zone(db: Scenario):
    """TiDB 7.1 to 7.4: an index on a TIMESTAMP column built by distributed workers is inconsistent."""
    db.run("create table log (id int primary key, at timestamptz)")
    db.run(
        "insert into log select i, timestamptz '2024-03-31 00:30+00' + i * interval '10 min' "
        "from generate_series(1, 30) g(i)"
    )
    session = db.session()
    session.execute("set timezone = 'Europe/Berlin'")
    ids = count(100)

    def write() -> None:
        session.execute(f"insert into log values ({next(ids)}, '2024-03-31 03:{next(ids) % 60}')")

    assert db.change("create unique index concurrently log_at on log (at, id)", write) == ""
    db.judge()
    session.execute("set timezone = 'Asia/Kolkata'")
    assert session.execute("select count(*) from log where at >= '2024-03-31 05:30+05:30'").rows == db.run(
        "select count(*) from log where at >= '2024-03-31 00:00+00'"
    )


def test_files_are_merged_while_they_are_read(db: Scenario):
    """YugabyteDB #6704, #15112: tablets are split during a backfill. Here files are folded into others."""

    def fold() -> None:
        (table,) = db.node.epoch.schemas.newest.by_id.values()
        db.node.compact(table, full=True)
        db.node.collect_garbage(0)

    assert db.change(UNIQUE, {"job.raised": fold, "job.unit": fold, "job.attached": fold}) == ""
    db.judge()


def test_nothing_is_left_of_a_unique_index_that_failed(db: Scenario):
    """YugabyteDB 2025.1.2.0-b69: a failed build was left half-removed; the next DDL dropped its storage, and later
    inserts failed."""
    assert db.change("create unique index concurrently item_category on item (category)") == "23505"
    db.run("alter table item add column more int default 5")
    db.run("insert into item values (1000, 'new', 1, 1, 6)")
    assert db.change("create index concurrently item_category on item (category)") == ""
    db.run("drop index item_category")
    db.node.collect_garbage(0)
    db.run("insert into item values (1001, 'newer', 1, 1, 7)")
    db.judge()
