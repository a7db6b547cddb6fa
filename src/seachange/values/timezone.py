"""The time zone of a session, in which timestamps without an offset are read and all timestamps are displayed.

**Invariant:** timestamptz values are stored in UTC; a zone only affects how they are read and displayed. A conversion
that is compiled for later use keeps its zone.
"""

from __future__ import annotations

import datetime as dt
import re
from contextvars import ContextVar
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

UTC = "UTC"
_UTC_NAMES = frozenset({"utc", "gmt", "etc/utc", "zulu", "z", "local", "+00:00"})
_HOURS = re.compile(r"[+-]?[0-9]{1,2}")
# Other forms of the same files, with leap seconds or POSIX rules.
_UNWANTED = ("posix/", "right/", "localtime", "posixrules", "factory")

_session_zone: ContextVar[str] = ContextVar("session_zone", default=UTC)


def session_zone() -> str:
    return _session_zone.get()


class InZone:
    """`with InZone(name)`: that is the zone of the session."""

    __slots__ = ("_before", "_name")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._before = _session_zone.set(self._name)

    def __exit__(self, *_: object) -> None:
        _session_zone.reset(self._before)


def find_zone(name: str) -> dt.tzinfo:
    return dt.UTC if name == UTC else ZoneInfo(name)


def check_zone(text: str) -> str:
    """The name of a zone in the tz database, or of a number of hours east of UTC; raises ValueError.

    >>> check_zone("europe/berlin"), check_zone("-7"), check_zone("gmt")
    ('Europe/Berlin', 'Etc/GMT+7', 'UTC')
    """
    text = text.strip()
    if text.lower() in _UTC_NAMES:
        return UTC
    if _HOURS.fullmatch(text):
        # The names of these zones count hours west.
        text = f"Etc/GMT{-int(text):+d}" if int(text) else UTC
    found = _zones().get(text.lower())
    if found is None:
        raise ValueError(text)
    return found


@lru_cache(maxsize=1)
def _zones() -> dict[str, str]:
    wanted = (name for name in available_timezones() if not name.lower().startswith(_UNWANTED))
    return {UTC.lower(): UTC, **{name.lower(): name for name in wanted}}
