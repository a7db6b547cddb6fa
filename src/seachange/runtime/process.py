"""Resource usage of this process: memory and priority."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

# A priority that leaves a thread a tenth of a core under contention.
_NICER = 10
_NICEST = 19
_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """The resident memory of the process; 0 if the system does not report it."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def give_way() -> None:
    """Permanently lowers the priority of the calling thread, and of threads that it starts."""
    # Ignored where thread priorities are not supported or not allowed.
    with suppress(AttributeError, OSError):
        thread = threading.get_native_id()
        given = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(given + _NICER, _NICEST))
