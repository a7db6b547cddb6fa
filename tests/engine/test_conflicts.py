"""Conflicts are by key: exactly one of two commits that wrote the same key gets through, whatever the nodes."""

from contextlib import closing

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.isolation import Isolation
from tests.engine.database import arrow, bulk, create, insert, rows, scan
from tests.engine.threads import together

UNIQUE_V = [("t_v_key", (2,), True)]


def increment(node: Node, times: int) -> int:
    """Adds one to the counter so often, beginning again on every conflict; gives the number of conflicts."""
    conflicts = 0
    for _ in range(times):
        while True:
            txn = node.begin(Isolation.REPEATABLE_READ)
            table = txn.schema.table(None, "t")
            old = txn.reads.get(table, (1,))
            assert old is not None
            txn.writes.update(table, [old], [(1, "counter", old[2] + 1)])
            try:
                txn.commit()
                break
            except errors.SerializationFailure:
                conflicts += 1
    return conflicts


def test_no_update_is_lost(node: Node, other: Node):
    create(node)
    insert(node, (1, "counter", 0))
    together(*[lambda n=n: increment(n, 25) for n in (node, node, other, other)])
    assert rows(node) == rows(other) == [(1, "counter", 100)]


@pytest.mark.parametrize("change", ["update", "delete"])
def test_first_writer_of_a_key_wins(node: Node, other: Node, change: str):
    create(node)
    insert(node, (1, "a", 0), (2, "b", 0))
    first, second, bystander = node.begin(), other.begin(), other.begin()
    table = first.schema.table(None, "t")
    first.writes.update(table, [(1, "a", 0)], [(1, "first", 1)])
    if change == "update":
        second.writes.update(table, [(1, "a", 0)], [(1, "second", 2)])
    else:
        second.writes.delete(table, [(1, "a", 0)])
    bystander.writes.update(table, [(2, "b", 0)], [(2, "bystander", 3)])
    first.commit()
    with pytest.raises(errors.SerializationFailure) as refused:
        second.commit()
    assert refused.value.sqlstate == "40001"
    bystander.commit()
    assert rows(node) == [(1, "first", 1), (2, "bystander", 3)]


def test_two_inserts_of_one_key(node: Node, other: Node):
    create(node)
    first, second = node.begin(), other.begin()
    table = first.schema.table(None, "t")
    first.writes.insert(table, [(1, "first", 1)])
    second.writes.insert(table, [(1, "second", 2)])
    second.commit()
    with pytest.raises(errors.SerializationFailure):
        first.commit()
    assert rows(other) == [(1, "second", 2)]


@pytest.mark.parametrize("in_bulk", [False, True])
def test_nulls_that_are_one_unique_key_across_nodes(node: Node, other: Node, in_bulk: bool):
    with closing(Session(node)) as session:
        session.execute("create table t (id bigint primary key, v text unique nulls not distinct, n int)")
    first, second = node.begin(), other.begin()
    table = first.schema.table(None, "t")
    if in_bulk:
        first.writes.insert_arrow(table, arrow(table, [(1, None, 1)]))
    else:
        first.writes.insert(table, [(1, None, 1)])
    second.writes.insert(table, [(2, None, 2)])
    first.commit()
    with pytest.raises(errors.SerializationFailure):
        second.commit()


def test_unique_key_across_nodes(node: Node, other: Node):
    create(node, indexes=UNIQUE_V)
    first, second = node.begin(), other.begin()
    table = first.schema.table(None, "t")
    first.writes.insert(table, [(1, "same", 1)])
    second.writes.insert(table, [(2, "same", 2)])
    first.commit()
    with pytest.raises(errors.SerializationFailure):
        second.commit()
    with pytest.raises(errors.UniqueViolation):
        insert(other, (2, "same", 2))
    assert rows(other) == [(1, "same", 1)]


def test_a_freed_unique_key_can_be_taken_by_one(node: Node, other: Node):
    create(node, indexes=UNIQUE_V)
    insert(node, (1, "key", 0))
    txn = node.begin()
    txn.writes.delete(txn.schema.table(None, "t"), [(1, "key", 0)])
    txn.commit()
    first, second = node.begin(), other.begin()
    first.writes.insert(first.schema.table(None, "t"), [(2, "key", 0)])
    second.writes.insert(second.schema.table(None, "t"), [(3, "key", 0)])
    second.commit()
    with pytest.raises(errors.SerializationFailure):
        first.commit()
    assert rows(node) == [(3, "key", 0)]


def test_nulls_are_distinct_in_a_unique_index(node: Node, other: Node):
    create(node, indexes=UNIQUE_V)
    first, second = node.begin(), other.begin()
    first.writes.insert(first.schema.table(None, "t"), [(1, None, 1)])
    second.writes.insert(second.schema.table(None, "t"), [(2, None, 2)])
    first.commit()
    second.commit()
    assert rows(node) == [(1, None, 1), (2, None, 2)]


