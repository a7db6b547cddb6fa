"""Transactions that began before columns were replaced, or another primary key was drawn, and commit afterwards: they
are ordered before the change, and lose nothing."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.verify.consistency import check
from tests.changer.changing import ask
from tests.support.nodes import Place

pytestmark = pytest.mark.either_catalog

# The last of them fences writers that do not know the earlier changes.
SHUT = ("set seachange.drain_timeout = '50ms'", "create index item_shut on item (category)")


@pytest.fixture
def late(shop: Place, node: Node) -> Iterator[Session]:
    with closing(open_node(shop.data, shop.catalog, name="there")) as there, closing(Session(there)) as session:
        session.execute("begin")
        yield session


def change(node: Node, *statements: str) -> None:
    with closing(Session(node)) as session:
        for statement in ("set seachange.drain_timeout = '50ms'", *statements):
            session.execute(statement)


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
def test_a_column_that_was_dropped_and_added_again(node: Node, late: Session):
    late.execute("update item set code = 'late' where id = 1")
    late.execute("insert into item values (1001, 'late', 1)")
    change(node, "alter table item drop column code", "alter table item add column code text default 'x'", *SHUT)
    late.execute("commit")
    assert ask(node, "select code, count(*) from item group by code") == [("x", 501)]
    assert check(node) == []


@pytest.mark.parametrize("load", [False, True], ids=["insert", "load"])
def test_a_column_that_was_converted_when_there_were_no_rows(node: Node, late: Session, load: bool):
    ask(node, "create table e (id int primary key, code text not null, n int unique)")
    late.execute("commit")
    late.execute("begin")
    if load:
        late.execute("insert into e select i, 'c' || i, i from generate_series(7, 3007) g(i)")
    else:
        late.execute("insert into e values (7, 'c7', 7)")
    change(
        node,
        "alter table e alter column code type int using substr(code, 2)::int + id",
        "alter table e alter column n type text",
        "alter table e rename column n to m",
    )
    ask(node, "insert into e values (1, 2, 'three')")
    late.execute("commit")
    assert ask(node, "select * from e where id < 8 order by id") == [(1, 2, "three"), (7, 14, "7")]
    assert ask(node, "select count(*) from e where code <> 2 * id") == [(0,)]
    assert ask(node, "select id from e where m = '7'") == [(7,)]
    assert check(node) == []


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
@pytest.mark.parametrize(("value", "sqlstate"), [("word", "22P02"), (None, "23502")])
def test_a_value_that_cannot_be_converted_when_there_were_no_rows(
    node: Node, late: Session, value: str | None, sqlstate: str
):
    ask(node, "create table e (id int primary key, code text)")
    late.execute("commit")
    late.execute("begin")
    late.execute("insert into e values (7, $1)", [value])
    change(node, "alter table e alter column code type int using code::int", "alter table e alter code set not null")
    with pytest.raises(errors.Error) as caught:
        late.execute("commit")
    assert caught.value.sqlstate == sqlstate
    assert ask(node, "select * from e") == []


def test_a_primary_key_that_was_drawn_since(node: Node, late: Session):
    late.execute("update item set code = 'late' where id = 1")
    late.execute("delete from item where id = 2")
    late.execute("insert into item values (1001, 'late', 1)")
    late.execute("select * from item where id = 3 for update")
    change(
        node,
        "alter table item add column s serial",
        "alter table item alter primary key using columns (s)",
        "alter table item drop constraint item_id_key",
        *SHUT,
    )
    late.execute("commit")
    assert ask(node, "select count(*), count(distinct s), count(s) from item") == [(500, 500, 500)]
    assert ask(node, "select id, code from item where id in (1, 2, 1001) order by id") == [(1, "late"), (1001, "late")]
    assert check(node) == []


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
def test_a_row_under_a_key_that_was_drawn_since_was_changed_by_another(node: Node, late: Session):
    late.execute("set transaction isolation level repeatable read")
    late.execute("update item set code = 'late' where id = 1")
    change(node, "alter table item add column s serial", "alter table item alter primary key using columns (s)")
    ask(node, "update item set code = 'first' where id = 1")
    with pytest.raises(errors.SerializationFailure):
        late.execute("commit")
    assert ask(node, "select code from item where id = 1") == [("first",)]


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
@pytest.mark.parametrize("action", ["cascade", "set null"])
def test_rows_that_referred_to_others_in_a_table_that_is_gone(node: Node, late: Session, action: str):
    ask(node, f"create table child (id int primary key, item int references item on delete {action})")
    ask(node, "insert into child select i, i from generate_series(1, 10) g(i)")
    late.execute("commit")
    # DROP would wait for a writer.
    late.execute("begin isolation level repeatable read; select * from child")
    change(node, "drop table child")
    late.execute("delete from item where id = 5")
    late.execute("insert into other values (1000, 'late')")
    late.execute("commit")
    assert ask(node, "select count(*) from item") == [(499,)]
    assert ask(node, "select code from other where id = 1000") == [("late",)]
    ask(node, "undrop table child")
    with pytest.raises(errors.Error, match=r"\(item\)=\(5\)"):
        ask(node, "alter table child validate constraint child_item_fkey")
    assert check(node) == []


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
def test_a_table_that_is_gone_and_was_written_to(node: Node, late: Session):
    """Nothing would be left of its writes."""
    late.execute("set transaction isolation level repeatable read")
    late.execute("select * from other")
    change(node, "drop table other")
    late.execute("insert into other values (1000, 'late')")
    with pytest.raises(errors.SerializationFailure) as caught:
        late.execute("commit")
    assert "other has changed" in str(caught.value)
