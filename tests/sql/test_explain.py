"""EXPLAIN says what a query reads, and tags are PostgreSQL's."""

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.model.statements.session_statements import Begin, DdlExplanation, Explain
from seachange.model.statements.table_statements import DropTable
from seachange.sql.parsing.parse import parse_script


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
        ("explain select * from nowhere", "42P01"),
        ("explain select * from read_csv('x')", "42501"),
        ("explain create table u (a int)", "42601"),
        ("explain", "42601"),
        ("explain (format json) select 1", "0A000"),
    ],
)
def test_invalid_explain_is_rejected_with_its_code(session, text, code):
    with pytest.raises(errors.Error) as failure:
        session.execute(text)
    assert failure.value.sqlstate == code


def test_prepared_statements_return_their_command_tags(session):
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
        ("explain (ddl, cost) drop table t", Explain("drop table t", ddl=DdlExplanation.COST)),
        ("EXPLAIN (DDL, SHAPE) DROP TABLE t", Explain("DROP TABLE t", ddl=DdlExplanation.COST)),
        ("explain (analyze, verbose) select 1", Explain("select 1", analyze=True)),
    ],
)
def test_options_of_explain_are_read(text, statement):
    assert parse_script(text) == (statement,)


def test_ddl_is_explained_up_to_the_end_of_the_statement_or_block():
    first, second, third = parse_script("begin; explain (ddl) alter table t add a int; drop table t; ")
    assert first == Begin()
    assert second == Explain("alter table t add a int", ddl=DdlExplanation.STAGES)
    assert isinstance(third, DropTable)
    block, last = parse_script('explain (ddl) begin; alter table t add a int; drop table "x;"; commit; drop table t')
    assert block == Explain('begin; alter table t add a int; drop table "x;"; commit', ddl=DdlExplanation.STAGES)
    assert isinstance(last, DropTable)


@pytest.mark.parametrize("options", ["ddl, viz, deps", "ddl, analyze", "ddl, oops", "verbose, ddl"])
def test_options_that_do_not_go_together(options):
    with pytest.raises(errors.SyntaxProblem):
        parse_script(f"explain ({options}) drop table t")


@pytest.fixture
def orders(session):
    session.execute("create table p (id int primary key, code text unique, n int not null check (n > 0))")
    session.execute(
        "create table c (id int primary key, p int references p on delete cascade deferrable initially deferred)"
    )
    session.execute("insert into p values (1, 'a', 1), (2, 'b', 2)")
    session.execute("insert into c values (1, 1), (2, 2)")
    return session


@pytest.mark.parametrize(
    ("statement", "said", "unsaid"),
    [
        (
            "insert into p values (3, 'c', 3)",
            [
                "Insert on public.p: 1 row of VALUES, without DuckDB",
                "Checks NOT NULL: id, n",
                "Checks p_n_check: CHECK",
                "Checks p_pkey: unique (id)",
                "Checks p_code_key: unique (code)",
            ],
            ["Access", "Looks at"],
        ),
        (
            "insert into p values (3, lower('C'), 3), (4, 'd', 4) on conflict (code) do nothing",
            ["2 rows of VALUES, with values computed by DuckDB", "p_code_key: unique (code), decides ON CONFLICT"],
            [],
        ),
        (
            "insert into c select id + 5, n from p where code = 'a'",
            [
                "Insert on public.c: rows of a query",
                "Access to p: look-up: p_code_key by code gives 1 rows",
                "Checks c_p_fkey: foreign key (p), at COMMIT",
            ],
            [],
        ),
        (
            "update p set n = n + 1 where id = 1",
            ["Update on public.p: one row by primary key, without DuckDB", "Checks p_n_check: CHECK", "NOT NULL: n"],
            ["unique", "Looks at", "Access"],
        ),
        (
            "update p set id = -id where n > 5 or id = 0",
            [
                "rows of a query",
                "Access to p: full scan",
                "p_pkey: unique",
                "Looks at c for c_p_fkey: ON UPDATE NO ACTION",
            ],
            ["p_code_key"],
        ),
        (
            "delete from p where code in ('a', 'b')",
            [
                "Delete on public.p",
                "look-up: p_code_key by code gives 2 rows",
                "Looks at c for c_p_fkey: ON DELETE CASCADE",
            ],
            ["Checks"],
        ),
    ],
)
def test_explain_of_a_change_shows_its_plan_and_changes_nothing(orders, statement, said, unsaid):
    before = orders.execute("select * from p").rows
    text = explained(orders, f"explain {statement}")
    assert [line for line in said if line not in text] == []
    assert [line for line in unsaid if line in text] == []
    assert orders.execute("select * from p").rows == before
    text = explained(orders, f"explain analyze {statement}")
    assert text.splitlines()[-1].startswith(f"Ran: {statement.split()[0].upper()}")
    assert (text.splitlines()[-1][-1] == "0") is ("-id" in statement)


def test_a_change_is_run_only_with_analyze_and_where_it_may_be(orders):
    orders.execute("explain analyze delete from p where id = $1", [1])
    assert orders.execute("select id from c").rows == [(2,)]
    orders.execute("begin read only")
    orders.execute("explain delete from p")
    with pytest.raises(errors.ReadOnlyTransaction):
        orders.execute("explain analyze delete from p")
    orders.execute("rollback")
    with pytest.raises(errors.CheckViolation):
        orders.execute("explain analyze update p set n = 0")
    assert orders.execute("select n from p").rows == [(2,)]


@pytest.mark.parametrize("value", ["0.2 * avg(m)", "sum(m) / count(*)", "sum(r * r)", "avg(r)", "sqrt(sum(m))"])
def test_a_correlated_subquery_with_numerics_is_not_evaluated_row_by_row(session, value):
    """As it is if anything in it is taken to be volatile: rows are numbered then, and met by all others."""
    session.execute("create table part (id int primary key, m numeric(12, 2), r numeric)")
    session.execute("insert into part select n, n, n from t where n < 100")
    text = f"explain select * from t, part where t.id = part.id and n < (select {value} from part where id = t.id)"
    assert "rownum" not in explained(session, text)
    assert "rownum" in explained(session, text.replace(value, "max(m) + random()"))
