"""Columns and constraints that change under those who use them."""

import threading
from itertools import count

import pytest

from seachange import errors
from tests.scenarios.scenario import CREATED, ROWS, Scenario
from tests.support.workers import wait_until


def test_two_sessions_make_the_same_lossy_type_change(db: Scenario):
    """TiDB #31048, #60261: rows could not be decoded any more. Here the second waits, and finds nothing to do."""
    statement = "alter table concurrently item alter column n type smallint"
    first = db.begin(statement)
    session = db.session()
    second = threading.Thread(target=lambda: session.execute("alter table item alter column n type smallint"))
    second.start()
    wait_until(lambda: session.notices, "the second to wait")
    db.run("update item set n = n + 1 where id = 1")
    assert db.finish(first) == ""
    second.join()
    assert db.run("select sum(n)::int from item") == [(ROWS * (ROWS + 1) // 2 + 1,)]
    assert db.refuse("insert into item values (1000, 'x', 0, 100000)") == "22003"
    db.judge()


@pytest.mark.parametrize("moment", [CREATED, "job.raised", "job.built", "job.attached", "job.published"])
def test_a_row_is_inserted_before_and_committed_during_a_type_change(db: Scenario, moment: str):
    """TiDB #26203: its value became NULL. Here it is converted like the others, whenever it comes."""
    session = db.session()
    session.execute("begin")
    session.execute("insert into item values (1000, 'x', 0, 42)")
    session.execute("update item set n = 43 where id = 1")
    commit = {moment: lambda: session.execute("commit")}
    assert db.change("alter table concurrently item alter column n type text", commit) == ""
    assert db.run("select id, n from item where id in (1, 1000) order by id") == [(1, "43"), (1000, "42")]
    db.judge()


def test_a_check_without_a_meaning_for_the_new_type_refuses_no_writer(db: Scenario):
    """Found by random load: the change was begun, and until it failed every writer was refused by the check to come."""
    assert db.change("alter table concurrently item add constraint positive check (n > 0)") == ""
    assert db.refuse("alter table concurrently item alter column n type text") == "42883"
    assert db.run("select count(*) from seachange.jobs where status = 'running'") == [(0,)]
    db.run("insert into item values (1000, 'x', 0, 5)")
    assert db.refuse("insert into item values (1001, 'x', 0, 0)") == "23514"
    db.judge()


def test_an_update_reads_and_writes_a_column_that_is_dropped(db: Scenario):
    """TiDB #15386."""
    session = db.session()
    session.execute("begin")
    session.execute("update item set n = n + 1, code = 'changed ' || n where n <= 5")
    db.run("alter table item drop column n")
    session.execute("commit")
    assert db.run("select count(*) from item where code like 'changed %'") == [(5,)]
    db.judge()


def test_a_dropped_column_is_whole_when_the_change_beside_it_fails(db: Scenario):
    """CockroachDB #46541, #47712, #127662: DROP COLUMN with a failing constraint in one statement: the column that was
    restored was empty, or the rollback never ended."""
    statement = "alter table concurrently item drop column n, add constraint u unique (category)"
    rows = count(1_000)
    assert db.change(statement, lambda: db.run(f"insert into item values ({next(rows)}, 'x', 0, 7)")) == "23505"
    assert db.run("select sum(n)::int from item where id <= 100") == [(ROWS * (ROWS + 1) // 2,)]
    assert db.run("select distinct n from item where id >= 1000") == [(7,)]
    db.judge()


def test_a_new_column_goes_without_a_trace_when_the_change_beside_it_fails(db: Scenario):
    """CockroachDB #99950: the new column was written into the old primary index, then rolled back."""
    statement = "alter table concurrently item add column more int default 5, add constraint u unique (category)"
    assert db.change(statement, lambda: db.run("update item set n = n + 1 where id = 1")) == "23505"
    assert db.refuse("select more from item") == "42703"
    db.run("alter table item add column more int")
    assert db.run("select count(more) from item") == [(0,)]
    db.judge()


def test_a_column_that_a_queued_change_uses_is_not_dropped_under_it(db: Scenario):
    """CockroachDB #61500."""
    job_id = db.begin("create index concurrently item_n on item (n)")
    session = db.session()
    session.execute("set lock_timeout = '50ms'")
    with pytest.raises(errors.LockNotAvailable):
        session.execute("alter table item drop column n cascade")
    assert db.finish(job_id) == ""
    session.execute("alter table item drop column n cascade")
    assert db.refuse("drop index item_n") == "42704"
    db.judge()


def test_rows_of_both_versions_while_a_required_column_is_dropped(db: Scenario):
    """CockroachDB #143429: NOT NULL went before the column left the primary index, and DML failed."""
    assert db.change("alter table concurrently item alter column n set not null") == ""
    with_it, without_it = db.session(), db.session()
    with_it.execute("begin")
    with_it.execute("insert into item values (1000, 'with', 0, 1)")
    job_id = db.begin("alter table concurrently item drop column n, add constraint u unique (code)")
    db.run("insert into item values (1001, 'with too', 0, 1)")
    assert db.refuse("insert into item values (1002, 'without', 0)") == "23502"
    assert db.finish(job_id) == ""
    without_it.execute("insert into item values (1002, 'without', 0)")
    with_it.execute("commit")
    assert db.run("select count(*) from item where id >= 1000") == [(3,)]
    db.judge()


def test_the_type_of_an_indexed_column_changes_while_rows_are_written(db: Scenario):
    """YugabyteDB TA-24007: the index is rebuilt, the table is not, and writes are missed. Here widening rebuilds
    nothing."""
    assert db.change("create index concurrently item_n on item (n)") == ""
    session = db.session()
    session.execute("begin")
    session.execute("insert into item values (1000, 'x', 0, 5)")
    db.run("alter table item alter column n type bigint")
    db.run("update item set n = 5000000000 where id = 1")
    session.execute("commit")
    assert db.run("select id from item where n in (5, 5000000000) order by id") == [(1,), (5,), (1000,)]
    db.judge()


def test_not_null_is_added_while_a_null_commits_first(db: Scenario):
    """DuckLake accepts it, Iceberg does not look: NOT NULL is added while an INSERT of NULL is under way."""
    session = db.session()
    session.execute("begin")
    session.execute("insert into item values (1000, 'x', 0, null)")
    job_id = db.begin("alter table concurrently item alter column n set not null")
    session.execute("commit")
    # It was planned before the constraint, and was waited for: so the change fails, and says why.
    assert db.finish(job_id, drain_ms=5_000) == "23502"
    session.execute("begin")
    session.execute("insert into item values (1001, 'x', 0, null)")
    db.run("delete from item where id = 1000")
    assert db.change("alter table concurrently item alter column n set not null") == ""
    # It is too late: no drain has waited for it.
    with pytest.raises(errors.NotNullViolation):
        session.execute("commit")
    db.judge()


def test_dropped_and_renamed_columns_do_not_bring_values_back(db: Scenario):
    """HUDI-8320: a column is dropped and another renamed to its name: old values are back."""
    db.run("alter table item drop column n")
    db.run("alter table item rename column category to n")
    assert db.run("select n from item where id = 8") == [(1,)]
    db.run("alter table item add column category int")
    db.run("insert into item (id, code, n, category) values (1000, 'x', 5, 6)")
    db.node.compact(next(iter(db.node.epoch.schemas.newest.by_id.values())), full=True)
    assert db.run("select count(category), sum(n)::int from item where id <= 3") == [(0, 6)]
    db.judge()


def test_a_writer_from_before_a_rename(db: Scenario):
    """ClickHouse #109838: what it writes under the old name is lost."""
    session = db.session()
    session.execute("begin")
    session.execute("insert into item (id, code, category, n) values (1000, 'x', 0, 42)")
    db.run("alter table item rename column n to m")
    db.run("alter table item rename to thing")
    session.execute("commit")
    assert db.run("select m from thing where id = 1000") == [(42,)]
    db.judge()


def test_values_are_not_dropped_silently(db: Scenario):
    """apache/iceberg#15878: a sink went on without the column that was no longer there. A writer from before stands
    before the change: its value goes with the column that it was written to, and is not that of the one that came."""
    session = db.session()
    session.execute("begin")
    session.execute("insert into item values (1000, 'x', 0, 42)")
    db.run("alter table item drop column n")
    db.run("alter table item add column n int")
    # Fenced, so that the old version does not pass as it is.
    assert db.change("create index concurrently item_n on item (n)") == ""
    session.execute("commit")
    assert db.run("select id, n from item where id = 1000") == [(1000, None)]
    db.judge()


def test_several_changes_of_one_column_in_one_transaction(db: Scenario):
    """ducklake#683, #1141."""
    session = db.session()
    session.execute("begin")
    for change in (
        "add column more int default 5",
        "alter column more set default 6",
        "rename column more to most",
        "alter column most type bigint",
        "alter column most set default 7",
    ):
        session.execute(f"alter table item {change}")
    session.execute("insert into item values (1000, 'x', 0, 1)")
    session.execute("commit")
    db.run("insert into item values (1001, 'y', 0, 1)")
    assert db.run("select distinct id >= 1000, most from item order by 1") == [(False, 5), (True, 7)]
    db.judge()
