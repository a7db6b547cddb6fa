"""The settings of a session: their values as text, and those that the engine needs as typed values.

**Invariant:** typed values are parsed when a setting has changed, never by a statement that only uses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seachange import errors
from seachange.model.isolation import Isolation
from seachange.sql.settings import settings
from seachange.sql.settings.setting_checks import parse_duration_ms, parse_log_duration_ms, parse_size

# What RESET ALL leaves as it is: who the session is, and what the transaction is.
_ISOLATION = "transaction_isolation"
_NOT_RESET = frozenset({"role", "session_authorization", _ISOLATION})
# The values of a session, and those that end with its transaction.
SettingsMark = tuple[dict[str, str], dict[str, str]]


@dataclass(frozen=True, slots=True)
class TypedSettings:
    """The settings that statements and transactions depend on; a limit of 0 means none. `as_of` and `layout` stay text:
    a point in time is read in the time zone of the statement that uses it. `role` and `session_user` are None where
    the session keeps the role that it began with."""

    statement_timeout_ms: int
    # From which duration statements are logged; none if it is negative.
    log_min_duration_ms: int
    lock_timeout_ms: int
    drain_timeout_ms: int
    idle_timeout_ms: int
    idle_in_transaction_timeout_ms: int
    process_growth_bytes_max: int
    temp_space_bytes_max: int
    timezone: str
    search_path: str
    role: str | None
    session_user: str | None
    default_isolation: Isolation
    is_read_only: bool
    as_of: str
    layout: str
    concurrently: str


class SessionSettings:
    """The values of one session. SET is undone by ROLLBACK; SET LOCAL ends with the transaction."""

    def __init__(self, defaults: Mapping[str, str] | None = None) -> None:
        """`defaults` are those of the database, in their canonical form."""
        self.defaults = dict(defaults or {})
        # What the client asked for when it connected, to which RESET goes back.
        self._begun: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._local: dict[str, str] = {}
        self._before: dict[str, str] | None = None
        # How often a value has changed that outlives a transaction block, or can: all but the level of the block.
        self.changes = 0
        # With the count of changes that it was parsed at: other threads look at the settings of a silent client.
        self._typed: tuple[int, TypedSettings] | None = None

    @property
    def typed(self) -> TypedSettings:
        known = self._typed
        if known is None or known[0] != self.changes:
            known = self._typed = (self.changes, self._parse())
        return known[1]

    def _parse(self) -> TypedSettings:
        role, session_user = self.get("role"), self.get("session_authorization")
        return TypedSettings(
            statement_timeout_ms=parse_duration_ms(self.get("statement_timeout")),
            log_min_duration_ms=parse_log_duration_ms(self.get("log_min_duration_statement")),
            lock_timeout_ms=parse_duration_ms(self.get("lock_timeout")),
            drain_timeout_ms=parse_duration_ms(self.get("seachange.drain_timeout")),
            idle_timeout_ms=parse_duration_ms(self.get("idle_session_timeout")),
            idle_in_transaction_timeout_ms=parse_duration_ms(self.get("idle_in_transaction_session_timeout")),
            process_growth_bytes_max=parse_size(self.get("seachange.process_growth_limit")),
            temp_space_bytes_max=parse_size(self.get("seachange.temp_space_limit")),
            timezone=self.get("timezone"),
            search_path=self.get("search_path"),
            role=None if role == "none" else role,
            session_user=None if session_user == "default" else session_user,
            default_isolation=Isolation(self.get("default_transaction_isolation")),
            is_read_only=self.get(settings.READ_ONLY) == "on",
            as_of=self.get("seachange.as_of"),
            layout=self.get("seachange.layout"),
            concurrently=self.get("seachange.concurrently"),
        )

    @property
    def isolation(self) -> Isolation:
        """Of the transaction block."""
        return Isolation(self.get(_ISOLATION))

    def get(self, name: str) -> str:
        if name in settings.FIXED:
            return self._values.get(name, settings.FIXED[name])
        setting = settings.find_setting(name)
        if name in self._local:
            return self._local[name]
        return self._values.get(name, self._initial(setting))

    def _initial(self, setting: settings.Setting) -> str:
        return self._begun.get(setting.name, self.defaults.get(setting.name, setting.default))

    def add_defaults(self, defaults: Mapping[str, str]) -> None:
        self.defaults |= defaults
        self.changes += 1

    def begin_with(self, name: str, value: str) -> None:
        """As `set`, and RESET and DISCARD go back to this value."""
        self.set(name, value)
        if name in self._values and name not in settings.FIXED:
            self._begun[name] = self._values.pop(name)

    def set(self, name: str, value: str | None, local: bool = False) -> None:
        if name in settings.FIXED:
            self._set_fixed(name, value)
            self.changes += 1
            return
        setting = settings.find_setting(name)
        try:
            checked = self._initial(setting) if value is None else setting.check(value)
        except ValueError:
            raise errors.InvalidSetting(name=name, value=value) from None
        if local:
            self._local[name] = checked
        else:
            self._local.pop(name, None)
            self._values[name] = checked
        self.changes += name != _ISOLATION

    def _set_fixed(self, name: str, value: str | None) -> None:
        if name in settings.IGNORED_SETTINGS:
            self._values[name] = settings.FIXED[name] if value is None else value
        elif value is not None and value.lower() not in settings.SPELLINGS.get(name, (settings.FIXED[name].lower(),)):
            raise errors.SettingFixed(name=name, value=settings.FIXED[name])

    def reset(self, name: str | None) -> None:
        if name is not None:
            self.set(name, None)
            return
        self._values = {kept: value for kept, value in self._values.items() if kept in _NOT_RESET}
        self._local = {kept: value for kept, value in self._local.items() if kept in _NOT_RESET}
        self.changes += 1

    def show(self) -> list[tuple[str, str, str]]:
        described = {name: setting.description for name, setting in settings.SETTINGS.items()}
        described |= dict.fromkeys(settings.FIXED, "As in PostgreSQL; it cannot be changed.")
        return [(name, self.get(name), text) for name, text in sorted(described.items())]

    def has_set(self, name: str) -> bool:
        return any(name in values for values in (self._begun, self._values, self._local))

    def given(self) -> tuple[tuple[str, str], ...]:
        """What this session has set."""
        return tuple(sorted({**self._begun, **self._values, **self._local}.items()))

    def for_jobs(self) -> tuple[tuple[str, str], ...]:
        """The settings among them that jobs of the session use, on every node."""
        given = tuple(pair for pair in self.given() if pair[0] in settings.PIPELINE_SETTINGS)
        # The session decides about the publication, also by a default of its database that other nodes need not have.
        publish = self.get(settings.PUBLISH)
        return given if publish == "auto" else (*given, (settings.PUBLISH, publish))

    def mark(self) -> SettingsMark:
        """A point within a transaction to go back to."""
        return dict(self._values), dict(self._local)

    def restore(self, mark: SettingsMark) -> None:
        self._values, self._local = dict(mark[0]), dict(mark[1])
        self.changes += 1

    def end_own(self, before: SettingsMark, committed: bool) -> None:
        """Ends an autocommit transaction; `before` are the values from before it."""
        values, local = self._values if committed else before[0], before[1]
        if (values, local) != (self._values, self._local):
            self.restore((values, local))

    def begin(self) -> None:
        self._before = dict(self._values)

    def end(self, committed: bool) -> None:
        before, self._before = self._before, None
        is_undone = before is not None and not committed and before != self._values
        if before is not None and is_undone:
            self._values = before
        had_local = bool(self._local.keys() - {_ISOLATION})
        self._local.clear()
        self.changes += is_undone or had_local
