"""This process: its memory and priority, and a name by which others can tell whether it is still there."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

# A priority that leaves a thread a tenth of a core under contention.
_NICER = 10
_NICEST = 19
_STATM = Path("/proc/self/statm")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SELF = Path("/proc/self")
# Process numbers count in the first one, start times in the second one, which old systems lack.
_NUMBERS = Path("/proc/self/ns/pid")
_TIMES = Path("/proc/self/ns/time")
# The start time of a process, in its line of /proc behind the name, which may contain spaces.
_STARTED = 19


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


def name_process() -> str:
    """A name of this process that no other process ever has: the machine since its last start, the process number and
    when it began. Empty if the system does not tell."""
    where, number = _place(), os.getpid()
    try:
        return f"{where} {number} {_started(number)}" if where else ""
    except OSError:
        return ""


def is_gone(name: str) -> bool:
    """Whether the process of that name is known to have ended: only processes of the same machine can know it."""
    place, number, started = name.rsplit(" ", 2) if name else ("", "", "")
    if not place or place != _place():
        return False
    try:
        return _started(int(number)) != started
    except (FileNotFoundError, ProcessLookupError):
        return not _is_number_used(int(number))
    except OSError:
        return False


def _is_number_used(number: int) -> bool:
    """/proc may hide the processes of other users; signal 0 reaches none, but tells whether there is one."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _place() -> str:
    """The machine, since its last start, and the processes that are numbered and timed together. Empty if /proc shows
    those of other namespaces, where the same numbers belong to other processes."""
    try:
        if str(_SELF.readlink()) != str(os.getpid()):
            return ""
        times = _TIMES.readlink() if _TIMES.is_symlink() else ""
        return f"{_BOOT.read_text().strip()} {_NUMBERS.readlink()} {times}"
    except OSError:
        return ""


def _started(number: int) -> str:
    """When a process began; empty if it has ended and is waited for."""
    state, *facts = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return "" if state in "ZX" else facts[_STARTED - 1]
