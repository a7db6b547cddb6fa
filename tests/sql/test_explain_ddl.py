"""EXPLAIN (DDL): on both catalogs, in and out of transactions, and without any effect."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session

pytestmark = pytest.mark.either_catalog

FOO = "create table foo (k text primary key, c1 int not null check (c1 > 5), c2 int not null, c3 int)"
CHANGE = (
    "alter table foo drop column c2, drop column c3, add column c4 int not null default 7, add constraint u unique (c4)"
)
FORMS = ["", ", verbose", ", deps", ", viz", ", shape"]


@pytest.fixture(params=["sqlite", "postgres"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Node]:
    url = request.getfixturevalue("postgres_catalog_url") if request.param == "postgres" else None
    node = open_node(tmp_path, url)
    node.maintenance.paused = True
    yield node
    node.close()


@pytest.fixture
def session(node: Node) -> Iterator[Session]:
    session = Session(node)
    session.execute(FOO)
    yield session
    session.close()


def fill(session: Session, rows: int = 5000) -> None:
    session.execute(f"insert into foo select i::text, i + 10, i, i from generate_series(1, {rows}) as g(i)")


def explain(session: Session, sql: str, form: str = "") -> list[str]:
    result = session.execute(f"explain (ddl{form}) {sql}")
    (column,) = result.columns or ()
    assert (result.tag, column.name) == ("EXPLAIN", "QUERY PLAN")
    return [row[0] for row in result.rows]


def known(node: Node) -> tuple[object, ...]:
    """All that a change could leave in the catalog."""
    catalog, epoch = node.parts.catalog, node.epoch.epoch
    head = catalog.head()
    return head, catalog.descriptors(epoch, head), catalog.min_versions()


@pytest.mark.parametrize(
    "sql", [CHANGE, "create table bar (id int primary key, f text references foo)", "drop table foo"]
)
def test_nothing_is_left_behind(node, session, sql):
    fill(session)
    before, (free,) = known(node), node.parts.catalog.allocate_ids(1)
    for form in FORMS:
        assert explain(session, sql, form)
    assert known(node) == before
    assert list(node.parts.catalog.allocate_ids(1)) == [free + 1]


def test_in_a_transaction(node, session):
    fill(session)
    head = node.parts.catalog.head()
    session.execute("begin")
    session.execute("alter table foo add column own int")
    assert "      index foo_own_idx+: ABSENT -> WRITE_ONLY" in explain(session, "create index on foo (own)")
    assert session.execute("select count(*) from foo").rows == [(5000,)]
    session.execute("rollback")
    with pytest.raises(errors.UndefinedColumn):
        explain(session, "create index on foo (own)")
    assert node.parts.catalog.head() == head


def test_a_transaction_that_only_explains_can_read_what_is_newer(node, session):
    session.execute("begin")
    explain(session, CHANGE)
    other = Session(node)
    other.execute("alter table foo add column late int")
    other.close()
    assert "late" in [column.name for column in session.execute("select * from foo").columns]
    session.execute("rollback")


def test_sizes_are_those_of_the_table(session):
    fill(session, 20_000)
    session.execute("insert into foo values ('x', 6, 6, 6)")
    (line,) = [line for line in explain(session, CHANGE, ", shape") if line.startswith("  scan foo once")]
    assert "about 20,001 rows," in line
    assert ", 1 file; write about" in line
    session.execute("begin")
    session.execute("insert into foo values ('y', 6, 6, 6)")
    (line,) = [line for line in explain(session, CHANGE, ", shape") if line.startswith("  scan foo once")]
    assert "about 20,002 rows," in line
    session.execute("rollback")


def test_an_empty_table_is_explained_as_it_is_and_with_rows(session):
    (remark, summary, *_) = explain(session, CHANGE)
    assert remark == (
        "As long as foo has no rows: 1 stage: 1 version published, 0 waited for; metadata only, moves 0 bytes. "
        "With rows:"
    )
    assert summary == "5 stages: 3 versions published, 2 waited for; build index, moves an unknown number of bytes"
    assert "Bytes moved: unknown" in explain(session, CHANGE, ", shape")
    (remark, *_) = explain(session, "alter table foo add column x int not null")
    assert remark.endswith(
        'With rows it would fail: null value in column "x" of relation "foo" violates not-null constraint'
    )
    assert explain(session, CHANGE, ", viz")[0].startswith("// As long as foo has no rows")
    fill(session)
    assert explain(session, CHANGE)[0].startswith("5 stages: ")


def test_several_statements_are_one_plan(session):
    fill(session)
    block = "begin; alter table foo add column x int; create index i on foo (x); create index j on foo (c1); commit"
    lines = explain(session, block)
    assert lines[0].startswith("3 stages: 2 versions published, 1 waited for")
    assert "      build i+ and j+ from one scan of foo_pkey, as of the raise of min_version" in lines


def test_a_rolled_back_change_is_explained_as_before(session):
    fill(session)
    explained = explain(session, CHANGE)
    with pytest.raises(errors.Error) as caught:
        session.execute(CHANGE)
    assert caught.value.sqlstate == "23505"
    assert without_versions(explain(session, CHANGE)) == without_versions(explained)


def without_versions(lines: list[str]) -> list[str]:
    return [re.sub(r"version \d+", "version", line) for line in lines]


def test_a_database_is_explained(session):
    assert "  comes: database d+ (metadata only)" in explain(session, "create database d")


@pytest.mark.parametrize("form", FORMS)
def test_a_name_of_two_lines_breaks_no_line(session, form):
    session.execute('create table "x\ny" (a int)')
    for sql in ('alter table "x\ny" add unique (a)', 'create table if not exists "x\ny" (a int)'):
        assert not [line for line in explain(session, sql, form) if "\n" in line]


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("alter table nope add column x int", "42P01"),
        ("alter table foo drop column nope", "42703"),
        ("alter table foo add column c1 int", "42701"),
        ("alter table foo add check (c1 + 1)", "42804"),
        ("alter table foo add column x int default 'a'", "22P02"),
        ("select 1", "42601"),
        ("begin", "42601"),
        (";", "42601"),
        ("begin; alter table foo drop column c2; select 1; commit", "42601"),
    ],
)
def test_errors_are_those_of_the_statement(session, sql, state):
    with pytest.raises(errors.Error) as caught:
        explain(session, sql)
    assert caught.value.sqlstate == state


def test_notices_are_reported(session):
    assert explain(session, "drop table if exists nope") == [
        'Notice: table "nope" does not exist, skipping',
        "Nothing to do.",
    ]


def test_a_read_only_transaction_may_explain(session):
    session.execute("begin read only")
    assert explain(session, CHANGE)
    session.execute("rollback")


def test_statements_after_it_are_statements(session):
    fill(session)
    before = session.execute("select count(*) from foo").rows
    results = session.execute("explain (ddl) alter table foo add column x int; select count(*) from foo")
    assert results.rows == before


def test_beside_a_change_that_is_under_way(node: Node, session: Session):
    fill(session, 2)
    node.jobs.paused = True
    session.execute("alter table concurrently foo alter c3 type text")
    lines = session.execute("explain (ddl) alter table foo alter c2 type text").rows
    assert "rebuild primary index" in lines[0][0]


def test_a_table_of_the_block_itself_is_remarked(session: Session):
    remark = "In this transaction all stages run inside the statement, without a wait: no other session sees the rows."
    session.execute("begin")
    session.execute("create table own (a int)")
    assert remark not in explain(session, "create index on own (a)")
    session.execute("insert into own values (1)")
    assert remark in explain(session, "create index on own (a)")
    assert remark not in explain(session, "alter table own add column b int")
    session.execute("commit")
    assert remark not in explain(session, "create index on own (a)")
