"""A session with `seachange.layout` sees tables in an earlier shape, and reads and writes them as they are."""

import io
from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.session.session import Session
from seachange.model.statements.session_statements import CopyStream
from seachange.sql.copy.copy_text import copy_format
from seachange.sql.run.execute import prepare
from tests.engine.database import open_quiet


@pytest.fixture
def session(node):
    session = Session(node)
    session.execute("create table t (id int primary key, name varchar(10), n int, gone text)")
    session.execute("insert into t values (1, 'one', 10, 'x'), (2, 'two', 20, 'y')")
    yield session
    session.close()


@pytest.fixture
def pinned(session, node):
    """To before everything of the table's shape was changed."""
    pinned = Session(node)
    pinned.execute(f"set seachange.layout = {head(session)}")
    for change in (
        "rename column name to title",
        "alter column n type bigint",
        "alter column title type text",
        "drop column gone down using (null)",
        "add column kind text not null default 'new'",
        "add column at timestamptz default now()",
        "rename to u",
    ):
        session.execute(f"alter table t {change}")
    yield pinned
    pinned.close()


def head(session):
    return session.in_transaction(lambda transaction: transaction.state.snapshot.seq)


def rows(session, text, *values):
    return list(session.execute(text, values).rows)


def test_reads_by_names_and_columns_of_then(session, pinned):
    result = pinned.execute("select * from t order by id")
    assert [column.name for column in result.columns] == ["id", "name", "n", "gone"]
    assert list(result.rows) == [(1, "one", 10, None), (2, "two", 20, None)]
    assert rows(pinned, "select name from t where id = 2") == [("two",)]
    assert rows(pinned, "select count(*) from t") == [(2,)]
    assert rows(session, "select id, title, n, kind from u where id = 1") == [(1, "one", 10, "new")]


@pytest.mark.parametrize("text", ["select title from t", "select kind from t where id = 1"])
def test_columns_that_it_does_not_know_are_not_there(pinned, text):
    with pytest.raises(errors.Error) as refused:
        pinned.execute(text)
    assert refused.value.sqlstate == "42703"


def test_types_of_then(pinned):
    types = [column.type.kind.value for column in pinned.execute("select * from t").columns]
    assert types == ["integer", "character varying", "integer", "text"]


def test_writes_come_out_in_the_shape_of_now(session, pinned):
    pinned.execute("insert into t values (3, 'three', 30)")
    pinned.execute("insert into t (id, name) select 4, 'four'")
    pinned.execute("update t set name = name || '!', n = n + 1 where id = 1")
    pinned.execute("update t set n = 21 where name = 'two'")
    pinned.execute("delete from t where name = 'four'")
    assert rows(session, "select id, title, n, kind, at is null from u order by id") == [
        (1, "one!", 11, "new", False),
        (2, "two", 21, "new", False),
        (3, "three", 30, "new", False),
    ]


def test_values_of_columns_that_it_does_not_know_are_kept(session, pinned):
    session.execute("update u set kind = 'old' where id = 1")
    assert rows(pinned, "update t set n = 0 where id = 1 returning *") == [(1, "one", 0, None)]
    assert rows(session, "select title, n, kind from u where id = 1") == [("one", 0, "old")]


def test_many_rows(session, pinned):
    """More than go in one by one."""
    pinned.execute("insert into t select i, 'r' || i, i from generate_series(100, 20099) as g(i)")
    pinned.execute("update t set n = n + 1 where id >= 100")
    found = rows(session, "select count(*), min(n), max(n), min(kind), count(at) from u where id >= 100")
    assert found == [(20_000, 101, 20_100, "new", 20_000)]
    pinned.execute("delete from t where id >= 100")
    assert rows(session, "select count(*) from u") == [(2,)]


