"""Statements that share a plan with others do what they would do with one of their own."""

import datetime as dt
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import seachange
from seachange.sql.run.execute import prepare_pattern
from seachange.sql.text.constants import take_constants

TYPES = (
    "int",
    "bigint",
    "smallint",
    "numeric(6,2)",
    "double precision",
    "text",
    "varchar(3)",
    "char(3)",
    "boolean",
    "date",
)
LITERALS = (
    "1",
    "-1",
    "0",
    "1.50",
    "- 2.5",
    "40000",
    "99999999999",
    "'1'",
    "'abc'",
    "'it''s'",
    "'true'",
    "'2024-02-09'",
    "''",
    "null",
    "cast(1.26 as numeric(3,1))",
    "'abc'::varchar(2)",
    "interval '1 day'",
    "1 + -1",
)
FORMS = (
    "insert into {t} values ({a}, {b})",
    "insert into {t} (k) values ({a}), ({b})",
    "insert into {t} values ({a}, default)",
    "select * from {t} where k = {a}",
    "select v, k as x from {t} where {a} = k",
    "select v from {t} where k = {a} and v = {b}",
    "select v + {b} from {t} where k = {a}",
    "select {b} from {t} where k = {a}",
    "select k from {t} where k in ({a}, {b}) order by 1",
    "update {t} set v = {b} where k = {a}",
    "update {t} set v = v + {b} where k = {a}",
    "update {t} set v = v -{b} where k = {a}",
    "update {t} set v = {b} where k = {a} returning k",
    "delete from {t} where k = {a}",
    "insert into {t} values ({a}, {b}) on conflict (k) do update set v = excluded.v",
)  # fmt: skip


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    with seachange.connect(data=str(tmp_path_factory.mktemp("shared"))) as db:
        for number, (key, value) in enumerate(product(TYPES, TYPES)):
            db.execute(f"create table t{number} (k {key} primary key, v {value})")
            db.execute(f"insert into t{number} values ('{_one(key)}', '{_one(value)}')")
        db.commit()
        yield db


def _one(type_: str) -> str:
    return {"date": "2024-02-09", "boolean": "true"}.get(type_, "1")


def _outcome(db: seachange.Connection, number: int, text: str) -> object:
    """What the statement and the table show, or the error; nothing stays."""
    try:
        result = db.execute(text)
        rows = result.fetchall() if result.description else result.rowcount
        return rows, sorted(map(repr, db.execute(f"select * from t{number} /* all */").fetchall()))
    except seachange.Error as problem:
        return problem.sqlstate
    finally:
        db.rollback()


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.integers(0, len(TYPES) ** 2 - 1),
    st.sampled_from(FORMS),
    st.sampled_from(LITERALS),
    st.sampled_from(LITERALS),
    st.sampled_from(LITERALS),
)
def test_a_shared_plan_does_what_an_own_one_does(connection, number, form, a, b, other):
    text = form.format(t=f"t{number}", a=a, b=b)
    # Two statements of the same pattern come first.
    for literals in ((other, b), (a, other)):
        _outcome(connection, number, form.format(t=f"t{number}", a=literals[0], b=literals[1]))
    assert _outcome(connection, number, text) == _outcome(connection, number, f"/* of its own */ {text}")


@pytest.mark.parametrize(
    "form",
    [
        "delete from t{t} where k = cast({a} as numeric({b},0))",
        "update t{t} set v = cast({a} as numeric({b},0)) where k = 1",
        "update t{t} set v = v + {a}::numeric({b},0) where k = 1",
        "insert into t{t} values ({a}::numeric({b},0), 1)",
        "select v from t{t} where k = {a}::numeric({b},0)",
        "select v from t{t} where k = {a} limit {b}",
        "select v from t{t} where k = {a} order by {b}",
    ],
)
def test_numbers_that_are_no_values_are_never_parameters(connection, form):
    outcomes = [_outcome(connection, 0, form.format(t=0, a=a, b=b)) for a, b in ((1, 1), (3, 1), (2, 1))]
    own = [_outcome(connection, 0, "/* own */ " + form.format(t=0, a=a, b=b)) for a, b in ((1, 1), (3, 1), (2, 1))]
    assert outcomes == own
    assert prepare_pattern(form.format(t=0, a=9, b=1)) is None


def test_statements_with_other_constants_share_a_plan(connection):
    connection.execute("create table shared (id int primary key, n int, s text, d date)")
    for i in range(3):
        connection.execute(f"insert into shared values ({i}, -{i}, 'it''s {i}', '2024-02-0{i + 1}')")
        connection.execute(f"update shared set n = n + -{i} where id = {i}")
    found = [connection.execute(f"select n, s, d from shared where id = {i}").fetchall() for i in range(3)]
    assert found == [[(-2 * i, f"it's {i}", dt.date(2024, 2, i + 1))] for i in range(3)]
    for text in (
        "insert into shared values (7, 8, 'x', '2024-01-01')",
        "update shared set n = n + 5 where id = 5",
        "select n, s, d from shared where id = 77",
    ):
        prepared = prepare_pattern(text)
        assert prepared is not None
        assert prepared.pattern is not None
        assert prepared.text == text
    connection.rollback()


@pytest.mark.parametrize(
    "text",
    [
        "select 1 -- 2",
        "select 1 /* 2 */",
        "select $1 from t where a = 1",
        r"select e'\'', 1",
        "select $$1$$, 2",
        "select " + ", ".join("1" for _ in range(65)),
    ],
)
def test_no_constants_are_taken_where_they_cannot_be_told_apart(text):
    assert take_constants(text) == (text, ())


@pytest.mark.parametrize(
    ("text", "pattern", "constants"),
    [
        ("""select "a 1", "b""2'", 3""", """select "a 1", "b""2'", $1""", (3,)),
        ("select x'a', e'b ', 'c ', n1, ä2, 3e4, 5.", "select x'a', e'b ', $1, n1, ä2, 3e4, 5.", ("c ",)),
        ("select a-1, a - 1, (-1), a=-1.0", "select a-$1, a - $2, ( $3), a= $4", (1, 1, -1, -1)),
        ("select 'a' 'b''' ", "select $1 $2 ", ("a", "b'")),
    ],
)
def test_constants_are_read_as_the_parser_reads_them(text, pattern, constants):
    assert take_constants(text) == (pattern, constants)
