"""Background work has a lower priority than threads that serve clients."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

from seachange.runtime.process import give_way


def nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_lower_priority_affects_one_thread():
    before = nice()
    with ThreadPoolExecutor(1, initializer=give_way) as hand:
        assert hand.submit(nice).result() > before
    assert nice() == before