def test_constraints_are_those_of_now(session, pinned):
    session.execute("alter table u add constraint small check (n < 1000)")
    session.execute("create unique index on u (title)")
    with pytest.raises(errors.CheckViolation):
        pinned.execute("update t set n = 1000 where id = 1")
    with pytest.raises(errors.UniqueViolation):
        pinned.execute("insert into t values (5, 'two', 1)")
    session.execute("alter table u alter column kind drop default")
    with pytest.raises(errors.NotNullViolation):
        pinned.execute("insert into t values (5, 'five', 1)")


@pytest.mark.parametrize("text", ["select n from t where id = 1", "select n from t", "select n from t where n > 5"])
def test_a_value_that_the_type_of_then_has_not(session, pinned, text):
    session.execute("update u set n = 3000000000 where id = 1")
    with pytest.raises(errors.NumericValueOutOfRange):
        rows(pinned, text)
    assert rows(pinned, "select n from t where id = 2") == [(20,)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select id, name from t order by id", [(1, "one"), (2, "two")]),
        ("select count(*) from t", [(2,)]),
        ("update t set name = 'won' where id = 1 returning name", [("won",)]),
        ("update t set name = name || '!' where name = 'one' returning id", [(1,)]),
        ("insert into t (id, name) values (1, 'uno') on conflict (id) do update set name = 'uno' returning id", [(1,)]),
        ("delete from t where id = 1 returning id", [(1,)]),
    ],
)
def test_a_value_that_does_not_fit_concerns_only_statements_that_name_the_column(session, pinned, text, found):
    session.execute("update u set n = 3000000000 where id = 1")
    assert rows(pinned, text) == found
    assert rows(session, "select n from u where id = 1") == ([] if "delete" in text else [(3_000_000_000,)])


def test_relations_of_the_catalog_have_the_names_of_then(pinned):
    assert rows(pinned, "select relname, relkind from pg_class where relname in ('t', 'u')") == [("t", "r")]
    joined = "select a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid where c.relname = 't'"
    assert sorted(rows(pinned, f"{joined} and a.attnum > 0")) == [("gone",), ("id",), ("n",), ("name",)]


def test_a_converted_column_is_written_as_it_was(session, pinned):
    session.execute("alter table u alter column n type text using 'n' || n")
    pinned.execute("insert into t values (3, 'three', 30)")
    assert rows(session, "select n from u where id = 3") == [("n30",)]
    assert rows(pinned, "select name from t where id = 3") == [("three",)]
    with pytest.raises(errors.NoCounterpart):
        pinned.execute("select n from t where id = 3")


def test_catalogs_tell_of_the_shape_of_then(pinned):
    found = rows(pinned, "select column_name from information_schema.columns where table_name = 't' order by 1")
    assert found == [("gone",), ("id",), ("n",), ("name",)]


def test_definitions_are_about_tables_as_they_are(session, pinned):
    pinned.execute("alter table u add column more int default 7")
    assert rows(session, "select more from u where id = 1") == [(7,)]
    with pytest.raises(errors.UndefinedTable):
        pinned.execute("alter table t add column more int")


def test_what_came_later_is_seen_as_it_is(session, pinned):
    session.execute("create table later (a int)")
    assert rows(pinned, "select * from later") == []
    session.execute("create table t (other int)")
    # The name is that of the table that had it then.
    assert rows(pinned, "select id from t where id = 1") == [(1,)]


def test_views_see_what_they_know(session, pinned):
    session.execute("create view v as select title, kind from u")
    assert rows(pinned, "select * from v where title = 'one'") == [("one", "new")]


def test_one_text_in_both_shapes(session, pinned):
    """Plans are kept with the text, for all sessions."""
    session.execute("alter table u rename to t")
    for _ in range(2):
        assert len(pinned.execute("select * from t where id = 1").columns) == 4
        assert len(session.execute("select * from t where id = 1").columns) == 5


