"""Statements that came together: the texts of several, and those up to one Sync of the protocol.

**Invariant:** all of them have happened, or none, up to each COMMIT and ROLLBACK among them, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from functools import partial
from typing import TypeVar

from seachange import errors
from seachange.engine.control import is_control
from seachange.engine.sessionstate import SessionState, Status
from seachange.model.session_statements import (
    AcceptExtension,
    Begin,
    Commit,
    Deallocate,
    Discard,
    NeedlessStatement,
    PrepareStatement,
    ResetSetting,
    Rollback,
    SavepointStatement,
    SetSetting,
    ShowSetting,
    Vacuum,
)
from seachange.sql.execute import Prepared
from seachange.sql.parse import Parsed

T = TypeVar("T")

# What leaves nothing half done when a statement behind it fails; the settings go back.
_AT_MOST_SETTINGS = (
    SetSetting,
    ShowSetting,
    ResetSetting,
    NeedlessStatement,
    AcceptExtension,
    PrepareStatement,
    Deallocate,
)
# What begins no transaction that nobody asked for.
_OUTSIDE = (Begin, Commit, Rollback, Vacuum, Discard)


class Way(Enum):
    """How statements of one text are run outside of a block."""

    # One transaction, run again as a whole after a conflict.
    WHOLE = auto()
    # Each for itself: one at most does more than settings, and may go on as a job.
    EACH = auto()
    # In a transaction of which they may say themselves where it ends.
    BLOCK = auto()


def find_way(prepared: Sequence[Prepared]) -> Way:
    statements = [each.parsed for each in prepared]
    if len(statements) < 2:
        return Way.EACH
    if not any(map(is_control, statements)):
        return Way.WHOLE
    doing = [statement for statement in statements if not isinstance(statement, _AT_MOST_SETTINGS)]
    is_local = any(isinstance(statement, SetSetting) and statement.local for statement in statements)
    return Way.EACH if len(doing) < 2 and not is_local else Way.BLOCK


@contextmanager
def settings_kept(session: SessionState) -> Iterator[None]:
    """Around statements that are run each for itself: if one fails, what the others have set is not."""
    before = session.settings.mark() if session.status is Status.IDLE else None
    try:
        yield
    except errors.Error:
        if before is not None:
            session.settings.restore(before)
        raise


class ImplicitBlock:
    """A transaction that the client did not ask for."""

    def __init__(self, session: SessionState) -> None:
        self._session = session
        self.is_open = False

    def run(self, statement: Parsed, work: Callable[[], T]) -> T:
        """One of several statements."""
        is_begun = self.is_open and isinstance(statement, Begin)
        if is_begun:
            # The client's own from now on.
            self.is_open = False
        elif self.is_open and isinstance(statement, SavepointStatement):
            raise errors.NoActiveTransaction(command="SAVEPOINT")
        elif self._session.status is Status.IDLE and not isinstance(statement, _OUTSIDE):
            self._session.begin()
            self.is_open = True
        notices = len(self._session.notices)
        result = work()
        if is_begun:
            del self._session.notices[notices:]
        # It may have been COMMIT or ROLLBACK.
        self.is_open = self.is_open and self._session.status is not Status.IDLE
        return result

    def end(self, commit: bool) -> None:
        if not self.is_open:
            return
        self.is_open = False
        if commit:
            self._session.commit()
        else:
            self._session.rollback()


def run_in_block(session: SessionState, prepared: Sequence[Prepared], run: Callable[[Prepared], T]) -> list[T]:
    """The statements of a text, one after the other."""
    block = ImplicitBlock(session)
    try:
        results = [block.run(each.parsed, partial(run, each)) for each in prepared]
        block.end(commit=True)
    except BaseException:
        block.end(commit=False)
        raise
    return results
