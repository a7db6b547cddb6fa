"""psycopg against the server: what programs do every day."""

import datetime as dt
import threading
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from tests.support.serving import Served, serving

ROW = (
    1,
    True,
    Decimal("1.50"),
    "text with ' and \\",
    b"\x00\x01",
    dt.date(2024, 2, 29),
    dt.time(10, 11, 12, 500_000),
    dt.datetime(2024, 1, 2, 3, 4, 5),
    dt.datetime(2024, 1, 2, 3, 4, 5, 6, dt.UTC),
    UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    1.25,
    [1, 2, None],
    ["a", "b c"],
    dt.timedelta(days=2, hours=3),
)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served")) as served:
        with psycopg.connect(served.url, autocommit=True) as connection:
            connection.execute(
                "create table kinds (id bigint primary key, b boolean, n numeric(8,2), t text, y bytea, d date, c time,"
                " s timestamp, z timestamptz, u uuid, f double precision, a int[], l text[], i interval)"
            )
            connection.execute("create table t (id bigint primary key, name text)")
        yield served


@pytest.fixture
def connection(served: Served):
    with psycopg.connect(served.url, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("placeholder", ["%s", "%b", "%t"])
def test_every_type_goes_in_and_out(connection, binary, placeholder):
    connection.execute("delete from kinds")
    connection.execute(f"insert into kinds values ({', '.join([placeholder] * len(ROW))})", ROW)
    with connection.cursor(binary=binary) as cursor:
        found = cursor.execute("select * from kinds where id = %s", (1,)).fetchone()
    assert found == ROW


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(
    "text", ["0", "1", "-1", "0.0001", "10000", "99999999.99", "-123456789012345678901234567890.12345678", "1e10"]
)
def test_numbers_keep_every_digit(connection, binary, text):
    with connection.cursor(binary=binary) as cursor:
        found = cursor.execute(f"select {text}::numeric(38,8)").fetchone()
    assert found == (Decimal(text),)
    assert found[0].as_tuple().exponent == -8


def test_parameters_are_compared_as_they_are(connection):
    """A longer text, or a number of more digits, is no value of the column: it is neither refused nor rounded."""
    connection.execute("create table short (id varchar(3) primary key, n numeric(5,2), l numeric(5,2)[])")
    connection.execute("insert into short values ('abc', 1.01, array[1.01])")
    for statement in ("select id from short where id = %s", "update short set n = n where id = %s"):
        assert connection.execute(statement, ("abcdef",)).rowcount == 0
        assert connection.execute(statement, ("abc",)).rowcount == 1
    for placeholder in ("%s", "%t", "%b"):
        for number, count in (("1.005", 0), ("1.01", 1), ("1.0100", 1), ("99999", 0)):
            for condition in (f"n = {placeholder}", f"n = any({placeholder})"):
                given = Decimal(number) if "any" not in condition else [Decimal(number)]
                assert connection.execute(f"select id from short where {condition}", (given,)).rowcount == count
        assert connection.execute(f"select id from short where n <= {placeholder}", (Decimal("1.009"),)).rowcount == 0
    # As a text, for which the server finds the type.
    assert connection.execute("select id from short where n = %s", ("1.005",)).rowcount == 0
    # The target column limits their length.
    with pytest.raises(psycopg.errors.StringDataRightTruncation):
        connection.execute("insert into short values (%s)", ("abcd",))
    assert connection.execute("update short set n = %s returning n", ("1.005",)).fetchone() == (Decimal("1.01"),)
    assert connection.execute("update short set l = %s returning l", ("{2.345}",)).fetchone() == ([Decimal("2.35")],)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("placeholder", ["%s", "%b", "%t"])
def test_numbers_that_are_given_keep_their_zeros(connection, binary, placeholder):
    with connection.cursor(binary=binary) as cursor:
        query = f"select {placeholder}::numeric, {placeholder}::numeric / 3"
        found = cursor.execute(query, (Decimal("1.500"), Decimal("6.00"))).fetchone()
    assert [*map(str, found)] == ["1.500", "2.0000000000000000"]


def test_parameters_without_a_type_take_that_of_their_column(connection):
    connection.execute("delete from t")
    assert connection.execute("insert into t values (%s, %s) returning id", ("7", "a")).fetchall() == [(7,)]
    assert connection.execute("select name from t where id = %s", ("7",)).fetchall() == [("a",)]
    assert connection.execute("update t set name = %s where id = %s", ("b", "7")).rowcount == 1
    assert connection.execute("select id from t where id = any(%s)", ("{7,8}",)).fetchall() == [(7,)]
    assert connection.execute("select id from t order by 1 limit %s", ("1",)).fetchall() == [(7,)]


def test_an_error_has_its_state_and_what_it_is_about(connection):
    connection.execute("delete from t")
    connection.execute("insert into t values (1, 'a')")
    with pytest.raises(psycopg.errors.UniqueViolation) as caught:
        connection.execute("insert into t values (1, 'b')")
    assert caught.value.diag.severity_nonlocalized == "ERROR"
    assert caught.value.diag.constraint_name == "t_pkey"
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("select * from nothing")
    with pytest.raises(psycopg.errors.SyntaxError) as misspelt:
        connection.execute("selec 1")
    assert misspelt.value.diag.statement_position == "1"
    # Behind a parameter, whose text is not changed.
    with pytest.raises(psycopg.errors.UndefinedColumn) as unknown:
        connection.execute("select %s::int, nosuch from t", (1,))
    assert unknown.value.diag.statement_position == "17"
    assert connection.execute("select 1").fetchone() == (1,)


def test_transaction_status_is_reported(served: Served):
    with psycopg.connect(served.url) as connection:

        def status() -> TransactionStatus:
            return connection.info.transaction_status

        assert status() == TransactionStatus.IDLE
        connection.execute("select 1")
        assert status() == TransactionStatus.INTRANS
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("select 1 / 0")
        assert status() == TransactionStatus.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("select 1")
        connection.rollback()
        assert status() == TransactionStatus.IDLE


def test_a_pipeline_is_one_transaction_and_recovers_at_its_sync(connection):
    connection.execute("delete from t")
    with connection.pipeline() as pipeline:
        cursors = [connection.execute("insert into t values (%s, 'p')", (i,)) for i in range(5)]
        pipeline.sync()
        assert [cursor.rowcount for cursor in cursors] == [1] * 5
        connection.execute("insert into t values (10, 'lost')")
        connection.execute("insert into t values (0, 'taken')")
        connection.execute("insert into t values (11, 'skipped')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            pipeline.sync()
    assert connection.execute("select count(*) from t").fetchone() == (5,)
    assert connection.info.transaction_status == TransactionStatus.IDLE


def test_prepared_statements_are_kept_and_given_up(connection):
    connection.execute("delete from t")
    for i in range(3):
        connection.execute("insert into t values (%s, %s)", (i, "x"), prepare=True)
    assert connection.execute("select count(*) from t where name = %s", ("x",), prepare=True).fetchone() == (3,)
    connection.execute("deallocate all")
    connection.execute("alter table t add column more int")
    try:
        assert connection.execute("select * from t where id = %s", (1,), prepare=True).fetchone() == (1, "x", None)
    finally:
        connection.execute("alter table t drop column more")
    assert connection.execute("select * from t where id = %s", (1,), prepare=True).fetchone() == (1, "x")


def test_notices_and_settings_are_reported(connection):
    notices: list[str] = []
    connection.add_notice_handler(lambda diagnostic: notices.append(diagnostic.message_primary))
    connection.execute("drop table if exists nothing")
    assert len(notices) == 1
    connection.execute("set timezone = 'Europe/Berlin'")
    assert connection.info.parameter_status("TimeZone") == "Europe/Berlin"
    (found,) = connection.execute("select timestamptz '2024-06-01 00:00:00+00'").fetchone()
    assert found.hour == 2


def test_a_text_of_several_statements_is_one_transaction(connection):
    connection.execute("delete from t")
    with pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute("insert into t values (1, 'a'); insert into t values (1, 'b')")
    assert connection.execute("select count(*) from t").fetchone() == (0,)
    cursor = connection.execute("select 1; select 2, 3")
    assert cursor.fetchall() == [(1,)]
    assert cursor.nextset()
    assert cursor.fetchall() == [(2, 3)]


def test_a_cancelled_query_ends_and_others_go_on_meanwhile(served: Served, connection):
    slow = "select count(*) from generate_series(1, 1000000) a(x), generate_series(1, 1000000) b(y) where x * y % 7 = 3"
    failures: list[str | None] = []
    begun = threading.Event()

    def run() -> None:
        begun.set()
        try:
            connection.execute(slow)
        except psycopg.Error as error:
            failures.append(error.sqlstate)

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    with psycopg.connect(served.url, autocommit=True) as other:
        for i in range(20):
            assert other.execute("select %s::int", (i,)).fetchone() == (i,)
    while thread.is_alive():
        connection.cancel_safe()
        thread.join(0.05)
    assert failures == ["57014"]
    assert connection.execute("select 1").fetchone() == (1,)


def test_a_client_that_leaves_takes_its_transaction_with_it(served: Served, connection):
    connection.execute("delete from t")
    gone = psycopg.connect(served.url)
    gone.execute("insert into t values (1, 'gone')")
    gone.close()
    connection.execute("set lock_timeout = '10min'")
    connection.execute("insert into t values (1, 'here')")
    assert connection.execute("select name from t").fetchall() == [("here",)]


def test_a_cursor_is_a_portal_and_a_portal_a_cursor(served):
    with (
        psycopg.connect(served.url) as connection,
        connection.cursor("numbers", scrollable=True, withhold=True) as cursor,
    ):
        cursor.execute("select x from generate_series(1, 9) as s(x)")
        assert cursor.fetchmany(2) == [(1,), (2,)]
        connection.commit()
        cursor.scroll(-2)
        assert cursor.fetchone() == (1,)
        cursor.scroll(8, mode="absolute")
        assert cursor.fetchall() == [(9,)]


def test_constant_queries_are_pipelined_in_both_formats(served):
    with psycopg.connect(served.url, autocommit=True, prepare_threshold=0) as connection:
        for _ in range(3):
            assert connection.execute("select 1, -2 as two, 'x', null, true").fetchall() == [(1, -2, "x", None, True)]
            assert connection.cursor(binary=True).execute("select 7").fetchone() == (7,)
        with connection.pipeline():
            cursors = [connection.execute("select 'many'") for _ in range(2_000)]
        assert {cursor.fetchone() for cursor in cursors} == {("many",)}


def test_a_constant_takes_the_snapshot_of_its_block_and_fails_with_it(served):
    with (
        psycopg.connect(served.url, autocommit=True, prepare_threshold=0) as connection,
        psycopg.connect(served.url, autocommit=True) as other,
    ):
        other.execute("create table seen (id int primary key)")
        connection.execute("select 1")
        connection.execute("begin isolation level repeatable read")
        connection.execute("select 1")
        other.execute("insert into seen values (1)")
        assert connection.execute("select count(*) from seen").fetchone() == (0,)
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("select 1 / 0")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("select 1")
        connection.execute("rollback")


@pytest.mark.parametrize(
    "value", ["0", "-0.0", "1.5", "1e15", "123456789012345", "0.1", "1e-5", "0.0001", "1e300", "nan"]
)
def test_doubles_as_text_are_those_of_the_engine(served, value):
    with psycopg.connect(served.url, autocommit=True) as connection:
        cursor = connection.execute(f"select '{value}'::float8, '{value}'::float8::text")
        assert cursor.pgresult is not None
        assert cursor.pgresult.get_value(0, 0) == cursor.pgresult.get_value(0, 1)


def test_data_modifying_with_has_parameters_and_columns(connection):
    """Of every type: what one part returns comes to the next as it was."""
    connection.execute("create table twins (like kinds); delete from kinds")
    marks = ", ".join(["%s"] * len(ROW))
    connection.execute(f"insert into kinds values ({marks})", ROW)
    moved = (
        "with gone as (delete from kinds where id = %s returning *) insert into twins select * from gone returning *"
    )
    assert connection.execute(moved, (ROW[0],), prepare=True).fetchall() == [ROW]
    back = "with gone as (delete from twins returning *) select gone.*, id + %s::int as next from gone"
    found = connection.execute(back, (1,), prepare=True)
    assert [column.name for column in found.description][-2:] == ["i", "next"]
    assert found.fetchall() == [(*ROW, 2)]
    connection.execute("drop table twins")


def test_merge_takes_every_type(connection):
    connection.execute("create table twins (like kinds including all); delete from kinds")
    names = [column.name for column in connection.execute("select * from kinds limit 0").description]
    marks = ", ".join(["%s"] * len(ROW))
    connection.execute(f"insert into kinds values ({marks})", ROW)
    listed = ", ".join(f"k.{name}" for name in names)
    merge = (
        "merge into twins t using kinds k on t.id = k.id when matched then delete"
        f" when not matched then insert values ({listed})"
    )
    connection.execute(merge)
    assert connection.execute("select * from twins").fetchall() == [ROW]
    assert connection.execute(merge).statusmessage == "MERGE 1"
    assert connection.execute("select count(*) from twins").fetchone() == (0,)
    connection.execute("drop table twins; delete from kinds")
