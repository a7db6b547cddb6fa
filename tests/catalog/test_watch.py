"""Notification of publications by other processes."""

import threading

from seachange.catalog.port import Catalog
from tests.catalog.builders import accept, publish, register
from tests.catalog.conftest import Opener
from tests.support.patience import PATIENCE_S
from tests.support.workers import wait_until


def test_watch_reports_descriptors_of_other_processes(open_one: Opener):
    here, there = open_one(), open_one()
    epoch = register(there)
    watch = here.watch()
    # What came before the watch must be looked for once.
    assert watch.wait(PATIENCE_S)
    assert not watch.wait(0)
    accept(there, epoch, descriptors=(publish(1, 0, 1),))
    assert watch.wait(PATIENCE_S)
    assert not watch.wait(0)
    watch.close()


def test_a_wait_is_ended_by_another_thread(catalog: Catalog):
    watch = catalog.watch()
    watch.wait(0)
    heard: list[bool] = []
    thread = threading.Thread(target=lambda: heard.append(watch.wait(600)), daemon=True)
    thread.start()
    watch.wake()
    wait_until(lambda: heard, "the wait to end")
    assert heard == [False]
    watch.close()
