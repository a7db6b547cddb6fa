"""What a READ COMMITTED block reads and writes after a change of its tables, case by case."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from threading import Event
from typing import Any

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.verify.consistency import check
from tests.engine.threads import together
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until

Rows = list[tuple[Any, ...]]
GIVEN = (
    "create table t (id int primary key, n int, v text, c int default 5)",
    "insert into t values (1, 10, 'a', 1), (2, 20, 'b', 2), (3, 30, 'c', 3)",
    "create table u (id int primary key, n int)",
    "insert into u values (1, 1)",
)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    folder = tmp_path_factory.mktemp("shapes")
    with closing(open_node(folder, name="one")) as one, closing(open_node(folder, name="two")) as two:
        one.maintenance.paused = two.maintenance.paused = True
        yield one, two


def session_of(node: Node) -> Session:
    session = Session(node)
    session.execute("set seachange.drain_timeout = '1ms'")
    return session


@pytest.fixture
def block(nodes: tuple[Node, Node]) -> Iterator[Session]:
    with closing(session_of(nodes[0])) as session:
        yield session


@pytest.fixture(params=["one node", "two nodes"])
def other(request: pytest.FixtureRequest, nodes: tuple[Node, Node], block: Session) -> Iterator[Session]:
    """Another session, with the tables that there are; what is left is consistent."""
    node = nodes[1] if request.param == "two nodes" else nodes[0]
    with closing(session_of(node)) as session:
        run(session, *GIVEN)
        yield session
        block.rollback()
        assert check(node) == []
        for schema, name in node.epoch.schemas.newest.within().by_name:
            session.execute(f"drop table if exists {schema}.{name} cascade")


def run(session: Session, *statements: str) -> Rows:
    rows: Rows = []
    for statement in statements:
        rows = list(session.execute(statement).rows)
    return rows


def sqlstate(action: Callable[[], object]) -> str | None:
    try:
        action()
    except errors.Error as problem:
        return problem.sqlstate
    return None


def shown_types(session: Session, query: str) -> list[str]:
    return [str(column.type) for column in session.execute(query).columns or ()]


@pytest.mark.parametrize("change", ["comment on table t is 'x'", "alter table t add column extra int"])
def test_a_read_under_an_advisory_lock_sees_what_its_last_holder_committed(
    block: Session, other: Session, change: str
) -> None:
    run(block, "begin", "select n from t where id = 1")
    run(other, change, "begin", "select pg_advisory_xact_lock(7)", "update t set n = n + 1 where id = 1", "commit")
    run(block, "select pg_advisory_xact_lock(7)")
    assert run(block, "select n from t where id = 1") == [(11,)]
    run(block, "update t set n = n + 1 where id = 1", "commit")
    assert run(other, "select n from t where id = 1") == [(12,)]


CHANGES = (
    "comment on table t is 'x'",
    "grant select on t to public",
    "alter table t add column extra int default 3",
    "alter table t drop column extra",
    "alter table t rename column v to w",
    "alter table t rename column w to v",
    "create index by_n on t (n)",
    "alter table t add constraint positive check (n >= 0)",
    "alter table t drop constraint positive",
    "drop index by_n",
)


@pytest.mark.timeout(600)
def test_hot_rows_are_updated_without_an_abort_while_the_table_changes(
    nodes: tuple[Node, Node], block: Session, other: Session
) -> None:
    run(other, "insert into t select i, 0, 'x', 0 from generate_series(4, 20) as s(i)", "update t set n = 0")
    ended = Event()

    def update(number: int) -> Counter[str | None]:
        seen: Counter[str | None] = Counter()
        with closing(session_of(nodes[0])) as session:
            for turn in range(20):
                # In order, so that there is no deadlock.
                first, second = sorted(((turn * 7 + number * 3) % 20 + 1, (turn * 5 + number) % 20 + 1))
                statements = [f"update t set n = n + 1 where id = {id_}" for id_ in (first, second)]
                seen[sqlstate(partial(run, session, "begin", *statements, "commit"))] += 1
                session.rollback()
        return seen

    def update_all() -> Counter[str | None]:
        try:
            return sum(together(*(lambda n=n: update(n) for n in range(4))), Counter())
        finally:
            ended.set()

    def change() -> Counter[str | None]:
        count = 0
        while not ended.is_set() or count % len(CHANGES):
            run(other, CHANGES[count % len(CHANGES)])
            count += 1
        return Counter({"changes": count})

    seen, changes = together(update_all, change)
    print(seen, changes)
    assert seen == {None: 80}
    assert changes["changes"] >= len(CHANGES)
    assert run(block, "select sum(n) from t") == [(160,)]


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        ("alter table t drop column v", [(1, 10, 1), (2, 20, 2), (3, 30, 3), (4, 40, 4)]),
        ("alter table t alter column v type int using ascii(v)", [(1, 10, 1), (2, 20, 2), (3, 30, 3), (4, 40, 4)]),
    ],
)
def test_a_statement_that_needs_a_lost_column_reads_before_its_loss(
    block: Session, other: Session, change: str, rows: Rows
) -> None:
    run(block, "begin", "select v from t where id = 1")
    run(other, change, "insert into t (id, n, c) values (4, 40, 4)", "update u set n = 2")
    assert run(block, "select id, n, c from t order by id") == rows
    assert run(block, "select id, v from t order by id") == [(1, "a"), (2, "b"), (3, "c")]
    assert run(block, "select * from t where id = 4") == []
    assert run(block, "select n from u") == [(2,)]
    assert run(block, "select t.v, u.n from t join u using (id)") == [("a", 1)]
    run(block, "update t set v = v || '!', n = n + 1 where id = 1", "commit")
    assert run(other, "select n from t where id = 1") == [(11,)]


def test_only_a_row_that_was_changed_since_the_loss_is_a_conflict(block: Session, other: Session) -> None:
    run(block, "begin", "update t set v = 'z' where id = 1")
    run(other, "alter table t drop column v", "update t set n = 21 where id = 2")
    run(block, "update t set n = 31 where id = 3")
    assert sqlstate(lambda: run(block, "update t set n = 22 where id = 2")) == "40001"


CONVERT = "alter table t alter column n type text using 'n' || n"
CONVERSIONS = {
    "the row after the table": (CONVERT, "update t set c = 100 where id = 1"),
    "both in one commit": ("begin", "update t set c = 100 where id = 1", CONVERT, "commit"),
}


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_a_block_begins_again_in_the_new_shape_if_its_client_cannot_tell(
    block: Session, other: Session, conversion: str
) -> None:
    run(block, "begin", "insert into t values (4, 40, 'd', 4)", "select count(*) from u")
    run(other, *CONVERSIONS[conversion])
    run(block, "update t set c = c + 1 where id = 1", "insert into t values (5, 50, 'e', 5)", "commit")
    assert run(other, "select n, c from t where id in (1, 4, 5) order by id") == [("n10", 101), ("40", 4), ("50", 5)]


def test_a_block_that_begins_again_knows_the_newest_columns(block: Session, other: Session) -> None:
    run(block, "begin", "insert into t (id, n) values (4, 40)")
    run(other, "begin", "update t set c = 100 where id = 1", "alter table t add column extra int default 3")
    run(other, CONVERT, "commit")
    run(block, "update t set c = c + 1 where id = 1")
    assert run(block, "select * from t where id in (1, 4) order by id") == [
        (1, "n10", "a", 101, 3),
        (4, "40", None, 5, 3),
    ]
    run(block, "commit")


@pytest.mark.parametrize("conversion", CONVERSIONS)
@pytest.mark.parametrize(
    "seen",
    [
        ("select n from t where id = 1", "update t set n = 11 where id = 2"),
        ("insert into t values (4, 40, 'd', 4) returning *",),
        ("insert into t values (4, 40, 'd', 4)", "set application_name = 'x'"),
    ],
    ids=["rows of the old shape", "own rows of the old shape", "what is not run again"],
)
def test_a_block_does_not_begin_again_if_its_client_could_tell(
    block: Session, other: Session, seen: tuple[str, ...], conversion: str
) -> None:
    run(block, "begin", *seen)
    run(other, *CONVERSIONS[conversion])
    assert sqlstate(lambda: run(block, "update t set c = c + 1 where id = 1", "commit")) == "40001"


def test_a_block_with_a_savepoint_does_not_begin_again_before_commit(block: Session, other: Session) -> None:
    run(block, "begin", "insert into t values (4, 40, 'd', 4)", "savepoint s")
    run(other, *CONVERSIONS["both in one commit"])
    assert sqlstate(lambda: run(block, "update t set c = c + 1 where id = 1")) == "40001"
    run(block, "rollback to s", "update t set c = c + 1 where id = 2", "commit")
    assert run(other, "select n, c from t where id in (2, 4) order by id") == [("n20", 3), ("n40", 4)]


# Inside a node the second writer of a row waits.
@pytest.mark.parametrize("other", ["two nodes"], indirect=True)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((CONVERT,), ("update t set c = 100 where id = 1",)),
        ((), CONVERSIONS["the row after the table"]),
        ((), CONVERSIONS["both in one commit"]),
    ],
    ids=["converted before its statement", "converted after its statement", "both in one commit"],
)
def test_a_block_that_loses_at_commit_begins_again_in_the_new_shape(
    block: Session, other: Session, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    run(block, "begin", "insert into t values (4, 40, 'd', 4)")
    run(other, *before)
    run(block, "update t set c = c + 1 where id = 1")
    run(other, *after)
    run(block, "commit")
    assert run(other, "select n, c from t where id in (1, 4) order by id") == [("n10", 101), ("40", 4)]


def test_a_block_that_waits_at_commit_for_a_conversion_begins_again(
    nodes: tuple[Node, Node], block: Session, other: Session
) -> None:
    run(other, "insert into t select i, i, 'x', 0 from generate_series(4, 1500) s(i)")
    run(block, "begin", "insert into t values (2000, 1, 'd', 4)", "update t set c = c + 1 where id = 1")
    # Of so many rows no single one is locked.
    run(other, "begin", "update t set c = 100")
    with closing(session_of(nodes[0])) as watcher, ThreadPoolExecutor(1) as pool:
        committed = pool.submit(block.execute, "commit")
        waits = "select count(*) > 0 from seachange.waits"
        wait_until(lambda: run(watcher, waits) == [(True,)], "COMMIT to wait")
        run(other, CONVERT, "commit")
        committed.result(PATIENCE_S)
    assert run(other, "select n, c from t where id in (1, 2000) order by id") == [("n10", 101), ("1", 4)]


def test_a_dropped_table_is_read_to_the_end_and_refuses_writes(block: Session, other: Session) -> None:
    run(block, "begin", "select count(*) from t")
    run(other, "drop table t", "update u set n = 2")
    assert run(block, "select sum(n) from t") == [(60,)]
    assert run(block, "select n from u") == [(2,)]
    run(block, "insert into t (id) values (4)")
    with pytest.raises(errors.SerializationFailure):
        block.execute("commit")


def test_a_table_of_the_same_name_is_another(block: Session, other: Session) -> None:
    run(block, "begin", "select count(*) from t")
    run(other, "alter table t rename to old", "create table t (x int)", "update old set n = 11 where id = 1")
    assert run(block, "select n from t where id = 1") == [(11,)]
    run(block, "update t set n = 12 where id = 1", "create temp table t (y int)")
    assert run(block, "select * from t") == []
    assert run(block, "select n from public.t where id = 1") == [(12,)]
    run(block, "commit")
    assert run(other, "select n from old where id = 1") == [(12,)]
    block.execute("drop table pg_temp.t")


def test_a_column_that_was_never_used_does_not_hold_a_writer_back(block: Session, other: Session) -> None:
    run(block, "begin", "update t set n = 11 where id = 1")
    run(other, "alter table t drop column c", "update t set n = 21 where id = 2")
    run(block, "update t set n = n + 1 where id = 2", "insert into t (id, n) values (4, 4)")
    assert run(block, "select * from t order by id") == [(1, 11, "a"), (2, 22, "b"), (3, 30, "c"), (4, 4, None)]
    run(block, "commit")
    assert run(other, "select * from t order by id") == [(1, 11, "a"), (2, 22, "b"), (3, 30, "c"), (4, 4, None)]


def test_a_column_that_was_converted_before_its_first_use_is_known_as_it_is(block: Session, other: Session) -> None:
    run(block, "begin", "update t set n = 11 where id = 1")
    run(other, "alter table t alter column c type text using 'c' || c", "alter table t add column extra int")
    run(block, "update t set n = 12 where id = 1")
    assert run(block, "select * from t where id = 1") == [(1, 12, "a", "c1")]
    run(block, "insert into t values (4, 40, 'd', 'c4')", "commit")
    assert run(other, "select * from t where id = 4") == [(4, 40, "d", "c4", None)]


def test_rows_are_rebased_again_after_a_savepoint_was_rolled_back(block: Session, other: Session) -> None:
    run(block, "begin", "insert into t values (4, 40, 'd', 4)", "savepoint s", "update t set n = 11 where id = 1")
    run(other, "create unique index by_n on t (n)", "alter table t add column extra int default 3")
    assert run(block, "select n from t where n = 40 or n = 11 order by n") == [(11,), (40,)]
    run(block, "rollback to s")
    assert run(block, "select n from t where n = 40 or n = 11") == [(40,)]
    run(block, "rollback to s", "commit")
    assert run(other, "select * from t where n = 40") == [(4, 40, "d", 4, 3)]
    assert run(other, "select count(*) from t where n = 11") == [(0,)]


def test_a_block_changes_a_table_that_others_have_changed(block: Session, other: Session) -> None:
    run(block, "begin", "update t set n = 11 where id = 1")
    run(other, "alter table t add column extra int default 3", "update t set n = 21 where id = 2")
    run(block, "alter table t add column own int default 4")
    assert run(block, "select * from t order by id")[:2] == [(1, 11, "a", 1, 3, 4), (2, 21, "b", 2, 3, 4)]
    run(other, "comment on table t is 'x'", "update t set n = 31 where id = 3")
    assert run(block, "select n from t where id = 3") == [(31,)]
    run(block, "commit")
    assert run(other, "select * from t where id = 1") == [(1, 11, "a", 1, 3, 4)]


def test_an_integer_that_the_first_shape_has_no_room_for_is_shown(block: Session, other: Session) -> None:
    large = 3_000_000_000
    run(block, "begin", "update t set n = 11 where id = 1")
    run(other, "alter table t alter column n type bigint")
    assert shown_types(block, "select n from t where id = 2") == ["integer"]
    run(other, f"update t set n = {large} where id = 2")
    assert run(block, "select n from t where id = 2") == [(large,)]
    assert run(block, "select sum(n) from t") == [(11 + large + 30,)]
    run(block, "update t set n = n + 1 where id = 2", "commit")
    assert run(other, "select n from t where id = 2") == [(large + 1,)]


def test_a_conflict_target_that_was_dropped(block: Session, other: Session) -> None:
    run(other, "create unique index by_v on t (v)")
    insert = "insert into t values (9, 1, 'a', 1) on conflict (v) do update set n = t.n + 1"
    run(block, "begin", "select count(*) from t")
    run(other, "drop index by_v", "update t set n = 21 where id = 2")
    assert run(block, "select n from t where id = 2") == [(21,)]
    run(block, insert, insert, "commit")
    assert run(other, "select n from t where v = 'a'") == [(12,)]


@pytest.mark.parametrize(
    "change",
    [
        "alter table t alter column c type text using c::text",
        "alter table t add column g int generated always as (n + 1) stored",
    ],
)
def test_a_conflict_target_whose_index_is_written_again_holds_no_statement_back(
    block: Session, other: Session, change: str
) -> None:
    run(block, "begin", "insert into t (id, n) values (1, 0) on conflict (id) do update set n = t.n + 1")
    run(other, change, "update t set n = 21 where id = 2")
    assert run(block, "select n from t where id = 2") == [(21,)]
    run(block, "insert into t (id, n) values (2, 0) on conflict (id) do update set n = t.n + 1", "commit")
    assert run(other, "select n from t where id < 3 order by id") == [(11,), (22,)]


# Inside a node the second writer of a key waits.
@pytest.mark.parametrize("other", ["two nodes"], indirect=True)
@pytest.mark.parametrize(
    ("level", "outcome", "left"),
    [("read committed", None, 51), ("repeatable read", "40001", 50), ("serializable", "40001", 50)],
)
def test_a_key_that_another_inserts_is_a_conflict_when_the_table_is_written_again(
    block: Session, other: Session, level: str, outcome: str | None, left: int
) -> None:
    run(block, f"begin isolation level {level}")
    run(block, "insert into t (id, n) values (9, 0) on conflict (id) do update set n = t.n + 1")
    run(other, "alter table t alter column c type text using c::text", "insert into t (id, n) values (9, 50)")
    assert sqlstate(lambda: block.execute("commit")) == outcome
    assert run(other, "select n from t where id = 9") == [(left,)]


def test_rows_that_a_new_constraint_refuses_can_be_corrected(block: Session, other: Session) -> None:
    run(block, "begin", "insert into t values (4, -1, 'd', 4)", "update u set n = 5 where id = 1")
    run(other, "alter table t add constraint positive check (n >= 0)", "update t set n = 11 where id = 1")
    # Up to then the table is as it was before the constraint.
    assert run(block, "select t.n, u.n from t, u where t.id in (1, 4) order by t.id") == [(10, 5), (-1, 5)]
    run(block, "update t set n = 1 where id = 4")
    assert run(block, "select n from t where id in (1, 4) order by id") == [(11,), (1,)]
    run(block, "update t set n = n + 1 where id = 1", "commit")
    assert run(other, "select n from t where id in (1, 4) order by id") == [(12,), (1,)]
    run(other, "alter table t drop constraint positive")
    run(block, "begin", "insert into t values (5, -1, 'e', 5)")
    run(other, "alter table t add constraint positive check (n >= 0)")
    run(block, "select count(*) from t")
    assert sqlstate(lambda: block.execute("commit")) == "23514"


HELD = {
    "a column that was read": ("select n from t", "alter table t alter column n type text using n::text"),
    "a column that was written": ("update t set n = 0", "alter table t alter column n type text using n::text"),
    "rows that are refused": ("insert into t values (4, -1)", "alter table t add constraint positive check (n >= 0)"),
    "a table": ("select n from t", "drop table t"),
}


@pytest.mark.parametrize("what", HELD)
def test_what_is_gone_holds_up_no_other_table(block: Session, other: Session, what: str) -> None:
    statement, change = HELD[what]
    run(block, "begin", statement, "insert into u values (2, 2)")
    run(other, change, "alter table u add column extra int default 3", "update u set n = 7 where id = 1")
    assert run(block, "select * from u order by id") == [(1, 7), (2, 2)]
    run(block, "update u set n = n + 1 where id = 1")
    assert run(block, "select n from u where id = 1") == [(8,)]
    # What goes back in time for the one meets rows of the other that have gone on.
    assert sqlstate(lambda: run(block, "select t.n, u.n from t, u")) == "40001"


def test_tables_written_beside_one_that_is_held_commit_in_their_newest_form(block: Session, other: Session) -> None:
    run(block, "begin", "update t set n = n + 1 where id = 1", "insert into u values (2, 2)")
    run(other, "alter table t alter column n type text using n::text", "alter table u add column extra int default 3")
    run(block, "insert into u values (3, 3)", "update t set n = n + 1 where id = 1", "commit")
    assert run(other, "select n from t where id = 1") == [("12",)]
    assert run(other, "select * from u order by id") == [(1, 1, 3), (2, 2, 3), (3, 3, 3)]


def test_a_new_reference_to_a_row_that_the_transaction_has_deleted_is_refused(block: Session, other: Session) -> None:
    run(block, "begin", "select n from t", "delete from t where id = 2", "insert into u values (2, 2)")
    run(other, "alter table t alter column n type text using n::text")
    run(other, "alter table u add constraint refers foreign key (n) references t")
    run(block, "select * from u")
    assert sqlstate(lambda: block.execute("commit")) == "23503"


@pytest.mark.parametrize("mode", ["access share", "row exclusive"])
def test_lock_table_is_a_use_of_a_table(block: Session, other: Session, mode: str) -> None:
    run(block, "begin", f"lock table t in {mode} mode", f"lock table u in {mode} mode")
    run(other, "alter table t drop column v", "alter table u drop column n")
    assert run(block, "select * from t where id = 1") == [(1, 10, "a", 1)]
    assert run(block, "select * from u") == [(1, 1)]


@pytest.mark.parametrize(
    "statement", ["select * from u", "update u set n = n returning *", "lock table u in access share mode"]
)
def test_the_first_shape_is_that_of_a_statement_which_has_waited(
    block: Session, other: Session, statement: str
) -> None:
    run(other, "begin", "lock table u in access exclusive mode", "alter table u add column extra int default 3")
    block.execute("begin")
    epoch = block.node.epoch
    before = epoch.shared.waits
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(run, block, statement)
        wait_until(lambda: epoch.shared.waits > before, "the statement to wait")
        other.execute("commit")
        waiting.result(PATIENCE_S)
    for change in ("comment on table u is 'x'", "alter table u add column more int"):
        assert run(block, "select * from u") == [(1, 1, 3)]
        other.execute(change)
    assert run(block, "select * from u") == [(1, 1, 3)]


def test_the_first_shape_is_that_of_a_statement_which_has_gone_back(block: Session, other: Session) -> None:
    run(block, "begin", "select n from t")
    run(other, "alter table t alter column n type text using n::text", "alter table u add column extra int default 3")
    assert run(block, "select u.* from t, u where t.id = u.id and t.n = 10") == [(1, 1)]
    assert run(block, "select * from u") == [(1, 1)]


def test_deferred_references_are_checked_at_commit(block: Session, other: Session) -> None:
    run(other, "create table child (id int primary key, t int references t deferrable initially deferred)")
    run(block, "begin", "insert into child values (1, 4)")
    run(other, "alter table child add column extra int default 3", "create index on child (t)")
    run(block, "insert into child values (2, 5)", "insert into t (id) values (4)", "select * from child")
    assert sqlstate(lambda: block.execute("commit")) == "23503"
    run(block, "begin", "insert into child values (1, 4)")
    run(other, "alter table child add column more int default 3", "alter table t add column more int")
    run(block, "insert into t (id) values (4)", "select * from child", "commit")
    assert run(other, "select * from child") == [(1, 4, 3, 3)]


def test_a_column_lost_by_a_table_that_rows_only_refer_to_holds_nothing_back(block: Session, other: Session) -> None:
    run(other, "create table child (id int primary key, t int references t)")
    run(block, "begin", "insert into child values (1, 1)")
    run(other, "alter table t drop column v", "insert into t (id) values (4)", "create index on child (t)")
    run(other, "insert into child values (7, 3)")
    run(block, "insert into child values (2, 4)")
    assert run(block, "select * from child order by id") == [(1, 1), (2, 4), (7, 3)]
    run(block, "commit")
    assert run(other, "select count(*) from child") == [(3,)]


def test_a_cursor_and_a_prepared_statement_keep_their_shape(block: Session, other: Session) -> None:
    run(block, "begin", "prepare p as select * from t where id = $1")
    run(block, "declare d cursor for select * from t order by id", "fetch 1 from d")
    run(
        other,
        "alter table t add column extra int",
        "alter table t rename column n to m",
        "update t set m = 21 where id = 2",
    )
    assert run(block, "fetch 1 from d") == [(2, 20, "b", 2)]
    assert run(block, "execute p(2)") == [(2, 21, "b", 2)]
    run(block, "commit")
    assert run(block, "execute p(2)") == [(2, 21, "b", 2, None)]


def test_a_large_load_continues(block: Session, other: Session) -> None:
    run(block, "begin", "insert into t select i, i, 'x', i from generate_series(1000, 9000) as s(i)")
    run(
        other, "comment on table t is 'x'", "create index by_n on t (n)", "alter table t add column extra int default 3"
    )
    assert run(block, "select count(*), sum(n) from t where n >= 1000") == [(8001, 40005000)]
    run(block, "update t set n = -n where id >= 8000", "delete from t where id < 5000")
    run(block, "commit")
    assert run(other, "select count(*), min(n), max(extra) from t") == [(4001, -9000, 3)]


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_one_snapshot_stays_one_snapshot(block: Session, other: Session, level: str) -> None:
    run(block, f"begin isolation level {level}", "select n from t where id = 1")
    run(other, "alter table t drop column v", "update t set n = 11 where id = 1")
    assert run(block, "select * from t where id = 1") == [(1, 10, "a", 1)]
    run(block, "commit")
