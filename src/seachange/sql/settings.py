"""The settings of a session: a table of what exists, and the values that a session gave them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from seachange import errors
from seachange.model.coercion import coerce
from seachange.model.ids import Seq
from seachange.model.isolation import ISOLATION_BY_NAME
from seachange.model.search_path import DEFAULT_PATH, parse_path
from seachange.model.timezone import UTC, check_zone
from seachange.model.types import Kind, SqlType
from seachange.pipeline.spark_options import parse_options

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
# A node that beats five times within its expiry must have the time to.
EXPIRY_MS_MIN = 100
# What every statement of a client fits into, and what a signed length cannot say any more.
MESSAGE_BYTES_MIN, MESSAGE_BYTES_BEYOND = 1 << 16, 1 << 31
# As a JVM takes it.
# How the address of a server of Spark Connect begins.
_CONNECT = "sc://"
_SPARK_MEMORY = re.compile(r"[1-9][0-9]*[kmgt]b?", re.IGNORECASE)
_UTF8 = frozenset({"utf8", "unicode"})


@dataclass(frozen=True, slots=True)
class Setting:
    """`check` raises ValueError for a value that the setting cannot have, and gives it in its canonical form."""

    name: str
    default: str
    check: Callable[[str], str]
    description: str
    # Belongs to the node, and is read when the database is opened.
    of_node: bool = False
    # Concerns others, or what runs on the machine: for superusers only.
    for_superusers: bool = False


def _any_text(value: str) -> str:
    return value


def _check_isolation(value: str) -> str:
    level = ISOLATION_BY_NAME.get(" ".join(value.lower().split()))
    if level is None:
        raise ValueError(value)
    return level.value


def _check_duration(value: str) -> str:
    parse_duration_ms(value)
    return value


def _check_expiry(value: str) -> str:
    if parse_duration_ms(value) < EXPIRY_MS_MIN:
        raise ValueError(value)
    return value


def _check_size(value: str) -> str:
    parse_size(value)
    return value


def _check_encoding(value: str) -> str:
    # As in PostgreSQL, nothing but letters and digits counts: some clients send quotes along.
    if "".join(filter(str.isalnum, value.lower())) not in _UTF8:
        raise ValueError(value)
    return "UTF8"


def _check_as_of(value: str) -> str:
    parse_as_of(value)
    return value.strip()


def _check_concurrently(value: str) -> str:
    if value.lower() not in ("wait", "async"):
        raise ValueError(value)
    return value.lower()


def _check_switch(value: str) -> str:
    if (word := value.lower()) not in ("on", "off"):
        raise ValueError(value)
    return word


def _check_count(value: str) -> str:
    return str(_natural(value))


def _check_ratio(value: str) -> str:
    if not 0 <= float(value) < float("inf"):
        raise ValueError(value)
    return value.strip()


def _check_some(value: str) -> str:
    if not _natural(value):
        raise ValueError(value)
    return _check_count(value)


def _check_message_size(value: str) -> str:
    if not MESSAGE_BYTES_MIN <= parse_size(value) < MESSAGE_BYTES_BEYOND:
        raise ValueError(value)
    return value


def _check_rows(value: str) -> str:
    return "" if not value.strip() else str(_natural(value))


def _natural(value: str) -> int:
    text = value.strip().replace("_", "")
    if not text.isdecimal():
        raise ValueError(value)
    return int(text)


def _check_path(value: str) -> str:
    parse_path(value, "")
    return value


def _check_master(value: str) -> str:
    if value.startswith(_CONNECT):
        raise errors.SparkUnavailable(
            detail=f"{value} is a server of Spark Connect, not a master", remedy="Name it by seachange.spark.remote."
        )
    return value


def _check_remote(value: str) -> str:
    if value and not value.startswith(_CONNECT):
        raise ValueError(value)
    return value


def _check_memory(value: str) -> str:
    if not _SPARK_MEMORY.fullmatch(value):
        raise ValueError(value)
    return value


def _check_options(value: str) -> str:
    parse_options(value)
    return value


SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("application_name", "", _any_text, "The name that the client gives itself."),
        Setting("client_encoding", "UTF8", _check_encoding, "The encoding of text: always UTF8."),
        Setting(
            "default_transaction_isolation",
            "read committed",
            _check_isolation,
            "The isolation level of transactions that do not say.",
        ),
        Setting(
            "transaction_isolation",
            "read committed",
            _check_isolation,
            "The isolation level of the current transaction.",
        ),
        Setting(
            "seachange.as_of",
            "",
            _check_as_of,
            "Read as of a sequence number or a timestamp; empty for now.",
        ),
        Setting(
            "seachange.concurrently",
            "wait",
            _check_concurrently,
            "Whether CREATE and DROP INDEX CONCURRENTLY wait for their job, or give its id at once: wait or async.",
        ),
        Setting(
            "seachange.drain_timeout",
            "5s",
            _check_duration,
            "How long a schema change waits for transactions that began before it.",
        ),
        Setting("lock_timeout", "0", _check_duration, "How long a statement waits for a key; 0 for ever."),
        Setting(
            "authentication_timeout",
            "30s",
            _check_expiry,
            "How long a client of the server may take to log in.",
            of_node=True,
        ),
        Setting(
            "idle_in_transaction_session_timeout",
            "0",
            _check_duration,
            "After what silence within a transaction the server ends a connection (25P03); 0 for never.",
        ),
        Setting(
            "idle_session_timeout",
            "0",
            _check_duration,
            "After what silence outside of transactions the server ends a connection (57P05); 0 for never.",
        ),
        Setting(
            "max_connections",
            "200",
            _check_some,
            "How many clients the server takes; one more gets 53300. --connections counts more.",
            of_node=True,
        ),
        Setting(
            "seachange.max_prepared_statements",
            "10000",
            _check_some,
            "How many prepared statements, and how many portals, a connection may have; one more gets 53400.",
            of_node=True,
        ),
        Setting(
            "seachange.max_message_size",
            "256MB",
            _check_message_size,
            "How large a message of a client may be; a larger one ends its connection (08P01).",
            of_node=True,
        ),
        Setting(
            "seachange.memory_limit",
            "0",
            _check_size,
            "How much memory the queries of a node take before they spill; 0 for four fifths of the machine's.",
            of_node=True,
        ),
        Setting(
            "seachange.temp_space_limit",
            "0",
            _check_size,
            "How much space the queries of a node may spill to; 0 for nine tenths of what is free.",
            of_node=True,
        ),
        Setting(
            "seachange.node_expiry",
            "10s",
            _check_expiry,
            "After what silence a node is given up; of the database, not of a session.",
            of_node=True,
        ),
        Setting(
            "seachange.worker",
            "on",
            _check_switch,
            "Whether programs that open the database go on with jobs that others left behind; off leaves these to "
            "seachange worker and serve.",
            of_node=True,
        ),
        Setting(
            "seachange.retention",
            "1 day",
            _check_duration,
            "How long history, and what was dropped, is kept.",
            for_superusers=True,
        ),
        Setting(
            "seachange.process_growth_limit",
            "4GB",
            _check_size,
            "By how much the process may grow during a statement; 0 for any.",
            for_superusers=True,
        ),
        Setting(
            "seachange.local_rows",
            "",
            _check_rows,
            "Up to how many rows backfills and validations are done in-process, and more on Spark: 0 is always Spark, "
            "empty goes by the work.",
        ),
        Setting("seachange.pipeline_cores", "0", _check_count, "How many cores a pipeline uses at a time; 0 for all."),
        Setting(
            "seachange.pipeline_backoff_ratio",
            "0",
            _check_ratio,
            "The work of a job waits while statements take more than so many times as long as before it; 0 for never.",
        ),
        Setting(
            "seachange.pipeline_bytes_per_second",
            "0",
            _check_size,
            "How many bytes of files the work of a job reads and writes in a second, about; 0 for any.",
        ),
        Setting(
            "seachange.pipeline_free_space",
            "128MB",
            _check_size,
            "How much space the work of a job leaves free on the disk; with less it waits.",
            for_superusers=True,
        ),
        Setting(
            "seachange.pipeline_memory",
            "512MB",
            _check_size,
            "How much memory a kernel of the pipeline takes before it spills.",
        ),
        Setting(
            "seachange.pipeline_unit_rows",
            "0",
            _check_count,
            "About how many rows are read before the work on them is kept; 0 goes by the work.",
        ),
        Setting(
            "seachange.spark.master",
            "",
            _check_master,
            "Where Spark runs; empty for this machine, local[*].",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.remote",
            "",
            _check_remote,
            "A server of Spark Connect: sc://host:port.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.driver_memory", "1g", _check_memory, "The memory of Spark's driver.", for_superusers=True
        ),
        Setting(
            "seachange.spark.executor_memory",
            "1g",
            _check_memory,
            "The memory of each of Spark's executors.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.executor_cores",
            "",
            _check_rows,
            "The cores of each executor; empty for all.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.cores_max",
            "",
            _check_rows,
            "The cores of all executors; empty for all.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.python",
            "",
            _any_text,
            "The Python of the executors, which has this version of Seachange; empty for the path of this one.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.idle_timeout",
            "10min",
            _check_duration,
            "After what idle time Spark is stopped.",
            for_superusers=True,
        ),
        Setting(
            "seachange.spark.options",
            "",
            _check_options,
            "Other settings of Spark: name=value, separated by spaces.",
            for_superusers=True,
        ),
        Setting("role", "none", _any_text, "The role on whose behalf statements run; none: that of the session."),
        Setting("session_authorization", "default", _any_text, "The role of the session; default: that it began with."),
        Setting("search_path", DEFAULT_PATH, _check_path, "The schemas in which names are looked for, in order."),
        Setting("statement_timeout", "0", _check_duration, "How long a statement may take; 0 for ever."),
        Setting("timezone", UTC, check_zone, "The time zone of the session, by its name or in hours east."),
    )
}


# What clients of PostgreSQL ask for, and set to what it is: nothing here depends on it.
FIXED: dict[str, str] = {
    "block_size": "8192",
    "bytea_output": "hex",
    "check_function_bodies": "on",
    "client_min_messages": "notice",
    "constraint_exclusion": "partition",
    "data_checksums": "on",
    "datestyle": "ISO, MDY",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "default_transaction_deferrable": "off",
    "default_transaction_read_only": "off",
    "extra_float_digits": "1",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "on",
    "jit": "off",
    "lc_collate": "C",
    "lc_ctype": "C",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "quote_all_identifiers": "off",
    "row_security": "on",
    "server_encoding": "UTF8",
    "server_version": "15.0",
    "server_version_num": "150000",
    "standard_conforming_strings": "on",
    "synchronize_seqscans": "on",
    "wal_level": "replica",
    "xmloption": "content",
}
# Other ways to write what they are.
_SPELLINGS = {"datestyle": ("iso, mdy", "iso", "iso,mdy", "mdy"), "standard_conforming_strings": ("on", "true", "1")}
# Of these, the ones that may be set to anything: they say how results are written for people, or how PostgreSQL works.
_HEEDLESS = frozenset(
    {
        "check_function_bodies",
        "client_min_messages",
        "extra_float_digits",
        "jit",
        "row_security",
        "synchronize_seqscans",
        "xmloption",
    }
)


PIPELINE_SETTINGS = tuple(
    name for name in SETTINGS if name.startswith(("seachange.local_rows", "seachange.pipeline_", "seachange.spark."))
)


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


# What RESET ALL leaves as it is: who the session is, and what the transaction is.
_NOT_RESET = frozenset({"role", "session_authorization", "transaction_isolation"})
# The values of a session, and those that end with its transaction.
SettingsMark = tuple[dict[str, str], dict[str, str]]


class SessionSettings:
    """The values of one session. SET is undone by ROLLBACK; SET LOCAL ends with the transaction."""

    def __init__(self, defaults: Mapping[str, str] | None = None) -> None:
        """`defaults` are those of the database, in their canonical form."""
        self.defaults = dict(defaults or {})
        # What the client said when it began, to which RESET goes back.
        self._begun: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._local: dict[str, str] = {}
        self._before: dict[str, str] | None = None
        # What was asked for since something changed: every statement asks for a dozen.
        self._known: dict[str, str] = {}

    def get(self, name: str) -> str:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._look_up(name)
        return known

    def _look_up(self, name: str) -> str:
        if name in FIXED:
            return self._values.get(name, FIXED[name])
        setting = _find(name)
        if name in self._local:
            return self._local[name]
        return self._values.get(name, self._initial(setting))

    def _initial(self, setting: Setting) -> str:
        return self._begun.get(setting.name, self.defaults.get(setting.name, setting.default))

    def add_defaults(self, defaults: Mapping[str, str]) -> None:
        self.defaults |= defaults
        self._known.clear()

    def begin_with(self, name: str, value: str) -> None:
        """As `set`, and for good: it is what RESET and DISCARD go back to."""
        self.set(name, value)
        if name in self._values and name not in FIXED:
            self._begun[name] = self._values.pop(name)

    def set(self, name: str, value: str | None, local: bool = False) -> None:
        self._known.clear()
        if name in FIXED:
            self._set_fixed(name, value)
            return
        setting = _find(name)
        try:
            checked = self._initial(setting) if value is None else setting.check(value)
        except ValueError:
            raise errors.InvalidSetting(name=name, value=value) from None
        if local:
            self._local[name] = checked
        else:
            self._local.pop(name, None)
            self._values[name] = checked

    def _set_fixed(self, name: str, value: str | None) -> None:
        if name in _HEEDLESS:
            self._values[name] = FIXED[name] if value is None else value
        elif value is not None and value.lower() not in _SPELLINGS.get(name, (FIXED[name].lower(),)):
            raise errors.SettingFixed(name=name, value=FIXED[name])

    def reset(self, name: str | None) -> None:
        self._known.clear()
        if name is None:
            self._values = {kept: value for kept, value in self._values.items() if kept in _NOT_RESET}
            self._local = {kept: value for kept, value in self._local.items() if kept in _NOT_RESET}
        else:
            self.set(name, None)

    def show(self) -> list[tuple[str, str, str]]:
        described = {name: setting.description for name, setting in SETTINGS.items()}
        described |= dict.fromkeys(FIXED, "As in PostgreSQL; it cannot be changed.")
        return [(name, self.get(name), text) for name, text in sorted(described.items())]

    def has_set(self, name: str) -> bool:
        return any(name in values for values in (self._begun, self._values, self._local))

    def given(self) -> tuple[tuple[str, str], ...]:
        """What this session has set."""
        return tuple(sorted({**self._begun, **self._values, **self._local}.items()))

    def for_jobs(self) -> tuple[tuple[str, str], ...]:
        """What of it the jobs of the session heed, whoever runs them."""
        return tuple(pair for pair in self.given() if pair[0] in PIPELINE_SETTINGS)

    def mark(self) -> SettingsMark:
        """A point within a transaction to go back to."""
        return dict(self._values), dict(self._local)

    def restore(self, mark: SettingsMark) -> None:
        self._known.clear()
        self._values, self._local = dict(mark[0]), dict(mark[1])

    def begin(self) -> None:
        self._before = dict(self._values)

    def end(self, committed: bool) -> None:
        if self._before is not None and not committed:
            self._values = self._before
        self._before = None
        self._local.clear()
        self._known.clear()


def is_of_node(name: str) -> bool:
    return name not in FIXED and _find(name).of_node


def check_privilege(name: str, superuser: bool) -> None:
    if not superuser and name not in FIXED and _find(name).for_superusers:
        raise errors.InsufficientPrivilege(detail=f'permission denied to set parameter "{name}"')


def _find(name: str) -> Setting:
    setting = SETTINGS.get(name)
    if setting is None:
        raise errors.UndefinedObject(kind="configuration parameter", name=name)
    return setting
