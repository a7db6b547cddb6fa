"""CREATE SHAPE: the tables of a database under a name, for as long as programs need them."""

from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.session.session import Session
from tests.engine.database import open_quiet

SPLIT = (
    "alter table p add column first text up using (split_part(name, ' ', 1)), "
    "drop column name down using (first || ' Doe')"
)


@pytest.fixture
def session(node):
    with closing(Session(node)) as session:
        session.execute("create table p (id int primary key, name text, n int)")
        session.execute("insert into p values (1, 'Ann Lee', 10)")
        yield session


def rows(session, text):
    return list(session.execute(text).rows)


def test_shape_is_what_a_session_is_pinned_to(session, node):
    session.execute("create shape release_41")
    session.execute(SPLIT)
    with closing(Session(node)) as old:
        old.execute("set seachange.layout = 'release_41'")
        old.execute("insert into p values (2, 'Bob Ray', 20)")
        assert rows(old, "select * from p order by id") == [(1, "Ann Doe", 10), (2, "Bob Doe", 20)]
    assert rows(session, "select first from p where id = 2") == [("Bob",)]


def test_shape_outlives_the_history_of_definitions(session, node, tmp_path):
    then = session.in_transaction(lambda transaction: transaction.state.snapshot.seq)
    session.execute("create shape kept")
    session.execute(SPLIT)
    session.execute("alter table p rename to q")
    node.beat()
    node.collect_garbage(retention_us=0)
    with closing(open_quiet(tmp_path, "later")) as later, closing(Session(later)) as old:
        old.execute(f"set seachange.layout = {then}")
        with pytest.raises(errors.LayoutTooOld):
            old.execute("select * from p")
        old.execute("set seachange.layout = 'kept'")
        assert rows(old, "select name, n from p") == [("Ann Doe", 10)]


def test_shape_of_an_earlier_moment(session):
    then = session.in_transaction(lambda transaction: transaction.state.snapshot.seq)
    session.execute(SPLIT)
    session.execute(f"create shape before as of {then}")
    session.execute("create shape later")
    session.execute("set seachange.layout = 'before'")
    assert rows(session, "select name from p") == [("Ann Doe",)]
    session.execute("set seachange.layout = later")
    assert rows(session, "select first from p") == [("Ann",)]


def test_shape_belongs_to_its_transaction(session, node):
    session.execute("begin")
    session.execute("alter table p rename column n to m")
    session.execute("create shape mine")
    with closing(Session(node)) as other:
        assert rows(other, "show shapes") == []
        session.execute("commit")
        other.execute("alter table p rename column m to k")
        other.execute("set seachange.layout = 'mine'")
        assert rows(other, "select m from p") == [(10,)]
    session.execute("begin")
    session.execute("create shape gone")
    session.execute("rollback")
    assert [row[0] for row in rows(session, "show shapes")] == ["mine"]


def test_shape_that_is_used_stays(session, node):
    session.execute("create shape release_41")
    session.execute(SPLIT)
    session.execute("create role app login")
    session.execute("alter role app set seachange.layout = 'release_41'")
    with closing(Session(node)) as old:
        old.execute("set seachange.layout = 'release_41'")
        ((number,),) = rows(old, "select pg_backend_pid()")
        ((name, _, tables, roles, sessions, held),) = rows(session, "show shapes")
        assert (name, tables, roles, sessions, held) == ("release_41", 1, "app", str(number), "p.name")
        with pytest.raises(errors.ShapeInUse) as refused:
            session.execute("drop shape release_41")
        assert refused.value.detail == (
            f"role app is pinned to shape release_41\nsession {number} is pinned to shape release_41"
        )
    session.execute("alter role app reset seachange.layout")
    session.execute("drop shape release_41")
    assert rows(session, "show shapes") == []


def test_shape_that_is_gone_or_there_already(session):
    session.execute("set seachange.layout = 'missing'")
    with pytest.raises(errors.UndefinedObject):
        session.execute("select * from p")
    session.execute("reset seachange.layout")
    with pytest.raises(errors.UndefinedObject):
        session.execute("drop shape missing")
    session.execute("drop shape if exists missing")
    session.execute("create shape one")
    session.execute("create shape if not exists one")
    for text in ("create shape one", 'create shape "2026-01-01"', "create shape two as of 'soon'"):
        with pytest.raises(errors.Error):
            session.execute(text)


def test_only_the_owner_of_the_database_makes_shapes(session, node):
    session.execute("create role app login")
    with closing(Session(node, "app")) as app, pytest.raises(errors.InsufficientPrivilege):
        app.execute("create shape mine")


def test_plan_names_the_shapes_that_it_affects(session):
    session.execute("create table other (a int)")
    session.execute("create shape release_41")
    lines = [line for (line,) in rows(session, f"explain (ddl) {SPLIT}, alter column n type bigint")]
    assert (
        "Shape release_41: p.name is computed by DOWN; p.n keeps its type, and values that do not fit cannot be read; "
        "p.first is hidden, computed by UP" in lines
    )
    lines = [line for (line,) in rows(session, "explain (ddl) alter table other drop column a, add column b int")]
    assert (
        "Shape release_41: other.a cannot be read, for lack of DOWN USING; other.b is hidden, its default in new rows"
        in lines
    )
    assert not any("Shape" in line for (line,) in rows(session, "explain (ddl) create index on p (n)"))


def test_table_is_read_by_the_number_of_a_layout(session):
    session.execute(SPLIT)
    session.execute("alter table p add column late int default 5")
    session.execute("alter table p drop column n down using (late * 2)")
    session.execute("create table other (a int)")
    session.execute("set seachange.layout = 'p=1'")
    assert rows(session, "select * from p") == [(1, "Ann Doe", 10)]
    for text in ("insert into p values (2, 'x', 1)", "update p set n = 1", "delete from p"):
        with pytest.raises(errors.ReadOnlyLayout) as refused:
            session.execute(text)
        assert refused.value.sqlstate == "25006"
    session.execute("insert into other values (1)")
    session.execute("set seachange.layout = 'public.p=99'")
    with pytest.raises(errors.UndefinedObject):
        session.execute("select * from p")
