"""EXPLAIN says what a query reads, and tags are PostgreSQL's."""

import pytest

from seachange import errors
from seachange.engine.opening import open_node
from seachange.engine.session import Session
from seachange.model.statements import Begin, DdlExplanation, Explain
from seachange.sql.parse import parse_script


@pytest.fixture
def session(tmp_path):
    node = open_node(tmp_path)
    session = Session(node)
    session.execute("create table t (id int primary key, n int)")
    session.execute("insert into t select i, i from generate_series(1, 20000) as g(i)")
    yield session
    session.close()
    node.close()


def explained(session, text, values=()):
    return "\n".join(row[0] for row in session.execute(text, values).rows)


def test_segments_and_inline_rows(session):
    assert "Table public.t: 1 segments untouched, 0 touched (0 rows superseded), 0 rows inline" in explained(
        session, "explain select count(*) from t where n > $1", [5]
    )
    session.execute("update t set n = 0 where id <= 3")
    assert "Table public.t: 0 segments untouched, 1 touched (3 rows superseded), 3 rows inline" in explained(
        session, "explain verbose select * from t join t as u using (id)"
    )
    session.execute("begin")
    session.execute("insert into t values (0, 0)")
    assert "1 rows of this transaction" in explained(session, "explain (analyze off, costs) select * from t")
    session.execute("rollback")


def test_a_look_up_by_key_needs_no_plan(session):
    text = explained(session, "explain select n from t where id = 5")
    assert text.startswith("Look-up by primary key in t\n")
    assert len(text.splitlines()) == 2


def test_the_access_to_each_table(session):
    session.execute("create table u (id int primary key, v text)")
    session.execute("create index u_v on u (v)")
    session.execute("insert into u values (1, 'a'), (2, 'a'), (3, 'b')")
    text = explained(session, "explain select * from t join u on u.id = t.id where u.v = $1 and t.n > 5", ["a"])
    assert "Access to t: full scan: no index on the columns of the conditions\n" in text
    assert "Access to u: look-up: u_v by v gives 2 rows\n" in text


def test_few_rows_of_an_index_need_no_plan(session):
    session.execute("create table u (id int primary key, v text)")
    session.execute("create index u_v on u (v)")
    session.execute("insert into u values (1, 'a'), (2, 'a'), (3, 'b')")
    (_, access, plan) = explained(session, "explain select id from u where v = $1", ["a"]).splitlines()
    assert access == "Access to u: look-up: u_v by v gives 2 rows"
    assert plan == "The rows found are the answer: nothing is left for DuckDB to do"
    assert len(explained(session, "explain analyze select id from u where v = 'a'").splitlines()) > 3
    assert len(explained(session, "explain select id from u where v = 'a' order by id").splitlines()) > 3


def test_the_plan_is_duckdbs_and_names_no_file(session, tmp_path):
    text = explained(session, "explain analyze select sum(n) from t group by id % 7")
    assert "group" in text.lower()
    assert str(tmp_path) not in text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("explain delete from t", "0A000"),
        ("explain select * from nowhere", "42P01"),
        ("explain select * from read_csv('x')", "42501"),
        ("explain create table u (a int)", "42601"),
        ("explain", "42601"),
        ("explain (format json) select 1", "0A000"),
    ],
)
def test_refused(session, text, code):
    with pytest.raises(errors.Error) as failure:
        session.execute(text)
    assert failure.value.sqlstate == code


def test_tags(session):
    tags = [
        ("prepare p as select 1", "PREPARE"),
        ("execute p", "SELECT 1"),
        ("deallocate p", "DEALLOCATE"),
        ("deallocate all", "DEALLOCATE ALL"),
        ("explain select 1", "EXPLAIN"),
        ("begin", "BEGIN"),
        ("savepoint a", "SAVEPOINT"),
        ("declare c cursor for select * from t", "DECLARE CURSOR"),
        ("fetch 5 from c", "FETCH 5"),
        ("move forward all in c", "MOVE 19995"),
        ("close c", "CLOSE CURSOR"),
        ("close all", "CLOSE CURSOR ALL"),
        ("rollback to a", "ROLLBACK"),
        ("release a", "RELEASE"),
        ("update t set n = 1 where id = 1 returning n", "UPDATE 1"),
        ("insert into t values (1, 1) on conflict do nothing", "INSERT 0 0"),
        ("delete from t using t as u where u.id = t.id and u.id < 3", "DELETE 2"),
        ("rollback", "ROLLBACK"),
        ("discard all", "DISCARD ALL"),
        ("discard temporary", "DISCARD TEMP"),
    ]
    assert [(text, session.execute(text).tag) for text, _ in tags] == tags


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("explain (ddl) drop table t", Explain("drop table t", ddl=DdlExplanation.STAGES)),
        ("explain (ddl, verbose) drop table t", Explain("drop table t", ddl=DdlExplanation.VERBOSE)),
        ("explain (ddl, deps) drop table t", Explain("drop table t", ddl=DdlExplanation.DEPENDENCIES)),
        ("explain (ddl, viz) drop table t", Explain("drop table t", ddl=DdlExplanation.PICTURE)),
        ("EXPLAIN (DDL, SHAPE) DROP TABLE t", Explain("DROP TABLE t", ddl=DdlExplanation.SHAPE)),
        ("explain (analyze, verbose) select 1", Explain("select 1", analyze=True)),
    ],
)
def test_options(text, statement):
    assert parse_script(text) == (statement,)


def test_ddl_is_explained_up_to_the_end_of_the_text():
    first, second = parse_script("begin; explain (ddl) alter table t add a int; drop table 'x;' ; ")
    assert first == Begin()
    assert second == Explain("alter table t add a int; drop table 'x;' ;", ddl=DdlExplanation.STAGES)


@pytest.mark.parametrize("options", ["ddl, viz, deps", "ddl, analyze", "ddl, oops", "verbose, ddl"])
def test_options_that_do_not_go_together(options):
    with pytest.raises(errors.SyntaxProblem):
        parse_script(f"explain ({options}) drop table t")
