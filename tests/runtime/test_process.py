"""Work in the background gives way to those who serve clients."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

from seachange.runtime.process import give_way


def nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_a_thread_gives_way_alone():
    before = nice()
    with ThreadPoolExecutor(1, initializer=give_way) as hand:
        assert hand.submit(nice).result() > before
    assert nice() == before
