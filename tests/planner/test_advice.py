"""What is said of dear changes, and that nothing is said of others."""

from contextlib import closing
from pathlib import Path

import pytest

from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.planner.advice import CHEAPER, ROWS_MIN, AdviceForm, advise
from tests.planner.explain.plans import world

SETUP = ("create table p (id int primary key)", "create table t (id int primary key, a int, b text)")


def told(sql: str, rows: int = ROWS_MIN) -> list[str]:
    made = world(*SETUP, t=rows, p=rows)
    return advise(made.plan(sql), made.catalog)


@pytest.mark.parametrize(
    ("sql", "form"),
    [
        ("alter table t alter a type text", AdviceForm.CONVERSION),
        ("alter table t add column u uuid default gen_random_uuid()", AdviceForm.DRAWN),
        ("alter table t add column u uuid unique default gen_random_uuid()", AdviceForm.DRAWN),
        ("alter table t add column g int generated always as (a + 1) stored", AdviceForm.GENERATED),
        ("alter table t alter primary key using columns (a)", AdviceForm.KEY),
        ("alter table t drop constraint t_pkey", AdviceForm.KEYLESS),
        ("alter table t drop constraint t_pkey, add primary key (a)", AdviceForm.KEY),
        ("alter table t add foreign key (a) references p", AdviceForm.FOREIGN_KEY),
        ("alter table t add check (a > 0)", AdviceForm.CHECK),
        ("alter table t alter a set not null", AdviceForm.NOT_NULL),
    ],
)
def test_a_dear_form_says_what_it_costs_and_the_cheaper_one(sql: str, form: AdviceForm):
    (line,) = told(sql)
    assert line.startswith(f'{form} on "t" ')
    assert "100,000 rows" in line
    assert line.endswith(CHEAPER[form])


@pytest.mark.parametrize(
    "sql",
    [
        "alter table t add column c int default 7",
        "alter table t alter a type bigint",
        "alter table t add check (a > 0) not valid",
        "alter table t drop column b",
        "create index on t (a)",
    ],
)
def test_nothing_is_said_of_what_has_no_cheaper_form(sql: str):
    assert told(sql) == []


def test_nothing_is_said_of_small_tables():
    assert told("alter table t alter a type text", ROWS_MIN - 1) == []


def test_a_session_gets_a_notice_before_the_work_begins(tmp_path: Path):
    with closing(open_node(tmp_path / "db")) as node, closing(Session(node)) as session:
        session.execute("create table t (id int primary key, a int)")
        session.execute(f"insert into t select i, i from generate_series(1, {ROWS_MIN}) g (i)")
        session.notices.clear()
        session.execute("alter table t add check (a > 0)")
        assert session.notices[0].startswith('a CHECK on "t" reads about 100,000 rows')
        (first, *_) = session.execute("explain (ddl) alter table t alter id type text").rows
        assert first[0].startswith('Notice: another type on "t" rewrites about 100,000 rows')
