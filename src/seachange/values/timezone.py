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

from seachange import errors

UTC = "UTC"
_UTC_NAMES = frozenset({"utc", "gmt", "etc/utc", "zulu", "z", "local", "+00:00"})
_HOURS = re.compile(r"[+-]?[0-9]{1,2}")
# As POSIX writes offsets: positive ones are west of Greenwich.
_OFFSET = re.compile(r"(?:[a-z]{3,}|<[^>]*>)?([+-][0-9]{1,2})(?::([0-9]{2}))?", re.IGNORECASE)
_EAST = re.compile(r"interval ([+-]?[0-9]{1,2})(?::([0-9]{2}))? (?:hour to minute|hour)", re.IGNORECASE)
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

    >>> check_zone("europe/berlin"), check_zone("-7"), check_zone("gmt"), check_zone("+02:00")
    ('Europe/Berlin', 'Etc/GMT+7', 'UTC', 'Etc/GMT+2')
    """
    text = text.strip()
    if text.lower() in _UTC_NAMES:
        return UTC
    found = _zones().get(text.lower())
    if found is not None:
        return found
    if _HOURS.fullmatch(text):
        return _hours_west(-int(text))
    east, west = _EAST.fullmatch(text), _OFFSET.fullmatch(text)
    offset = east or west
    if offset is None:
        raise ValueError(text)
    if int(offset[2] or 0):
        raise errors.FeatureNotSupported(feature="a time zone of a part of an hour", instead="Name the zone.")
    return _hours_west(int(offset[1]) if east is None else -int(offset[1]))


def _hours_west(hours: int) -> str:
    found = _zones().get(f"etc/gmt{hours:+d}") if hours else UTC
    if found is None:
        raise ValueError(hours)
    return found


@lru_cache(maxsize=1)
def _zones() -> dict[str, str]:
    wanted = (name for name in available_timezones() if not name.lower().startswith(_UNWANTED))
    return {UTC.lower(): UTC, **{name.lower(): name for name in wanted}}
