"""What the statements about a session itself need to know of it."""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

from seachange.model.isolation import Isolation
from seachange.sql.settings import SessionSettings


class Status(Enum):
    IDLE = auto()
    OPEN = auto()
    FAILED = auto()


class SessionState(Protocol):
    settings: SessionSettings
    notices: list[str]
    status: Status
    read_only: bool

    @property
    def has_begun(self) -> bool:
        """Whether a statement of the open transaction has looked at the database."""

    def begin(self, isolation: Isolation | None = None, read_only: bool | None = None) -> None: ...

    def commit(self) -> bool: ...

    def rollback(self) -> None: ...

    def savepoint(self, name: str) -> None: ...

    def release(self, name: str) -> None: ...

    def rollback_to(self, name: str) -> None: ...
