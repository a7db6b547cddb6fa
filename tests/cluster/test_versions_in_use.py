"""Who holds which version of a table while another process changes it, as `seachange.leases` tells."""

from collections.abc import Iterator
from typing import Any

import pytest

from seachange.engine.session.session import Session
from seachange.verify.consistency import check
from tests.cluster.sqlprocess import SqlProcess
from tests.support.nodes import Place, open_ported_node
from tests.support.workers import wait_until

ROWS = 200
CHANGES = (
    "alter table item add column added int not null default 7",
    "create unique index item_code on item (code)",
    "alter table item drop column old",
)
HELD = "select node, version, newest_version from seachange.leases where table_name = 'item' and session is not null"


@pytest.fixture
def watcher(place: Place) -> Iterator[Session]:
    node = open_ported_node(place, "watcher")
    session = Session(node)
    session.execute("create table item (id int primary key, code text, old int)")
    session.execute(f"insert into item select i, 'code ' || i, i from generate_series(1, {ROWS}) g(i)")
    yield session
    session.close()
    node.close()


def held(watcher: Session) -> dict[str, tuple[int, int]]:
    """By node: the version that its open transaction may commit with, and the newest one."""
    return {node: (version, newest) for node, version, newest in watcher.execute(HELD).rows}


def lowest(watcher: Session) -> int:
    ((version,),) = watcher.execute(
        "select min_version from seachange.descriptors where table_name = 'item' and element = 'table'"
    ).rows
    return int(version)


def first_job(watcher: Session) -> tuple[Any, ...] | None:
    rows = watcher.execute("select status, waiting_for from seachange.jobs order by id limit 1").rows
    return rows[0] if rows else None


def open_transactions(left: SqlProcess, right: SqlProcess) -> None:
    """One that inserts and one that updates, both planned before any change."""
    for process, statement in (
        (left, "insert into item values (1001, 'left', 1)"),
        (right, "update item set code = 'right' where id = 5"),
    ):
        assert process.run("begin") == []
        assert process.run(statement) == []


def judge(watcher: Session) -> None:
    rows = watcher.execute("select id, code, added from item where code in ('left', 'right') order by id").rows
    assert rows == [(5, "right", 7), (1001, "left", 7)]
    assert not check(watcher.node)
    ((statuses,),) = watcher.execute("select string_agg(distinct status, ',') from seachange.jobs").rows
    assert statuses == "succeeded"


def test_no_writer_uses_a_version_below_the_raise_after_it(place: Place, watcher: Session):
    """Two writers hold the first version while another process adds a column, which does not wait, and builds an
    index, which waits for both. They commit as they are; from the raise on no writer is below it."""
    with SqlProcess(place) as left, SqlProcess(place) as right, SqlProcess(place) as changer:
        open_transactions(left, right)
        changer.run("set seachange.drain_timeout = '10min'")
        assert changer.run(CHANGES[0]) == []
        changer.send(CHANGES[1])

        def waits_for_both() -> str | None:
            job = first_job(watcher)
            return job[1] if job is not None and job[1] and job[1].count("node ") == 2 else None

        waited_for = wait_until(waits_for_both, "the change to wait for both")
        before = held(watcher)
        assert set(before.values()) == {(1, 3)}
        assert all(node in waited_for for node in before)
        assert lowest(watcher) < 3
        assert left.run("commit") == []
        wait_until(lambda: len(held(watcher)) == 1, "one of them to be left")
        assert lowest(watcher) < 3
        assert right.run("commit") == []
        # A new transaction knows the newest version, or the one that the change waited for.
        assert changer.hear() == []
        assert changer.run(CHANGES[2]) == []
        assert lowest(watcher) >= 3
        assert left.run("begin") == []
        assert left.run("insert into item values (1002, 'late')") == []
        assert left.run("select count(*) from item") == [[ROWS + 2]]
        wait_until(lambda: held(watcher), "the new transaction to be seen")
        versions = watcher.execute("select version from seachange.leases where table_name = 'item'").rows
        assert min(version for (version,) in versions) >= lowest(watcher)
        assert left.run("commit") == []
    judge(watcher)


def test_who_is_still_open_after_all_changes_commits_too(place: Place, watcher: Session):
    """A drain gives up after its timeout: the writers are shut out, and made to fit when they commit. Without the refit
    they would be refused, without the fence the index would miss their rows."""
    with SqlProcess(place) as left, SqlProcess(place) as right, SqlProcess(place) as changer:
        open_transactions(left, right)
        changer.run("set seachange.drain_timeout = '100ms'")
        for change in CHANGES:
            assert changer.run(change) == []
        assert lowest(watcher) > 1
        assert held(watcher) == {}
        assert left.run("commit") == []
        assert right.run("commit") == []
    judge(watcher)
