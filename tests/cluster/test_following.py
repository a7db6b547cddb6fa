"""An idle node follows what others publish, without a statement of its own."""

import threading
import time

from seachange.engine.session.session import Session
from tests.support.nodes import HOUR_MS, Place, open_ported_node
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until


def test_an_idle_node_follows_a_new_descriptor_at_once(place: Place):
    """Its rounds are minutes apart, so only the watch can have told it."""
    active, idle = open_ported_node(place, "active"), open_ported_node(place, "idle", expiry_ms=HOUR_MS)
    session = Session(active)
    for n in range(3):
        session.execute(f"create table t{n} (id int primary key)")
        published = active.epoch.applied
        wait_until(lambda: idle.epoch.applied >= published, "the idle node to follow")  # noqa: B023
        assert f"t{n}" in {table.name for table in idle.epoch.schemas.newest.by_id.values()}
    session.close()
    for node in (active, idle):
        node.close()


def test_a_node_that_lost_its_watch_goes_on(postgres_server, tmp_path):
    url = postgres_server.create_database()
    place = Place(tmp_path, url)
    active, idle = open_ported_node(place, "active"), open_ported_node(place, "idle", expiry_ms=2_000)
    session = Session(active)
    session.execute("create table t (id int primary key)")
    wait_until(lambda: idle.epoch.applied >= active.epoch.applied, "the idle node to follow")
    postgres_server.restart()
    session.execute("create table u (id int primary key)")
    wait_until(lambda: idle.epoch.applied >= active.epoch.applied, "the idle node to follow again")
    session.close()
    for node in (active, idle):
        node.close()
    postgres_server.drop_database(url)


def test_watching_costs_next_to_nothing(place: Place):
    node = open_ported_node(place, expiry_ms=HOUR_MS)
    wait_until(lambda: node.statistics()["epoch"], "the node to be open")
    before = time.process_time()
    time.sleep(1)
    assert time.process_time() - before < 0.1
    node.close()


def test_closing_a_node_does_not_wait_for_a_round(place: Place):
    node = open_ported_node(place, expiry_ms=HOUR_MS)
    closing = threading.Thread(target=node.close, daemon=True)
    closing.start()
    closing.join(PATIENCE_S)
    assert not closing.is_alive()
