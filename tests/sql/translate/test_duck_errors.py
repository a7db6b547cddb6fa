"""DuckDB's errors become PostgreSQL's; the messages are real ones, so a DuckDB release that rewords them fails here."""

import threading

import duckdb
import pytest

from seachange import errors
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.sql.translate.duck_errors import translate_error


@pytest.fixture
def duck():
    connection = duckdb.connect()
    session = DuckSession(connection.cursor(), {})
    yield session
    session.close()
    connection.close()


def query(sql, **parameters):
    return DuckQuery(sql, parameters, {})


@pytest.mark.parametrize(
    ("sql", "value", "type_"),
    [
        ("select 5000000000::bigint::int", "5000000000", "integer"),
        ("select x::smallint from (values (70000)) as t(x)", "70000", "smallint"),
        ("select 12345::decimal(4, 1)", "12345", "numeric(4,1)"),
        ("select 2147483647::int + 1::int", "2147483647 + 1", "integer"),
        ("select 9223372036854775807::bigint * 2::bigint", "9223372036854775807 * 2", "bigint"),
        ("select 'many'::int", "many", "integer"),
    ],
)
def test_what_does_not_fit_is_named(duck, sql, value, type_):
    with pytest.raises(errors.DataError) as refused:
        duck.rows(query(sql))
    assert value in str(refused.value)
    assert str(refused.value).endswith((f" for type {type_}", f' for type {type_}: "{value}"'))


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("select 1 // 0", "22012"),
        ("select 5 % 0", "22012"),
        ("select 'x'::int", "22P02"),
        ("select 'x'::boolean", "22P02"),
        ("select 'x'::uuid", "22P02"),
        ("select '99999999999'::int", "22003"),
        ("select 300::tinyint", "22003"),
        ("select 2147483647::int + 1::int", "22003"),
        ("select 12345::decimal(4, 1)", "22003"),
        ("select '2024-13-01'::date", "22008"),
        ("select 'soon'::date", "22007"),
        ("select 'soon'::timestamp", "22007"),
        ("select nope", "42703"),
        ("select nope from (select 1 a)", "42703"),
        ("select a from (select 1 a) group by nope", "42703"),
        ("select x.a from (select 1 a) t", "42P01"),
        ("select a from (select 1 a), (select 2 a)", "42702"),
        ("select a, count(*) from (select 1 a)", "42803"),
        ("select 1 from (select 1 a) where sum(a) > 1", "42803"),
        ("select nope(1)", "42883"),
        ("select lower(1)", "42883"),
        ("select abs(date '2024-01-01')", "42883"),
        ("select sum('a')", "42725"),
        ("select 1::nope", "42704"),
        ("select * from nope", "42P01"),
        ("selec", "42601"),
        ("select (select 1 union all select 2)", "21000"),
        ("select * from read_parquet('nope.parquet')", "XX001"),
        # Its message ends in the middle of a character.
        ("select '" + "\u00c9" * 60 + "'::json", "22P02"),
    ],
)
def test_errors_of_duckdb_have_the_code_of_postgresql(duck, sql, code):
    with pytest.raises(errors.Error) as caught:
        duck.rows(query(sql))
    assert caught.value.sqlstate == code
    assert duck.rows(query("select 1")).rows == [(1,)]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select nam from (select 1 as name)", 'column "nam" does not exist'),
        ("select t.nam from (select 1 as name) t", "column t.nam does not exist"),
        ("select x.name from (select 1 as name) t", 'missing FROM-clause entry for table "x"'),
        ("select a from (select 1 a), (select 2 a)", 'column reference "a" is ambiguous'),
        ("select * from nope", 'relation "nope" does not exist'),
        ("select lower(1)", "function lower(integer) does not exist"),
    ],
)
def test_errors_of_duckdb_have_the_message_of_postgresql(duck, sql, words):
    with pytest.raises(errors.Error) as caught:
        duck.rows(query(sql))
    assert str(caught.value) == words


def test_no_choice_among_macros_tells_of_the_argument(duck):
    duck.rows(query("create macro seachange_both(x integer) as x, (x varchar) as x"))
    with pytest.raises(errors.UnresolvedColumn, match="argument of function both names does not exist"):
        duck.rows(query("select seachange_both(nope) from (select 1 as a)"))


def test_an_interrupted_query_is_canceled(duck):
    ended = threading.Event()

    def interrupt() -> None:
        # One that comes before the query has begun is lost.
        while not ended.wait(0.05):
            duck.interrupt()

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(errors.QueryCanceled):
        duck.rows(query("select sum(a.range * b.range) from range(1000000) a, range(1000000) b"))
    ended.set()
    interrupting.join()
    assert duck.rows(query("select 1")).rows == [(1,)]


def test_an_error_in_the_middle_of_a_stream(duck):
    sql = "select cast(case when range = 50000 then 'x' else '1' end as int) as a from range(100000)"
    with pytest.raises(OSError, match="Conversion Error"), duck.batches(query(sql), 1000) as reader:
        reader.read_all()
    assert duck.rows(query("select $x", x=5)).rows == [(5,)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("failed to allocate data of size 3.7 MiB (20.0 MiB/22.8 MiB used)", "53200"),
        (
            "failed to offload data block of size 256.0 KiB (1.9 MiB/2.0 MiB used).\n"
            "This limit was set by the 'max_temp_directory_size' setting.",
            "53100",
        ),
    ],
)
def test_memory_and_temporary_space_have_different_errors(text, code):
    assert translate_error(duckdb.OutOfMemoryException(f"Out of Memory Error: {text}")).sqlstate == code
