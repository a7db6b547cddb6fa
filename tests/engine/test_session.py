"""Sessions: transactions, retries, read-only snapshots, and what a statement leaves behind."""

import threading
from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.session.session import Session
from seachange.engine.session.session_state import TransactionStatus
from seachange.runtime.faults import FAULTS
from seachange.sql.run.execute import prepare
from tests.engine.threads import together
from tests.support.workers import wait_until


@pytest.fixture
def session(node):
    session = Session(node)
    session.execute("create table t (id int primary key, n int)")
    yield session
    session.close()


@pytest.fixture
def second(node):
    second = Session(node)
    yield second
    second.close()


def rows(session, text, *values):
    return list(session.execute(text, values).rows)


def test_statements_return_the_command_tags_of_postgresql(session):
    tags = [
        ("insert into t values (1, 1), (2, 2)", "INSERT 0 2"),
        ("update t set n = 3", "UPDATE 2"),
        ("select * from t", "SELECT 2"),
        ("select * from t where id = 1", "SELECT 1"),
        ("delete from t where id = 1", "DELETE 1"),
        ("begin", "BEGIN"),
        ("commit", "COMMIT"),
        ("create table u (a int)", "CREATE TABLE"),
        ("alter table u add b int", "ALTER TABLE"),
        ("create index on u (b)", "CREATE INDEX"),
        ("drop table u", "DROP TABLE"),
        ("set application_name = 'x'", "SET"),
        ("reset all", "RESET"),
        ("", ""),
        ("-- nothing", ""),
    ]
    for text, tag in tags:
        assert session.execute(text).tag == tag


def test_commit_of_a_failed_transaction_rolls_back(session):
    session.execute("begin")
    session.execute("insert into t values (1, 1)")
    with pytest.raises(errors.UniqueViolation):
        session.execute("insert into t values (1, 2)")
    assert session.status is TransactionStatus.FAILED
    with pytest.raises(errors.InFailedTransaction):
        session.execute("select 1")
    assert session.execute("commit").tag == "ROLLBACK"
    assert rows(session, "select * from t") == []


def test_a_syntax_error_fails_no_transaction_that_is_not_open(session):
    with pytest.raises(errors.SyntaxProblem):
        session.execute("selec")
    assert session.status is TransactionStatus.IDLE


def test_a_syntax_error_fails_the_transaction_that_is_open(session):
    session.execute("begin")
    session.execute("insert into t values (1, 1)")
    with pytest.raises(errors.SyntaxProblem):
        session.execute("selec")
    assert session.status is TransactionStatus.FAILED
    assert session.execute("commit").tag == "ROLLBACK"
    assert rows(session, "select * from t") == []


def test_blocks_within_and_without(session):
    session.execute("begin")
    session.execute("begin")
    session.execute("commit")
    session.execute("commit")
    session.execute("rollback")
    assert session.notices == [
        "there is already a transaction in progress",
        "there is no transaction in progress",
        "there is no transaction in progress",
    ]


def test_no_transaction_outlives_its_session(node, session):
    second = Session(node)
    second.execute("begin")
    second.execute("insert into t values (1, 1)")
    assert node.statistics()["open_transactions"] == 1
    second.close()
    assert node.statistics()["open_transactions"] == 0
    assert rows(session, "select * from t") == []


def test_a_failed_statement_holds_no_snapshot(node, session):
    session.execute("begin")
    with pytest.raises(errors.Error):
        session.execute("select nope from t")
    assert node.statistics()["open_transactions"] == 0


def test_statements_that_stand_for_themselves_retry_conflicts(node, session):
    session.execute("insert into t values (1, 0)")
    seen: list[BaseException] = []

    def work():
        own = Session(node)
        try:
            for _ in range(50):
                own.execute("update t set n = n + 1 where id = 1")
        except errors.Error as error:
            seen.append(error)
        finally:
            own.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == []
    assert rows(session, "select n from t") == [(200,)]


