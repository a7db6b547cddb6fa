"""What the functions of a statement may ask of its session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from seachange.engine.context.statement_calls import NamedStatements
from seachange.model.schema.access import DEFAULT_ROLE
from seachange.model.schema.objects import DEFAULT_DATABASE
from seachange.sql.settings.session_settings import SessionSettings


def _check_nothing(name: str, value: str | None) -> None:
    """Nobody but a client is asked what it may."""


@dataclass(frozen=True, slots=True)
class SessionFacts:
    user: str = DEFAULT_ROLE
    database: str = DEFAULT_DATABASE
    number: int = 0
    values: SessionSettings = field(default_factory=SessionSettings)
    # Whether the client may set a setting so.
    check: Callable[[str, str | None], None] = _check_nothing
    statements: NamedStatements = field(default_factory=NamedStatements)

    @property
    def session_user(self) -> str:
        name = self.values.typed.session_user
        return self.user if name is None else name

    def setting(self, name: str) -> str:
        if name == "session_authorization":
            return self.session_user
        return self.values.get(name)

    def set_setting(self, name: str, value: str | None, local: bool) -> str:
        self.check(name, value)
        self.values.set(name, value, local)
        return self.values.get(name)

    def settings(self) -> Sequence[tuple[str, str, str]]:
        return self.values.show()

    def prepared(self) -> Sequence[tuple[str, str, Sequence[str], bool]]:
        return self.statements.show()
