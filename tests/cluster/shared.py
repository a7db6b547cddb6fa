"""The database that several processes change at once, and what must hold of it at the end."""

from collections import Counter

from seachange.engine.node.node import Node
from seachange.engine.transaction.transaction import Transaction
from tests.crash.workload import with_tables
from tests.support.judge import inspect, judge_markers
from tests.support.nodes import Place, open_ported_node
from tests.support.tables import KEYED, KEYLESS, create_tables, read_table

KEYS = 12


def create_shared(place: Place) -> None:
    node = open_ported_node(place)
    try:
        with_tables(node, create_tables)
        with_tables(node, insert_rows)
    finally:
        node.close()


def insert_rows(txn: Transaction) -> None:
    for name in KEYED:
        txn.writes.insert(txn.schema.table(None, name), [(key, f"code {key}", 0, "new") for key in range(KEYS)])


def judge_shared(place: Place, acknowledged: set[int], possible: set[int]) -> list[str]:
    """Every marker once, every increment counted, both tables alike, indexes and files in order."""
    node = open_ported_node(place)
    try:
        problems = judge_markers(node, acknowledged, possible)
        return [*problems, *judge_sums(node), *inspect(node)]
    finally:
        node.close()


def judge_sums(node: Node) -> list[str]:
    txn = node.begin()
    try:
        left, right = (read_table(node, txn, name) for name in KEYED)
        markers = Counter(row[0] for row in read_table(node, txn, KEYLESS[0]))
    finally:
        txn.rollback()
    problems = [] if left == right else ["the tables differ"]
    increments = sum(row[2] for row in left)
    if increments != 2 * markers.total():
        problems.append(f"{increments} increments by {markers.total()} commits of two each")
    return problems
