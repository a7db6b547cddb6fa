"""The values that a session gave its settings."""

from __future__ import annotations

from collections.abc import Mapping

from seachange import errors
from seachange.sql.settings.settings import (
    FIXED,
    IGNORED_SETTINGS,
    PIPELINE_SETTINGS,
    SETTINGS,
    SPELLINGS,
    Setting,
    find_setting,
)

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
        # How often something did.
        self.changes = 0

    def get(self, name: str) -> str:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._look_up(name)
        return known

    def _note_change(self) -> None:
        self._known.clear()
        self.changes += 1

    def _look_up(self, name: str) -> str:
        if name in FIXED:
            return self._values.get(name, FIXED[name])
        setting = find_setting(name)
        if name in self._local:
            return self._local[name]
        return self._values.get(name, self._initial(setting))

    def _initial(self, setting: Setting) -> str:
        return self._begun.get(setting.name, self.defaults.get(setting.name, setting.default))

    def add_defaults(self, defaults: Mapping[str, str]) -> None:
        self.defaults |= defaults
        self._note_change()

    def begin_with(self, name: str, value: str) -> None:
        """As `set`, and for good: it is what RESET and DISCARD go back to."""
        self.set(name, value)
        if name in self._values and name not in FIXED:
            self._begun[name] = self._values.pop(name)

    def set(self, name: str, value: str | None, local: bool = False) -> None:
        self._note_change()
        if name in FIXED:
            self._set_fixed(name, value)
            return
        setting = find_setting(name)
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
        if name in IGNORED_SETTINGS:
            self._values[name] = FIXED[name] if value is None else value
        elif value is not None and value.lower() not in SPELLINGS.get(name, (FIXED[name].lower(),)):
            raise errors.SettingFixed(name=name, value=FIXED[name])

    def reset(self, name: str | None) -> None:
        self._note_change()
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
        self._note_change()
        self._values, self._local = dict(mark[0]), dict(mark[1])

    def end_own(self, before: SettingsMark, committed: bool) -> None:
        """After a transaction that the client did not begin, `before` which they were so."""
        values, local = self._values if committed else before[0], before[1]
        if (values, local) != (self._values, self._local):
            self.restore((values, local))

    def begin(self) -> None:
        self._before = dict(self._values)

    def end(self, committed: bool) -> None:
        if self._before is not None and not committed:
            self._values = self._before
        self._before = None
        self._local.clear()
        self._note_change()
