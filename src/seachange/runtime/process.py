"""What this process takes of its machine, as a port."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

# By so much lower a priority leaves a thread a tenth of a core that others want.
_NICER = 10
_NICEST = 19
_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """The memory of the process; 0 where the system does not tell."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def give_way() -> None:
    """The calling thread, and those that it starts, leave the cores to others who want them, for good."""
    # Where the system knows no priority of a thread, or forbids it, the work is done as it is.
    with suppress(AttributeError, OSError):
        thread = threading.get_native_id()
        given = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(given + _NICER, _NICEST))
