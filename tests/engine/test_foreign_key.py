"""Foreign keys across nodes: of a child that comes and a parent that goes, at most one gets through."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import seachange
from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.isolation import Isolation
from tests.engine.database import arrow
from tests.engine.threads import together

pytestmark = pytest.mark.either_catalog

LEVELS = list(Isolation)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def pair(request, tmp_path_factory) -> Iterator[tuple[Node, Node]]:
    data = tmp_path_factory.mktemp("pair")
    url = request.getfixturevalue("postgres_server").create_database() if request.param == "postgres" else None
    with closing(open_node(data, url, "one")) as one, closing(open_node(data, url, "two")) as two:
        for node in (one, two):
            node.maintenance.paused = True
        yield one, two


@pytest.fixture
def nodes(pair) -> Iterator[tuple[Node, Node]]:
    """Two nodes over one database, which has no tables."""
    yield pair
    run(pair[0], "drop table if exists c, p cascade")


def run(node: Node, *statements: str) -> list[tuple[object, ...]]:
    with closing(Session(node)) as session:
        for statement in statements:
            result = session.execute(statement)
        return sorted(map(tuple, result.rows), key=repr)


def tables(node: Node, action: str = "") -> None:
    run(
        node,
        "create table p (id int primary key, u text unique, note text)",
        f"create table c (id int primary key, p_id int references p {action}, u text references p (u) {action})",
        "insert into p values (1, 'one', ''), (2, 'two', ''), (3, 'three', '')",
    )


# A child by primary or unique key, row by row or in bulk, against every way in which its parent can go.
CHILDREN = {
    "row": lambda t: t.writes.insert(t.schema.table(None, "c"), [(1, 1, None)]),
    "unique": lambda t: t.writes.insert(t.schema.table(None, "c"), [(1, None, "one")]),
    "bulk": lambda t: t.writes.insert_arrow(
        t.schema.table(None, "c"), arrow(t.schema.table(None, "c"), [(1, 1, "one")])
    ),
    "update": lambda t: t.writes.update(t.schema.table(None, "c"), [(9, None, None)], [(9, 1, "one")]),
}
GOINGS = {
    "delete": lambda t: t.writes.delete(t.schema.table(None, "p"), [(1, "one", "")]),
    "new key": lambda t: t.writes.update(t.schema.table(None, "p"), [(1, "one", "")], [(7, "seven", "")]),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("child_first", [True, False])
@pytest.mark.parametrize("going", GOINGS)
@pytest.mark.parametrize("child", CHILDREN)
def test_a_child_and_the_end_of_its_parent(nodes, child, going, child_first, level):
    one, two = nodes
    tables(one)
    run(one, "insert into c values (9, null, null)")
    comer, goer = one.begin(level), two.begin(level)
    CHILDREN[child](comer)
    GOINGS[going](goer)
    first, second = (comer, goer) if child_first else (goer, comer)
    first.commit()
    with pytest.raises(errors.SerializationFailure):
        second.commit()
    orphans = "select count(*) from c left join p on c.p_id = p.id where c.p_id is not null and p.id is null"
    assert run(two, orphans) == [(0,)]


@pytest.mark.parametrize("child_first", [True, False])
def test_a_parent_that_keeps_its_key_may_change(nodes, child_first):
    one, two = nodes
    tables(one)
    comer, writer = one.begin(), two.begin()
    CHILDREN["row"](comer)
    writer.writes.update(writer.schema.table(None, "p"), [(1, "one", "")], [(1, "one", "changed")])
    for txn in (comer, writer) if child_first else (writer, comer):
        txn.commit()
    assert run(two, "select note from p where id = 1") == [("changed",)]


def test_two_children_of_one_parent_do_not_conflict(nodes):
    one, two = nodes
    tables(one)
    first, second = one.begin(), two.begin()
    first.writes.insert(first.schema.table(None, "c"), [(1, 1, "one")])
    second.writes.insert(second.schema.table(None, "c"), [(2, 1, "one")])
    first.commit()
    second.commit()
    assert run(one, "select count(*) from c") == [(2,)]


@pytest.mark.parametrize("indexed", [False, True])
def test_a_parent_whose_key_no_child_can_have_may_go(nodes, indexed):
    run(
        nodes[0],
        "create table p (id bigint primary key)",
        "create table c (id int primary key, p_id int references p on delete cascade)",
        *(["create index on c (p_id)"] if indexed else []),
        "insert into p values (1), (3000000000), (4000000000), (-3000000000)",
        "insert into c values (10, 1)",
        "delete from p where id = 3000000000",
        "update p set id = 5000000000 where id = 4000000000",
    )
    assert run(nodes[1], "select id from p") == [(-3000000000,), (1,), (5000000000,)]
    assert run(nodes[1], "delete from p", "select id from c") == []


def test_a_cascade_meets_a_child_that_came_meanwhile(nodes):
    one, two = nodes
    tables(one, "on delete cascade")
    goer = two.begin()
    GOINGS["delete"](goer)
    run(one, "insert into c values (1, 1, null)")
    with pytest.raises(errors.SerializationFailure):
        goer.commit()
    # An autocommit statement is run again, and now sees the child.
    run(two, "delete from p where id = 1")
    assert run(one, "select * from c") == []


def test_a_writer_that_did_not_know_the_constraint_is_held_to_it(nodes):
    one, two = nodes
    run(one, "create table p (id int primary key)", "create table c (id int primary key, p_id int)")
    unaware = two.begin()
    unaware.writes.insert(unaware.schema.table(None, "c"), [(1, 77)])
    run(one, "alter table c add foreign key (p_id) references p")
    with pytest.raises(errors.MissingParent):
        unaware.commit()
    with pytest.raises(errors.MissingParent):
        run(two, "insert into c values (1, 77)")


def test_a_parent_deleted_by_one_that_does_not_know_the_constraint(nodes):
    one, two = nodes
    run(one, "create table p (id int primary key)", "insert into p values (1)", "create table c (id int, p_id int)")
    unaware = two.begin()
    unaware.writes.delete(unaware.schema.table(None, "p"), [(1,)])
    run(one, "alter table c add foreign key (p_id) references p", "insert into c values (1, 1)")
    with pytest.raises(errors.SerializationFailure):
        unaware.commit()


@pytest.mark.parametrize("parent_first", [True, False])
def test_a_new_child_table_and_the_drop_of_its_parent(nodes, parent_first):
    """The second waits for the end of the first; at a snapshot from before that it cannot be committed."""
    one, two = nodes
    run(one, "create table p (id int primary key)")
    changes = ["create table c (p_id int references p)", "drop table p"]
    first_change, second_change = reversed(changes) if parent_first else changes
    with closing(Session(one)) as first, closing(Session(two)) as second:
        second.execute("set lock_timeout = '50ms'")
        first.execute("begin")
        first.execute(first_change)
        second.execute("begin isolation level repeatable read")
        second.execute("select * from p")
        with savepoint(second), pytest.raises(errors.LockNotAvailable):
            second.execute(second_change)
        first.execute("commit")
        with pytest.raises(errors.SerializationFailure):
            change_and_commit(second, second_change)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_comment_does_not_hide_a_new_child(nodes, at_once):
    """A version that only gives a label is no reason to refuse a DROP that was planned before; one that says besides
    that something refers to the table now is."""
    one, two = nodes
    run(one, "create table p (id int primary key)")
    changes = ["comment on table p is 'has children'", "create table c (p_id int references p)"]
    with closing(Session(one)) as first, closing(Session(two)) as second:
        second.execute("begin isolation level repeatable read")
        second.execute("select * from p")
        for text in ["; ".join(["begin", *changes, "commit"])] if at_once else changes:
            first.execute(text)
        with pytest.raises(errors.SerializationFailure):
            change_and_commit(second, "drop table p")
        second.execute("rollback")
        assert first.execute("select * from p, c").rows == []


def change_and_commit(session: Session, statement: str) -> None:
    session.execute(statement)
    session.execute("commit")


@contextmanager
def savepoint(session: Session) -> Iterator[None]:
    """What fails within is undone, and the transaction goes on."""
    session.execute("savepoint here")
    yield
    session.execute("rollback to here")


def test_deferred_checks_look_at_the_newest_snapshot(nodes):
    one, two = nodes
    run(one, "create table p (id int primary key)")
    run(one, "create table c (p_id int references p deferrable initially deferred)")
    comer = one.begin()
    comer.writes.insert(comer.schema.table(None, "c"), [(1, None)])
    run(two, "insert into p values (1)")
    comer.commit()
    assert run(two, "select * from c") == [(1,)]


def come_and_go(db: seachange.Connection, number: int) -> None:
    for i in range(30):
        try:
            if number % 2:
                db.execute("insert into c values (%s, 1, null)", (1_000 * number + i,))
            elif i % 2:
                db.execute("delete from p where id = 1")
            else:
                db.execute("insert into p values (1, 'one', '')")
            db.commit()
        except (errors.IntegrityError, errors.SerializationFailure):
            db.rollback()


def test_no_orphan_in_a_storm(tmp_path: Path):
    with closing(open_node(tmp_path)) as node:
        tables(node, "on delete cascade")
    connections = [seachange.connect(tmp_path, autocommit=True) for _ in range(4)]
    try:
        together(*[lambda db=db, n=n: come_and_go(db, n) for n, db in enumerate(connections)])
        orphans = "select count(*) from c where p_id not in (select id from p)"
        assert connections[0].execute(orphans).fetchone() == (0,)
    finally:
        for db in connections:
            db.close()


def test_savepoints_take_deferred_work_back(node: Node):
    run(node, "create table p (id int primary key)")
    run(node, "create table c (p_id int references p deferrable initially deferred)")
    run(node, "begin", "savepoint s", "insert into c values (1)", "rollback to savepoint s", "commit")
    assert run(node, "select * from c") == []


def test_reliances_of_a_statement_are_rolled_back_with_it(node: Node):
    tables(node)
    txn = node.begin()
    child = txn.schema.table(None, "c")
    txn.writes.insert(child, [(1, 1, None)])
    mark, shares = txn.undo.mark(), dict(txn.state.declared.shares)
    txn.writes.insert(child, [(2, 1, "two")])
    assert len(txn.state.declared.shares) == len(shares) + 1
    txn.undo.reset(mark)
    assert txn.state.declared.shares == shares
    txn.rollback()


def test_keys_of_every_kind(node: Node):
    kinds = {
        "numeric(9,2)": "1.50",
        "text": "it's",
        "date": "2020-01-02",
        "timestamp": "2020-01-02 03:04:05",
        "timestamptz": "2020-01-02 03:04:05+00",
        "uuid": "00000000-0000-0000-0000-000000000001",
        "bytea": "\\x00ff",
        "double precision": "0.1",
        "time": "03:04:05",
        "boolean": "true",
    }
    for number, (kind, value) in enumerate(kinds.items()):
        quoted = value.replace("'", "''")
        run(
            node,
            f"create table p{number} (k {kind} primary key)",
            f"create table c{number} (k {kind} references p{number} on delete cascade)",
            f"insert into p{number} values ('{quoted}')",
            f"insert into c{number} values ('{quoted}')",
        )
        assert run(node, f"select count(*) from c{number}") == [(1,)]
        run(node, f"delete from p{number}")
        assert run(node, f"select count(*) from c{number}") == [(0,)]
        with pytest.raises(errors.MissingParent):
            run(node, f"insert into c{number} values ('{quoted}')")


def test_a_new_key_of_an_old_child_and_the_drop_of_its_parent(nodes):
    """The newest definition of the parent says nothing of the key: it is the child's."""
    one, two = nodes
    run(one, "create table p (id int primary key)", "create table c (p_id int)")
    with closing(Session(one)) as first, closing(Session(two)) as second:
        second.execute("begin isolation level repeatable read")
        second.execute("select * from p")
        first.execute("alter table c add foreign key (p_id) references p")
        with pytest.raises(errors.SerializationFailure):
            change_and_commit(second, "drop table p")
