"""Databases: what is in one is not seen in another, and none goes while a session uses it, on whatever node."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.runtime.faults import FAULTS
from seachange.verify.consistency import check
from tests.support.workers import wait_until


@pytest.fixture(params=["sqlite", "postgresql"])
def nodes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    """Two nodes over the same databases."""
    url = request.getfixturevalue("postgres_catalog_url") if request.param == "postgresql" else None
    with closing(open_node(tmp_path, url, name="one")) as one, closing(open_node(tmp_path, url, name="two")) as two:
        yield one, two


def session_of(stack: ExitStack, node: Node, database: str = "seachange") -> Session:
    session = stack.enter_context(closing(Session(node, database=database)))
    session.check_login()
    return session


def has_waited(node: Node, before: int) -> bool:
    return node.epoch.shared.waits > before


def run(session: Session, *statements: str) -> None:
    for statement in statements:
        session.execute(statement)


def test_what_is_in_one_is_not_in_another(nodes: tuple[Node, Node]):
    with ExitStack() as stack:
        here = session_of(stack, nodes[0])
        here.execute("create database shop")
        there = session_of(stack, nodes[1], "shop")
        run(here, "create table t (id int primary key)", "insert into t values (1), (2)")
        run(
            there,
            "create schema s",
            "create type mood as enum ('good', 'bad')",
            "create table t (id int primary key, m mood, at serial)",
            "create view v as select id from t",
            "create temp table own (id int)",
            "insert into t values (7, 'bad')",
        )
        assert here.execute("select count(*) from t").rows == [(2,)]
        assert there.execute("select * from shop.public.t").rows == [(7, "bad", 1)]
        names = "select relname from pg_class where relkind in ('r', 'v', 'S') order by 1"
        assert here.execute(names).rows == [("t",)]
        assert there.execute(names).rows == [("own",), ("t",), ("t_at_seq",), ("v",)]
        for statement in ("select * from v", "select * from own", "drop schema s", "drop type mood"):
            with pytest.raises(errors.ProgrammingError):
                here.execute(statement)
        told = "select distinct table_catalog from information_schema.tables"
        assert (here.execute(told).rows, there.execute(told).rows) == ([("seachange",)], [("shop",)])
        described = "select distinct table_name from seachange.descriptors order by 1"
        assert (here.execute(described).rows, there.execute(described).rows) == ([("t",)], [("own",), ("t",)])
        databases = "select datname from pg_database order by 1"
        assert here.execute(databases).rows == there.execute(databases).rows == [("seachange",), ("shop",)]
        # Roles are everybody's.
        here.execute("create role ann")
        there.execute("grant select on t to ann")
        with pytest.raises(errors.DependentObjectsExist):
            here.execute("drop role ann")
        assert check(nodes[0]) == check(nodes[0], ["shop.public.t", "public.t", "t"]) == []


@pytest.mark.parametrize(
    "statement",
    [
        "select * from seachange.public.t",
        "insert into seachange.public.t values (1)",
        "update seachange.public.t set id = 1",
        "explain select * from seachange.public.t",
        "create table seachange.public.t (id int)",
        "drop table seachange.public.t",
        "explain (ddl) drop table seachange.public.t",
    ],
)
def test_no_statement_reaches_into_another(tmp_path: Path, statement: str):
    with closing(open_node(tmp_path)) as node, ExitStack() as stack:
        here = session_of(stack, node)
        run(here, "create table t (id int)", "create database shop")
        there = session_of(stack, node, "shop")
        there.execute("create table t (id int)")
        with pytest.raises(errors.FeatureNotSupported):
            there.execute(statement)
        # The same text, prepared once for all sessions, is fine where the database is the own.
        if "create" not in statement:
            here.execute(statement)


def test_none_goes_while_it_is_used(nodes: tuple[Node, Node]):
    with ExitStack() as stack:
        here = session_of(stack, nodes[0])
        run(here, "create database shop", "create database empty")
        for node in nodes:
            used = session_of(stack, node, "shop")
            used.execute("create table if not exists t (id int primary key, v text)")
            for statement in ("drop database shop", "alter database shop rename to store"):
                with pytest.raises(errors.ObjectInUse):
                    here.execute(statement)
            with pytest.raises(errors.ObjectInUse):
                used.execute("drop database shop")
            used.close()
        here.execute("alter database shop rename to store")
        with pytest.raises(errors.InvalidDatabaseName):
            session_of(stack, nodes[1], "shop")
        store = session_of(stack, nodes[1], "store")
        store.execute("insert into t values (1, 'x')")
        store.close()
        run(here, "drop database store", "drop database if exists store", "drop database empty")
        with pytest.raises(errors.InvalidDatabaseName):
            here.execute("drop database store")
        # Of the next one of that name it is not the contents.
        here.execute("create database store")
        with pytest.raises(errors.UndefinedTable):
            session_of(stack, nodes[0], "store").execute("select * from t")
        assert check(nodes[0]) == []


def test_a_session_that_comes_while_a_database_is_being_renamed(nodes: tuple[Node, Node]):
    """It waits, and gets an error if the name is gone; it continues if that is rolled back."""
    with ExitStack() as stack:
        here = session_of(stack, nodes[0])
        here.execute("create database shop")
        for end, is_there in (("rollback", True), ("commit", False)):
            run(here, "begin", "alter database shop rename to store")
            waits = nodes[1].epoch.shared.waits
            with ThreadPoolExecutor(1) as pool:
                coming = pool.submit(session_of, stack, nodes[1], "shop")
                wait_until(partial(has_waited, nodes[1], waits), "the session waits")
                here.execute(end)
                if is_there:
                    coming.result().close()
                else:
                    with pytest.raises(errors.InvalidDatabaseName):
                        coming.result()


def test_sessions_of_a_process_that_was_killed_use_nothing(nodes: tuple[Node, Node]):
    with ExitStack() as stack:
        here = session_of(stack, nodes[0])
        here.execute("create database shop")
        session_of(stack, nodes[1], "shop")
        nodes[0].parts.catalog.end_node(nodes[1].epoch.epoch)
        here.execute("drop database shop")


def test_a_session_whose_epoch_has_ended_says_again_what_it_uses(nodes: tuple[Node, Node]):
    with ExitStack() as stack:
        here = session_of(stack, nodes[0])
        here.execute("create database shop")
        there = session_of(stack, nodes[1], "shop")
        there.execute("create table t (id int)")
        nodes[0].parts.catalog.end_node(nodes[1].epoch.epoch)
        assert there.execute("select count(*) from t").rows == [(0,)]
        with pytest.raises(errors.ObjectInUse):
            here.execute("drop database shop")
        nodes[0].parts.catalog.end_node(nodes[1].epoch.epoch)
        here.execute("drop database shop")
        with pytest.raises(errors.InvalidDatabaseName):
            there.execute("select count(*) from t")


def test_who_may_create_and_drop_one(tmp_path: Path):
    with closing(open_node(tmp_path)) as node, ExitStack() as stack:
        root = session_of(stack, node)
        run(root, "create role maker login createdb", "create role other login", "create database theirs")
        maker = stack.enter_context(closing(Session(node, "maker")))
        other = stack.enter_context(closing(Session(node, "other")))
        with pytest.raises(errors.InsufficientPrivilege):
            other.execute("create database own")
        maker.execute("create database own")
        for statement in ("drop database own", "alter database own rename to mine"):
            with pytest.raises(errors.InsufficientPrivilege):
                other.execute(statement)
        with pytest.raises(errors.InsufficientPrivilege):
            maker.execute("drop database theirs")
        maker.execute("drop database own")


class Crash(BaseException):
    """The process is no more."""


def die() -> None:
    raise Crash


@pytest.mark.parametrize(
    ("point", "is_there"), [("commit.written", True), ("commit.decided", False), ("commit.applied", False)]
)
def test_killed_drop_database_leaves_all_or_nothing(tmp_path: Path, point: str, is_there: bool):
    with closing(open_node(tmp_path, name="successor")) as node, closing(open_node(tmp_path, name="dying")) as dying:
        with ExitStack() as stack:
            here = session_of(stack, dying)
            here.execute("create database shop")
            run(
                session_of(stack, dying, "shop"),
                "create schema s",
                "create type mood as enum ('good', 'bad')",
                "create table t (id serial primary key, m mood)",
                "create table s.u (t int references t)",
                "create view v as select id from t",
                "insert into t (m) values ('bad'), ('good')",
                "insert into s.u values (1)",
            )
        with closing(Session(dying)) as here:
            FAULTS.arm(point, die)
            with pytest.raises(Crash):
                here.execute("drop database shop")
            FAULTS.disarm()
            node.parts.catalog.end_node(dying.epoch.epoch)
        with ExitStack() as stack:
            here = session_of(stack, node)
            if is_there:
                there = session_of(stack, node, "shop")
                assert there.execute("select id, t, m from v join s.u on t = id join t using (id)").rows == [
                    (1, 1, "bad")
                ]
                there.close()
                here.execute("drop database shop")
            here.execute("create database shop")
            names = "select relname from pg_class where relkind in ('r', 'v', 'S')"
            assert session_of(stack, node, "shop").execute(names).rows == []
        assert check(node) == []
