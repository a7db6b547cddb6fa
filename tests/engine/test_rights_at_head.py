"""Rights are those of the catalog's head, for every statement and at COMMIT, whatever the snapshot of the data is."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.runtime.faults import FAULTS

pytestmark = pytest.mark.either_catalog

SETUP = """
create table t (id int primary key, v int);
insert into t values (1, 1), (2, 2);
create table u (id int primary key);
create view seen as select id, v from t;
create sequence q;
create schema own;
create role writers;
create role ann login in role writers;
create role bob login superuser;
create role carl login createrole createdb;
create role dora login;
grant select, insert, update, delete, truncate, references on t to ann;
grant select on seen to ann;
grant usage on sequence q to ann;
grant all on schema own to ann;
grant insert on u to writers;
create table own.mine (id int primary key);
alter table own.mine owner to ann;
"""


class Cluster:
    """Two nodes over one catalog: `root` works on one, the roles on the other."""

    def __init__(self, stack: ExitStack, one: Node, two: Node) -> None:
        self._stack = stack
        self._two = two
        self.root = self._open(one, "seachange")
        for statement in SETUP.strip().split(";\n"):
            self.root.execute(statement)

    def _open(self, node: Node, user: str) -> Session:
        session = self._stack.enter_context(closing(Session(node, user)))
        session.check_login()
        return session

    def login(self, user: str) -> Session:
        return self._open(self._two, user)

    def head(self) -> int:
        return self.root.node.epoch.catch_up()


@contextmanager
def opened(folder: Path, url: str | None = None) -> Iterator[Cluster]:
    with ExitStack() as stack:
        one = stack.enter_context(closing(open_node(folder, url, name="one")))
        two = stack.enter_context(closing(open_node(folder, url, name="two")))
        yield Cluster(stack, one, two)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    is_sqlite = request.param == "sqlite"
    url = None if is_sqlite else request.getfixturevalue("postgres_server").create_database()
    with opened(tmp_path_factory.mktemp("cluster"), url) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    FAULTS.disarm()


def begin(session: Session, level: str = "repeatable read") -> None:
    """With a snapshot."""
    session.execute(f"begin isolation level {level}")
    session.execute("select count(*) from pg_roles")


def at_the_sequencer(session: Session, statement: str) -> None:
    """Runs the statement when the node has checked the next commit, and the sequencer has not."""

    def run() -> None:
        session.execute(statement)

    FAULTS.arm("commit.queued", run)


class Case(NamedTuple):
    """A role, what it does in a block, what takes the right away from it, and what gives it again."""

    user: str
    statement: str
    taken: str
    given: str


CASES = {
    "a superuser defines": Case(
        "bob", "create role evil superuser login", "alter role bob nosuperuser", "alter role bob superuser"
    ),
    "a superuser writes": Case(
        "bob", "insert into u values (1)", "alter role bob nosuperuser", "alter role bob superuser"
    ),
    "CREATEROLE": Case("carl", "create role friend", "alter role carl nocreaterole", "alter role carl createrole"),
    "INSERT": Case("ann", "insert into t values (3, 3)", "revoke insert on t from ann", "grant insert on t to ann"),
    "UPDATE": Case("ann", "update t set v = 5 where id = 1", "revoke update on t from ann", "grant update on t to ann"),
    "DELETE": Case("ann", "delete from t where id = 1", "revoke delete on t from ann", "grant delete on t to ann"),
    "TRUNCATE": Case("ann", "truncate t", "revoke truncate on t from ann", "grant truncate on t to ann"),
    "REFERENCES": Case(
        "ann",
        "create table own.kid (id int references t)",
        "revoke references on t from ann",
        "grant references on t to ann",
    ),
    "CREATE on a schema": Case(
        "ann",
        "create table own.fresh (id int)",
        "revoke create on schema own from ann",
        "grant create on schema own to ann",
    ),
    "USAGE on a schema": Case(
        "ann",
        "insert into own.mine values (1)",
        "revoke usage on schema own from ann",
        "grant usage on schema own to ann",
    ),
    "a membership": Case("ann", "insert into u values (1)", "revoke writers from ann", "grant writers to ann"),
    "a privilege of a group": Case(
        "ann", "insert into u values (1)", "revoke insert on u from writers", "grant insert on u to writers"
    ),
    "INHERIT": Case("ann", "insert into u values (1)", "alter role ann noinherit", "alter role ann inherit"),
    "an owner defines": Case(
        "ann",
        "alter table own.mine add column v int",
        "alter table own.mine owner to dora",
        "alter table own.mine owner to ann",
    ),
    "an owner writes": Case(
        "ann",
        "insert into own.mine values (1)",
        "alter table own.mine owner to dora",
        "alter table own.mine owner to ann",
    ),
    "a role by SET ROLE": Case(
        "ann", "set role writers; insert into u values (1)", "revoke writers from ann", "grant writers to ann"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_right_that_was_taken_is_missing_at_once_and_at_commit(cluster, case):
    root = cluster.root
    first, second, third = (cluster.login(case.user) for _ in range(3))
    before = root.execute("select count(*), sum(v) from t").rows
    begin(first)
    begin(second)
    second.execute(case.statement)
    root.execute(case.taken)
    with pytest.raises(errors.InsufficientPrivilege):
        first.execute(case.statement)
    with pytest.raises(errors.InsufficientPrivilege):
        second.commit()
    root.execute(case.given)
    begin(third)
    third.execute(case.statement)
    at_the_sequencer(root, case.taken)
    with pytest.raises(errors.InsufficientPrivilege):
        third.commit()
    assert root.execute("select count(*), sum(v) from t").rows == before
    root.execute(case.given)
    for session in (first, second, third):
        session.close()


def test_reading_asks_at_every_statement(cluster):
    root, ann, bob = cluster.root, cluster.login("ann"), cluster.login("bob")
    begin(ann, "serializable")
    begin(bob)
    assert ann.execute("select v from t where id = 1").rows == [(1,)]
    assert ann.execute("select count(*) from seen").rows == [(2,)]
    root.execute("revoke select on t from ann")
    ann.execute("savepoint s")
    for refused in ("select v from t where id = 1", "select * from t", "select nextval('q'), v from t"):
        with pytest.raises(errors.InsufficientPrivilege):
            ann.execute(refused)
        ann.execute("rollback to s")
    # A view reads with the rights of its owner, who is another from now on.
    root.execute("alter view seen owner to dora")
    with pytest.raises(errors.InsufficientPrivilege):
        ann.execute("select count(*) from seen")
    ann.rollback()
    root.execute("drop view seen; create view seen as select id, v from t; grant select on seen to ann")
    # What a role was granted since its snapshot counts as well.
    begin(ann)
    root.execute("grant select on t to ann")
    assert ann.execute("select count(*) from t").rows == [(2,)]
    ann.rollback()
    bob.rollback()


def test_the_past_is_read_with_the_rights_of_today(cluster):
    root, ann = cluster.root, cluster.login("ann")
    root.execute("create table past (id int); insert into past values (7); grant select on past to ann")
    then = cluster.head()
    ann.execute(f"set seachange.as_of = '{then}'")
    assert ann.execute("select id from past").rows == [(7,)]
    root.execute("revoke select on past from ann")
    with pytest.raises(errors.InsufficientPrivilege):
        ann.execute("select id from past")
    root.execute("drop table past")
    with pytest.raises(errors.InsufficientPrivilege):
        ann.execute("select id from past")
    root.execute(f"set seachange.as_of = '{then}'")
    assert root.execute("select id from past").rows == [(7,)]
    root.execute("reset seachange.as_of")


def test_a_dropped_role_does_nothing_more(cluster):
    root = cluster.root
    root.execute(
        "create role evan login; create role fay login; grant insert on u to writers; grant writers to evan, fay"
    )
    idle, open_, racing = cluster.login("evan"), cluster.login("evan"), cluster.login("fay")
    begin(open_)
    open_.execute("insert into u values (5)")
    root.execute("drop role evan")
    with pytest.raises(errors.InsufficientPrivilege):
        open_.commit()
    for statement in ("insert into u values (5)", "select count(*) from pg_roles"):
        with pytest.raises(errors.InsufficientPrivilege):
            idle.execute(statement)
    # Another role of the same name is another role.
    root.execute("create role evan login")
    root.execute("grant insert on u to evan")
    with pytest.raises(errors.InsufficientPrivilege):
        idle.execute("insert into u values (5)")
    root.execute("revoke insert on u from evan")
    begin(racing)
    racing.execute("insert into u values (5)")
    at_the_sequencer(root, "drop role fay")
    with pytest.raises(errors.InsufficientPrivilege):
        racing.commit()
    assert root.execute("select count(*) from u").rows == [(0,)]
    root.execute("drop role evan")


def test_what_is_rolled_back_to_a_savepoint_needs_no_right(cluster):
    root, ann = cluster.root, cluster.login("ann")
    begin(ann)
    ann.execute("insert into own.mine values (8)")
    ann.execute("savepoint s")
    ann.execute("insert into t values (8, 8)")
    ann.execute("rollback to s")
    root.execute("revoke insert on t from ann")
    ann.commit()
    assert root.execute("select id from own.mine").rows == [(8,)]
    root.execute("grant insert on t to ann; delete from own.mine")


def test_a_revoke_affects_no_other_role(cluster):
    """Those who wrote to the table before it, and still may, commit behind it; and it waits for none of them."""
    root, ann, bob = cluster.root, cluster.login("ann"), cluster.login("bob")
    writers = [cluster.login("bob") for _ in range(3)]
    for number, writer in enumerate([ann, *writers]):
        begin(writer)
        writer.execute(f"insert into t values ({100 + number}, 0)")
    writers[0].execute("insert into t select n, 0 from generate_series(1001, 4000) s(n)")
    root.execute("revoke truncate on t from ann")
    root.execute("begin")
    root.execute("revoke references on t from ann")
    for writer in [ann, *writers]:
        writer.commit()
    root.execute("commit")
    assert root.execute("delete from t where id >= 100").tag == "DELETE 3004"
    root.execute("grant truncate, references on t to ann")
    assert bob.execute("select count(*) from t").rows == [(2,)]


def test_a_role_goes_only_with_what_it_has_got_meanwhile(cluster):
    root, bob = cluster.root, cluster.login("bob")
    root.execute("create role gone login")
    at_the_sequencer(bob, "grant select on t to gone")
    with pytest.raises(errors.RoleNeeded):
        root.execute("drop role gone")
    FAULTS.disarm()
    root.execute("revoke select on t from gone")
    at_the_sequencer(root, "drop role gone")
    with pytest.raises(errors.UndefinedObject):
        bob.execute("grant select on t to gone")


def test_the_first_revoke_on_the_schema_that_is_always_there(tmp_path):
    with opened(tmp_path) as cluster:
        root, ann = cluster.root, cluster.login("ann")
        begin(ann)
        ann.execute("insert into t values (3, 3)")
        at_the_sequencer(root, "revoke usage on schema public from public")
        with pytest.raises((errors.InsufficientPrivilege, errors.SerializationFailure)):
            ann.commit()
        with pytest.raises(errors.InsufficientPrivilege):
            ann.execute("insert into t values (3, 3)")
        assert root.execute("select count(*) from t").rows == [(2,)]
