"""A node stays alive whatever its statements do."""

import threading

from seachange.engine.node.node import Node
from tests.engine.database import create, insert
from tests.support.patience import PATIENCE_S


def test_a_heartbeat_needs_no_lock_of_the_statements(node: Node):
    """A thread that cannot have the epoch's lock can still beat; the test would hang if it needed it."""
    before = {record.epoch: record.heartbeat_us for record in node.parts.catalog.nodes()}
    with node.epoch.lock, node.epoch.committer._lead:
        beating = threading.Thread(target=node.beat)
        beating.start()
        beating.join(PATIENCE_S)
        assert not beating.is_alive()
    after = {record.epoch: record.heartbeat_us for record in node.parts.catalog.nodes()}
    assert after[node.epoch.epoch] > before[node.epoch.epoch]


def test_an_idle_node_lets_garbage_go(node: Node, other: Node):
    """The mark of a node without transactions follows the head."""
    create(node)
    seq = insert(node, (1, "a", 1))
    other.follow()
    other.beat()
    marks = {record.epoch: record.low_water for record in node.parts.catalog.nodes()}
    assert marks[other.epoch.epoch] == seq