def test_enums_and_keys_that_came_since(session, node):
    session.execute("create type mood as enum ('low', 'high')")
    session.execute("create table m (a int, b mood)")
    session.execute("insert into m values (1, 'low')")
    with_pin = Session(node)
    with_pin.execute(f"set seachange.layout = {head(session)}")
    session.execute("alter type mood rename value 'low' to 'deep'")
    session.execute("alter table m rename column b to feeling")
    session.execute("alter table m add column id int generated always as identity primary key")
    with_pin.execute("insert into m values (2, 'high')")
    with_pin.execute("update m set b = 'high' where b = 'deep'")
    assert rows(with_pin, "select * from m order by a") == [(1, "high"), (2, "high")]
    assert rows(session, "select a, feeling, id is not null from m order by a") == [
        (1, "high", True),
        (2, "high", True),
    ]
    with_pin.close()


def test_what_it_may_be_set_to(session):
    assert rows(session, "show seachange.layout") == [("",)]
    for value in ("-1", "2026-13-13"):
        with pytest.raises(errors.InvalidSetting):
            session.execute(f"set seachange.layout = '{value}'")
    for value in (head(session) + 1_000, "'2999-01-01'"):
        session.execute(f"set seachange.layout = {value}")
        with pytest.raises(errors.InvalidSetting):
            session.execute("select * from t")
    session.execute("set seachange.layout = ''")
    assert len(rows(session, "select * from t")) == 2


def test_at_a_moment(session, node):
    (moment,) = rows(session, "select clock_timestamp()::text")[0]
    session.execute("alter table t rename column name to title")
    session.execute(f"set seachange.layout = '{moment}'")
    assert rows(session, "select name from t where id = 1") == [("one",)]
    session.execute("reset seachange.layout")
    assert rows(session, "select title from t where id = 1") == [("one",)]


def test_what_is_no_longer_kept(session, node, tmp_path):
    then = head(session)
    session.execute("alter table t rename column name to title")
    node.beat()
    node.collect_garbage(retention_us=0)
    with closing(open_quiet(tmp_path, "later")) as later, closing(Session(later)) as pinned:
        pinned.execute(f"set seachange.layout = {then}")
        with pytest.raises(errors.LayoutTooOld) as lost:
            pinned.execute("select * from t")
        assert lost.value.sqlstate == "72000"
        # The way out is open.
        pinned.execute("set seachange.layout = ''")
        assert rows(pinned, "select title from t where id = 1") == [("one",)]


def test_conflicts_locks_and_merges(session, pinned):
    upsert = "insert into t values (1, 'uno', 5) on conflict (id) do update set name = excluded.name returning name, n"
    assert rows(pinned, upsert) == [("uno", 10)]
    pinned.execute("begin isolation level serializable")
    assert rows(pinned, "select name from t where n >= 20 for update") == [("two",)]
    pinned.execute(
        "merge into t using (values (2, 'duo'), (9, 'nine')) as s(id, name) on t.id = s.id "
        "when matched then update set name = s.name when not matched then insert (id, name) values (s.id, s.name)"
    )
    pinned.execute("commit")
    assert rows(session, "select id, title, kind from u order by id") == [
        (1, "uno", "new"),
        (2, "duo", "new"),
        (9, "nine", "new"),
    ]


def test_a_role_may_have_it(session, node):
    session.execute("create role app login")
    session.execute("grant all on t to app")
    session.execute(f"alter role app set seachange.layout = {head(session)}")
    session.execute("alter table t rename column name to title")
    app = Session(node, "app")
    app.check_login()
    assert rows(app, "select name from t where id = 1") == [("one",)]
    app.close()


def test_copy_uses_the_pinned_shape(session, pinned):
    text = io.StringIO()
    assert pinned.copy_out("select * from t", text, copy_format("text", False, None, None)) == 2
    assert text.getvalue() == "1\tone\t10\t\\N\n2\ttwo\t20\t\\N\n"
    (prepared,) = prepare("copy t from stdin")
    assert isinstance(prepared.parsed, CopyStream)
    assert pinned.copy_in(prepared.parsed, lambda width: io.StringIO("7\tseven\t70\tx\n" * (width == 4))) == 1
    assert rows(session, "select title, n, kind from u where id = 7") == [("seven", 70, "new")]