def test_a_statement_may_shift_unique_keys(node: Node):
    create(node, indexes=UNIQUE_V)
    insert(node, (1, "a", 0), (2, "b", 0))
    txn = node.begin()
    table = txn.schema.table(None, "t")
    txn.writes.update(table, [(1, "a", 0), (2, "b", 0)], [(2, "a", 0), (1, "b", 0)])
    txn.commit()
    assert rows(node) == [(1, "b", 0), (2, "a", 0)]


@pytest.mark.parametrize("bulk_first", [True, False])
@pytest.mark.parametrize("same", [True, False])
def test_bulk_insert_against_an_insert(node: Node, other: Node, bulk_first: bool, same: bool):
    create(node)
    loader, writer = node.begin(), other.begin()
    table = loader.schema.table(None, "t")
    loader.writes.insert_arrow(table, arrow(table, [(i, "bulk", 0) for i in range(100)]))
    key = 50 if same else 500
    writer.writes.insert(writer.schema.table(None, "t"), [(key, "single", 1)])
    first, second = (loader, writer) if bulk_first else (writer, loader)
    first.commit()
    if same:
        with pytest.raises(errors.SerializationFailure):
            second.commit()
    else:
        second.commit()
    found = rows(node)
    assert len(found) == len({row[0] for row in found}) == (101 if not same else 100 if bulk_first else 1)
    assert rows(other) == found


def test_bulk_insert_against_a_commit_that_writes_to_the_table_and_drops_it(node: Node):
    create(node)
    loader = node.begin()
    table = loader.schema.table(None, "t")
    # DROP would wait for a writer.
    with closing(Session(node)) as session:
        session.execute("begin; insert into t values (500, 'single', 1); drop table t; commit")
    loader.writes.insert_arrow(table, arrow(table, [(i, "bulk", 0) for i in range(100)]))
    with pytest.raises(errors.SerializationFailure):
        loader.commit()


@pytest.mark.parametrize("same", [True, False])
def test_bulk_insert_against_a_bulk_insert_on_a_unique_key(node: Node, other: Node, same: bool):
    create(node, indexes=UNIQUE_V)
    first, second = node.begin(), other.begin()
    table = first.schema.table(None, "t")
    first.writes.insert_arrow(table, arrow(table, [(i, f"v{i}", 0) for i in range(10)]))
    second.writes.insert_arrow(table, arrow(table, [(100 + i, f"v{i + (9 if same else 10)}", 0) for i in range(10)]))
    first.commit()
    if same:
        with pytest.raises(errors.SerializationFailure):
            second.commit()
    else:
        second.commit()
    assert len(rows(node)) == (10 if same else 20)


def test_bulk_insert_against_an_update_of_another_row(node: Node, other: Node):
    create(node)
    bulk(node, *[(i, "old", 0) for i in range(10)])
    loader, writer = node.begin(), other.begin()
    table = writer.schema.table(None, "t")
    loader.writes.insert_arrow(table, arrow(table, [(i, "bulk", 0) for i in range(100, 110)]))
    writer.writes.update(table, [(5, "old", 0)], [(5, "new", 1)])
    writer.commit()
    loader.commit()
    assert (5, "new", 1) in rows(node)
    assert len(rows(node)) == 20


def test_a_conflict_is_found_after_the_node_followed_the_log(node: Node, other: Node):
    """Validation before the lock sees what the node has applied; the lock sees the rest. Here it is the former."""
    create(node)
    insert(node, (1, "a", 0))
    late = node.begin(Isolation.REPEATABLE_READ)
    table = late.schema.table(None, "t")
    late.writes.update(table, [(1, "a", 0)], [(1, "late", 0)])
    insert(other, (2, "x", 0))
    early = other.begin()
    early.writes.update(table, [(1, "a", 0)], [(1, "early", 0)])
    early.commit()
    assert rows(node) == [(1, "early", 0), (2, "x", 0)]
    with pytest.raises(errors.SerializationFailure):
        late.commit()


def test_write_skew_is_allowed_below_serializable(node: Node):
    """What REPEATABLE READ does not promise: the two transactions read what the other writes."""
    create(node)
    insert(node, (1, "a", 0), (2, "b", 0))
    first, second = (node.begin(Isolation.REPEATABLE_READ) for _ in range(2))
    table = first.schema.table(None, "t")
    assert scan(node, first, table) == scan(node, second, table)
    first.writes.update(table, [(1, "a", 0)], [(1, "a", 1)])
    second.writes.update(table, [(2, "b", 0)], [(2, "b", 1)])
    first.commit()
    second.commit()