def test_a_conflict_in_a_block_is_the_clients(session, second):
    session.execute("insert into t values (1, 0)")
    session.execute("begin isolation level repeatable read")
    session.execute("select * from t")
    second.execute("update t set n = 2 where id = 1")
    with pytest.raises(errors.SerializationFailure):
        session.execute("update t set n = 1 where id = 1")
    assert session.status is TransactionStatus.FAILED
    session.execute("rollback")
    assert rows(session, "select n from t") == [(2,)]


def test_several_statements_are_one_transaction(session):
    results = session.execute_all("insert into t values (1, 1); select n from t; delete from t")
    assert [result.tag for result in results] == ["INSERT 0 1", "SELECT 1", "DELETE 1"]
    with pytest.raises(errors.UniqueViolation):
        session.execute("insert into t values (1, 1); insert into t values (1, 1)")
    with pytest.raises(errors.UniqueViolation):
        session.execute("insert into t values (1, 1); set application_name = 'x'; insert into t values (1, 1)")
    assert rows(session, "select * from t") == []
    assert rows(session, "show application_name") == [("",)]
    session.execute("insert into t values (1, 1); commit; insert into t values (2, 2); rollback; show jit")
    assert rows(session, "select * from t") == [(1, 1)]
    assert session.status is TransactionStatus.IDLE


def test_notices_of_a_retried_statement_are_sent_once(session, other):
    session.execute("insert into t values (1, 1)")
    with closing(Session(other)) as second:

        def write() -> None:
            second.execute("update t set n = 10")

        FAULTS.arm("commit.queued", write)
        text = "drop table if exists nope; update t set n = n + 1 returning n, set_config('jit', 'off', false)"
        results = session.execute_all(text)
        assert FAULTS.counts()["commit.queued"] == 3
    FAULTS.disarm()
    assert [list(result.rows) for result in results][1:] == [[(11, "off")]]
    assert session.notices == ['table "nope" does not exist, skipping']


def test_a_text_of_many_short_statements_is_canceled(node, session):
    """Each of them may end before it looks whether it is to."""
    text = "; ".join(f"insert into t values ({i}, 1)" for i in range(1000))

    def cancel() -> None:
        wait_until(lambda: node.statistics()["open_transactions"], "the first to begin")
        session.interrupt()

    def run() -> None:
        with pytest.raises(errors.QueryCanceled):
            session.execute(text)

    together(run, cancel)
    assert rows(session, "select count(*) from t") == [(0,)]
    assert session.status is TransactionStatus.IDLE


def test_a_block_that_is_canceled_between_two_statements_has_failed(node, session):
    """A savepoint does not look whether it is to end."""
    session.execute("begin")
    text = "; ".join(["savepoint s"] * 1000)

    def cancel() -> None:
        wait_until(lambda: node.statistics()["open_transactions"], "the first to begin")
        session.interrupt()

    def run() -> None:
        with pytest.raises(errors.QueryCanceled):
            session.execute(text)

    together(run, cancel)
    assert session.status is TransactionStatus.FAILED
    assert session.execute("commit").tag == "ROLLBACK"


def test_as_of_a_moment(node, session):
    session.execute("insert into t values (1, 1)")
    moment = node.parts.clock.wall_us()
    session.execute("update t set n = 2")
    text = rows(session, "select to_timestamp($1)::text", moment / 1e6)[0][0]
    session.execute(f"set seachange.as_of = '{text}'")
    assert rows(session, "select n from t") == [(1,)]
    assert rows(session, "select n from t where id = 1") == [(1,)]
    session.execute("reset seachange.as_of")
    assert rows(session, "select n from t") == [(2,)]


def test_modes_are_set_before_the_first_query(session):
    session.execute("begin")
    session.execute("set transaction isolation level repeatable read, read only")
    assert rows(session, "show transaction_isolation") == [("repeatable read",)]
    with pytest.raises(errors.ReadOnlyTransaction):
        session.execute("delete from t")


