"""SERIALIZABLE: what a transaction has read must still be so when it commits, also in the tail under the lock."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seachange import errors
from seachange.engine.node import Node
from seachange.engine.submit import UNLISTED_ATTEMPTS
from seachange.engine.transaction import Transaction
from seachange.model.descriptor import Table
from seachange.model.isolation import Isolation
from tests.engine.database import bulk, create, insert, rows, scan
from tests.engine.ports import HookedCatalog, open_hooked


@pytest.fixture
def hooked(tmp_path: Path, node: Node) -> Iterator[tuple[Node, HookedCatalog]]:
    create(node)
    insert(node, (1, "a", 1), (2, "b", 2))
    opened = open_hooked(tmp_path)
    yield opened
    opened[0].close()


def begin(node: Node) -> tuple[Transaction, Table]:
    txn = node.begin(Isolation.SERIALIZABLE)
    return txn, txn.table(None, "t")


def change(node: Node, id_: int) -> None:
    txn = node.begin()
    table = txn.table(None, "t")
    old = txn.get(table, (id_,))
    assert old is not None
    txn.update(table, [old], [(id_, "changed", 0)])
    txn.commit()


def is_refused(txn: Transaction) -> bool:
    try:
        txn.commit()
    except errors.SerializationFailure as problem:
        return problem.sqlstate == "40001"
    return False


Disturbance = Callable[[Node], object]


def insert_row(node: Node) -> None:
    insert(node, (7, "new", 7))


def bulk_row(node: Node) -> None:
    bulk(node, (7, "new", 7))


def change_first(node: Node) -> None:
    change(node, 1)


@pytest.mark.parametrize("in_tail", [False, True], ids=["before", "in the tail"])
@pytest.mark.parametrize(
    ("read", "disturbance", "refused"),
    [
        (1, change_first, True),
        (2, change_first, False),
        (2, insert_row, False),
        (7, insert_row, True),
        (7, bulk_row, True),
        (None, change_first, True),
        (None, insert_row, True),
        (None, bulk_row, True),
    ],
)
def test_a_commit_is_refused_when_what_it_read_was_written(
    node: Node,
    hooked: tuple[Node, HookedCatalog],
    read: int | None,
    disturbance: Disturbance,
    refused: bool,
    in_tail: bool,
) -> None:
    reader, catalog = hooked
    txn, table = begin(reader)
    if read is None:
        scan(reader, txn, table)
    else:
        txn.get(table, (read,))
    txn.insert(table, [(100, "written", 0)])

    def disturb() -> None:
        catalog.before.pop("commit", None)
        disturbance(node)

    if in_tail:
        catalog.before["commit"] = disturb
    else:
        disturb()
    assert is_refused(txn) is refused
    assert ((100, "written", 0) in rows(node)) is not refused


def test_reads_by_key_get_through_on_a_busy_table(node: Node, hooked: tuple[Node, HookedCatalog]) -> None:
    reader, catalog = hooked
    txn, table = begin(reader)
    txn.get(table, (1,))
    txn.insert(table, [(100, "written", 0)])
    busy = iter(range(200, 200 + 3 * UNLISTED_ATTEMPTS))

    def disturb() -> None:
        insert(node, (next(busy), "busy", 0))

    catalog.before["commit"] = disturb
    assert not is_refused(txn)


def test_a_listed_read_is_checked_in_the_tail(node: Node, hooked: tuple[Node, HookedCatalog]) -> None:
    reader, catalog = hooked
    txn, table = begin(reader)
    txn.get(table, (1,))
    txn.insert(table, [(100, "written", 0)])
    attempts = iter(range(UNLISTED_ATTEMPTS + 2))

    def disturb() -> None:
        attempt = next(attempts)
        if attempt <= UNLISTED_ATTEMPTS:
            insert(node, (200 + attempt, "busy", 0))
        else:
            change_first(node)

    catalog.before["commit"] = disturb
    assert is_refused(txn)


def test_a_transaction_that_writes_nothing_needs_no_check(node: Node, other: Node) -> None:
    create(node)
    insert(node, (1, "a", 1))
    txn, table = begin(other)
    assert scan(other, txn, table) == [(1, "a", 1)]
    change(node, 1)
    assert scan(other, txn, table) == [(1, "a", 1)]
    assert txn.commit() is None


def test_its_own_writes_do_not_stand_in_its_way(node: Node) -> None:
    create(node)
    insert(node, (1, "a", 1))
    txn, table = begin(node)
    txn.update(table, [(1, "a", 1)], [(1, "b", 1)])
    scan(node, txn, table)
    txn.get(table, (1,))
    assert not is_refused(txn)
