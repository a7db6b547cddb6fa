"""What refers to an object, and the drop of the object at the same time: at most one is committed."""

from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.engine.database import open_quiet

# What there is, what is made of it in a transaction, what another drops meanwhile.
MEETINGS = [
    ("create schema s", "create table s.t (a int)", "drop schema s"),
    ("create schema s", "create sequence s.q", "drop schema s"),
    ("create schema s", "create type s.m as enum ('a')", "drop schema s"),
    ("create table t (a int)", "create view v as select a from t", "drop table t"),
    ("create table t (a int, b int)", "create view v as select a from t", "alter table t drop column a"),
    ("create view v as select 1 as a", "create view w as select a from v", "drop view v"),
    ("create sequence q", "create table t (a int default nextval('q'))", "drop sequence q"),
]


@pytest.mark.parametrize(("there", "made", "dropped"), MEETINGS)
@pytest.mark.parametrize("first", ["made", "dropped"])
def test_only_one_of_them_is_committed(node: Node, other: Node, there, made, dropped, first):
    with closing(Session(node)) as one, closing(Session(other)) as two:
        one.execute(there)
        statements = {"made": made, "dropped": dropped}
        second = "dropped" if first == "made" else "made"
        one.execute("begin")
        one.execute(statements[second])
        two.execute(statements[first])
        with pytest.raises(errors.SerializationFailure):
            one.execute("commit")
        # A retry gets the reason.
        if first == "made":
            with pytest.raises(errors.DependentObjectsExist):
                one.execute(dropped)
        else:
            with pytest.raises(errors.ProgrammingError):
                one.execute(made)


def test_a_name_is_given_once(node: Node, other: Node):
    with closing(Session(node)) as one, closing(Session(other)) as two:
        two.execute("set lock_timeout = '50ms'")
        one.execute("begin")
        one.execute("create sequence x")
        # A statement that uses the same name waits for the end of the other.
        with pytest.raises(errors.LockNotAvailable):
            two.execute("create view x as select 1 as a")
        one.execute("commit")
        with pytest.raises(errors.DuplicateTable):
            two.execute("create view x as select 1 as a")
        one.execute("begin")
        one.execute("create schema y")
        two.execute("create schema y")
        with pytest.raises(errors.SerializationFailure):
            one.execute("commit")


TYPE = "create type x as enum ('a')"


# As in PostgreSQL, a sequence that is there keeps no type from its name.
@pytest.mark.parametrize(
    ("one_of_them", "the_other"),
    [
        (TYPE, "create table x (a int)"),
        ("create table x (a int)", TYPE),
        (TYPE, "create sequence x"),
        (TYPE, "create view x as select 1 as a"),
        ("create view x as select 1 as a", TYPE),
    ],
)
def test_a_type_has_no_name_of_a_relation(node: Node, other: Node, one_of_them, the_other):
    """The catalog tells their names apart, so that it would not notice."""
    with closing(Session(node)) as one, closing(Session(other)) as two:
        two.execute("set lock_timeout = '50ms'")
        one.execute("begin")
        one.execute(one_of_them)
        with pytest.raises(errors.LockNotAvailable):
            two.execute(the_other)
        one.execute("commit")
        with pytest.raises(errors.DuplicateObject):
            two.execute(the_other)


def test_of_two_changes_of_a_type_none_is_lost(node: Node, other: Node):
    with closing(Session(node)) as one, closing(Session(other)) as two:
        one.execute("create type m as enum ('a', 'c')")
        two.execute("set lock_timeout = '50ms'")
        one.execute("begin")
        one.execute("alter type m add value 'b' before 'c'")
        with pytest.raises(errors.LockNotAvailable):
            two.execute("alter type m add value 'd'")
        one.execute("commit")
        two.execute("alter type m add value 'd'")
        for label in "abcd":
            with pytest.raises(errors.DuplicateObject):
                one.execute(f"alter type m add value '{label}'")


def test_objects_survive_the_process(tmp_path):
    for attempt in range(2):
        node = open_quiet(tmp_path)
        with closing(Session(node)) as session:
            if not attempt:
                session.execute("create schema s")
                session.execute("create table s.t (id int generated always as identity primary key, a int)")
                session.execute("create view s.v (x) as select a from s.t")
                session.execute("create type s.m as enum ('a')")
                session.execute("insert into s.t (a) values (5)")
            else:
                session.execute("insert into s.t (a) values (6)")
                assert sorted(session.execute("select id, a from s.t").rows) == [(1, 5), (2, 6)]
                assert sorted(session.execute("select x from s.v").rows) == [(5,), (6,)]
                with pytest.raises(errors.DuplicateObject):
                    session.execute("alter type s.m add value 'a'")
        node.close()


def test_a_view_waits_for_the_job_that_may_take_its_column_away(node: Node):
    with closing(Session(node)) as one, closing(Session(node)) as writer, closing(Session(node)) as two:
        one.execute("create table t (id int primary key, a int, b int)")
        one.execute("insert into t values (1, 2, 3)")
        writer.execute("begin")
        writer.execute("insert into t values (2, 3, 4)")
        one.execute("set seachange.drain_timeout = '1 hour'")
        one.execute("alter table concurrently t drop column a, add constraint u unique (b)")
        two.execute("set lock_timeout = '50ms'")
        with pytest.raises(errors.LockNotAvailable):
            two.execute("create view v as select a from t")
        writer.execute("commit")
        two.execute("reset lock_timeout")
        with pytest.raises(errors.UnresolvedColumn):
            two.execute("create view v as select a from t")
        two.execute("create view v as select b from t")
        assert sorted(two.execute("select b from v").rows) == [(3,), (4,)]


@pytest.mark.parametrize(
    "defined",
    [
        "create view v as select c from t",
        "create index i on t ((c + 1))",
        "alter table t add check (c > 0)",
        "alter table t add column d int default 1 check (c <= d)",
    ],
)
def test_a_definition_waits_for_the_job_that_adds_its_column(node: Node, defined: str):
    with closing(Session(node)) as one, closing(Session(node)) as writer, closing(Session(node)) as two:
        one.execute("create table t (id int primary key, b int)")
        one.execute("insert into t values (1, 3)")
        writer.execute("begin")
        writer.execute("insert into t values (2, 4)")
        one.execute("set seachange.drain_timeout = '1 hour'")
        one.execute("alter table concurrently t add column c int default 1, add constraint u unique (b)")
        two.execute("set lock_timeout = '50ms'")
        with pytest.raises(errors.LockNotAvailable):
            two.execute(defined)
        writer.execute("commit")
        two.execute("reset lock_timeout")
        two.execute(defined)