def test_session_defaults(session):
    session.execute("set session characteristics as transaction isolation level repeatable read")
    session.execute("begin")
    assert rows(session, "show transaction_isolation") == [("repeatable read",)]
    session.execute("rollback")


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("insert into t values ($1, $2)", 1, 2),
        ("insert into t values ($1, 1)", 2, 1),
        ("select * from t where id = $1", 0, 1),
        ("select $1, $3", 2, 3),
        ("update t set n = $1 where id = $2", 1, 2),
        ("update t set n = n * $1", 0, 1),
        ("delete from t where id = $1", 2, 1),
        ("delete from t", 1, 0),
        ("insert into t values ($1 + 1, 1)", 0, 1),
        ("insert into t select $1, $2", 1, 2),
    ],
)
def test_parameters_are_counted(session, text, given, expected):
    with pytest.raises(errors.WrongParameterCount) as caught:
        session.execute(text, [1] * given)
    assert caught.value.fields == {"expected": expected, "given": given}


def test_a_plan_is_compiled_again_when_the_table_changes(session, second):
    text = "insert into t values ($1, $2)"
    session.execute(text, [1, 1])
    (prepared,) = prepare(text)
    first = prepared.plan
    second.execute(text, [2, 2])
    assert prepared.plan is first
    session.execute("alter table t add column c int default 9")
    session.execute(text, [3, 3])
    assert prepared.plan is not first
    assert rows(session, "select * from t where id = 3") == [(3, 3, 9)]


def test_a_plan_does_not_leak_an_uncommitted_shape(session, second):
    """Two transactions may give the same version number to different shapes of a table."""
    text = "insert into t values ($1, $2)"
    session.execute("begin")
    session.execute("alter table t add column a int default 1")
    session.execute(text, [1, 1])
    assert rows(session, "select * from t where id = 1") == [(1, 1, 1)]
    session.execute("rollback")
    second.execute("begin")
    second.execute("alter table t add column b text default 'x'")
    second.execute(text, [2, 2])
    assert rows(second, "select * from t where id = 2") == [(2, 2, "x")]
    session.execute(text, [1, 1])
    assert rows(session, "select * from t where id = 1") == [(1, 1)]


def test_a_table_that_was_dropped_and_made_again_is_another(session):
    session.execute("insert into t values (1, 1)")
    assert rows(session, "select * from t where id = 1") == [(1, 1)]
    session.execute("drop table t")
    with pytest.raises(errors.UndefinedTable):
        session.execute("select * from t where id = 1")
    session.execute("create table t (id text primary key)")
    assert rows(session, "select * from t where id = '1'") == []


def test_a_failed_query_does_not_block_the_next(session):
    for text in ("select 1 / 0", "insert into t select 1 / 0, 1", "select 'x'::int", "select " + "(" * 3000):
        with pytest.raises(errors.Error):
            session.execute(text)
        assert rows(session, "select 1 + 1") == [(2,)]
        assert session.execute("insert into t select 5, 5").tag == "INSERT 0 1"
        assert session.execute("delete from t").tag == "DELETE 1"


def test_a_statement_can_be_nested_too_deeply(session):
    for text in ("select " + "(" * 3000 + "1" + ")" * 3000, "select " + "+".join(["1"] * 5000)):
        with pytest.raises(errors.StatementTooComplex):
            session.execute(text)


def test_current_user_and_database_are_those_of_the_session(node):
    with closing(Session(node)) as root:
        root.execute("create database db")
        root.execute("create role alice login")
    session = Session(node, "alice", "db")
    text = "select current_user, session_user, current_database(), current_schema"
    assert rows(session, text) == [("alice", "alice", "db", "public")]
    session.close()


def test_a_query_name_cannot_hide_what_a_scan_reads(session):
    session.execute("insert into t values (1, 1)")
    relation = "s1_r0"
    try:
        found = rows(session, f"with {relation} as (select 5 as c1, 6 as c2) select * from t")
    except errors.DuplicateTable:
        return
    assert found == [(1, 1)]
