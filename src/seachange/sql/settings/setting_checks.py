"""Validation and parsing of setting values: durations, sizes, counts, time zones.

A check returns the value in its canonical form, and raises ValueError for one that the setting cannot have.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache

from seachange import errors
from seachange.model.ids import Seq
from seachange.model.isolation import ISOLATION_BY_NAME
from seachange.model.search_path import parse_path
from seachange.pipeline.spark_options import parse_options
from seachange.values.coercion import coerce
from seachange.values.types import Kind, SqlType

_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)
_MILLISECONDS: dict[str, int] = {
    "": 1,
    "us": 0,
    "ms": 1,
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1_000),
    **dict.fromkeys(("min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_SIZE = re.compile(r"\s*([0-9]{1,12})\s*([a-z]*)\s*", re.IGNORECASE)
_BYTES: dict[str, int] = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
# A node sends five heartbeats within its expiry; a shorter one leaves no time for them.
_EXPIRY_MS_MIN = 100
# Large enough for any statement of a client, and the first size that a signed 32-bit length cannot express.
_MESSAGE_BYTES_MIN, _MESSAGE_BYTES_BEYOND = 1 << 16, 1 << 31
# The prefix of a Spark Connect address.
_CONNECT = "sc://"
# The syntax of the JVM.
_SPARK_MEMORY = re.compile(r"[1-9][0-9]*[kmgt]b?", re.IGNORECASE)
_SHAPE_NAME = re.compile(r"[^\W\d][\w $.-]{0,62}")
# `t=3`, or `s.t=3`.
LAYOUT_NUMBER = re.compile(r"(?:(?P<schema>[^=]+)\.)?(?P<table>[^=.]+)=(?P<layout>[0-9]{1,9})")
_UTF8 = frozenset({"utf8", "unicode"})


@lru_cache(maxsize=64)
def parse_duration_ms(text: str) -> int:
    """
    >>> parse_duration_ms("1 day"), parse_duration_ms("10s"), parse_duration_ms("250")
    (86400000, 10000, 250)
    """
    match = _DURATION.fullmatch(text)
    if match is None or match.group(2).lower() not in _MILLISECONDS:
        raise ValueError(text)
    return int(float(match.group(1)) * _MILLISECONDS[match.group(2).lower()])


@lru_cache(maxsize=64)
def parse_size(text: str) -> int:
    """
    >>> parse_size("4GB"), parse_size("64 kB"), parse_size("100")
    (4294967296, 65536, 100)
    """
    match = _SIZE.fullmatch(text)
    if match is None or match.group(2).lower() not in _BYTES:
        raise ValueError(text)
    return int(match.group(1)) * _BYTES[match.group(2).lower()]


def parse_as_of(text: str) -> Seq | dt.datetime | None:
    """A sequence number, a point in time, or None for now."""
    text = text.strip()
    if not text:
        return None
    if text.isdigit():
        return Seq(int(text))
    try:
        moment = coerce(SqlType(Kind.TIMESTAMPTZ), text)
    except errors.DataError:
        raise ValueError(text) from None
    assert isinstance(moment, dt.datetime)
    return moment


def check_text(value: str) -> str:
    return value


def check_isolation(value: str) -> str:
    level = ISOLATION_BY_NAME.get(" ".join(value.lower().split()))
    if level is None:
        raise ValueError(value)
    return level.value


def check_duration(value: str) -> str:
    parse_duration_ms(value)
    return value


def parse_log_duration_ms(text: str) -> int:
    """
    >>> parse_log_duration_ms("-1"), parse_log_duration_ms("250ms")
    (-1, 250)
    """
    return -1 if text.strip() == "-1" else parse_duration_ms(text)


def check_log_duration(value: str) -> str:
    parse_log_duration_ms(value)
    return value.strip()


def check_expiry(value: str) -> str:
    if parse_duration_ms(value) < _EXPIRY_MS_MIN:
        raise ValueError(value)
    return value


def check_size(value: str) -> str:
    parse_size(value)
    return value


def check_encoding(value: str) -> str:
    # As in PostgreSQL, nothing but letters and digits counts: some clients send quotes along.
    if "".join(filter(str.isalnum, value.lower())) not in _UTF8:
        raise ValueError(value)
    return "UTF8"


def check_as_of(value: str) -> str:
    parse_as_of(value)
    return value.strip()


def check_layout(value: str) -> str:
    """A moment, the name of a shape, or a table with the number of a layout."""
    if not is_shape_name(value.strip()) and not LAYOUT_NUMBER.fullmatch(value.strip()):
        parse_as_of(value)
    return value.strip()


def is_shape_name(value: str) -> bool:
    """
    >>> is_shape_name("release_41"), is_shape_name("41"), is_shape_name("2026-03-01")
    (True, False, False)
    """
    if not _SHAPE_NAME.fullmatch(value):
        return False
    try:
        parse_as_of(value)
    except ValueError:
        return True
    return False


def check_concurrently(value: str) -> str:
    if value.lower() not in ("wait", "async"):
        raise ValueError(value)
    return value.lower()


def check_publish(value: str) -> str:
    if value.lower() not in ("auto", "manual"):
        raise ValueError(value)
    return value.lower()


def check_boolean(value: str) -> str:
    """As PostgreSQL reads it."""
    try:
        return "on" if coerce(SqlType(Kind.BOOLEAN), value) else "off"
    except errors.InvalidTextRepresentation:
        raise ValueError(value) from None


def check_switch(value: str) -> str:
    if (word := value.lower()) not in ("on", "off"):
        raise ValueError(value)
    return word


def check_count(value: str) -> str:
    return str(_natural(value))


def check_ratio(value: str) -> str:
    if not 0 <= float(value) < float("inf"):
        raise ValueError(value)
    return value.strip()


def check_some(value: str) -> str:
    if not _natural(value):
        raise ValueError(value)
    return check_count(value)


def check_message_size(value: str) -> str:
    if not _MESSAGE_BYTES_MIN <= parse_size(value) < _MESSAGE_BYTES_BEYOND:
        raise ValueError(value)
    return value


def check_rows(value: str) -> str:
    return "" if not value.strip() else str(_natural(value))


def _natural(value: str) -> int:
    text = value.strip().replace("_", "")
    if not text.isdecimal():
        raise ValueError(value)
    return int(text)


def check_path(value: str) -> str:
    parse_path(value, "")
    return value


def check_master(value: str) -> str:
    if value.startswith(_CONNECT):
        raise errors.SparkUnavailable(
            detail=f"{value} is a Spark Connect server, not a master",
            remedy="Set seachange.spark.remote to it instead.",
        )
    return value


def check_remote(value: str) -> str:
    if value and not value.startswith(_CONNECT):
        raise ValueError(value)
    return value


def check_memory(value: str) -> str:
    if not _SPARK_MEMORY.fullmatch(value):
        raise ValueError(value)
    return value


def check_options(value: str) -> str:
    parse_options(value)
    return value
