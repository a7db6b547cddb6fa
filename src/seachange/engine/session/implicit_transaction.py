"""Implicit transactions: around the statements of one text, and those up to one Sync of the protocol.

**Invariant:** all of the statements take effect, or none, up to each COMMIT and ROLLBACK among them, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto

from seachange import errors
from seachange.engine.session.outside_blocks import check_inside_block
from seachange.engine.session.session_control import is_control
from seachange.engine.session.session_state import SessionState, TransactionStatus
from seachange.model.statements import (
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
    TransactionStatement,
    Vacuum,
)
from seachange.sql.parsing.parse import Parsed
from seachange.sql.run.execute import Prepared
from seachange.sql.settings.session_settings import SessionSettings

# Statements that change settings at most, which are restored when a statement after them fails.
_AT_MOST_SETTINGS = (
    SetSetting,
    ShowSetting,
    ResetSetting,
    NeedlessStatement,
    AcceptExtension,
    PrepareStatement,
    Deallocate,
)
# Settings whose values another statement may create.
_ROLES = ("role", "session_authorization")
# Statements that begin no implicit transaction.
_OUTSIDE = (Begin, Commit, Rollback, SavepointStatement, Vacuum)


class Way(Enum):
    """How statements of one text are run."""

    # One transaction, run again as a whole after a conflict.
    WHOLE = auto()
    # Each in autocommit: one at most does more than settings, and may go on as a job.
    EACH = auto()
    # In a transaction block that the statements themselves may end.
    BLOCK = auto()


def find_way(prepared: Sequence[Prepared], session: SessionState) -> Way:
    statements = [each.parsed for each in prepared]
    if len(statements) < 2:
        return Way.EACH
    if session.status is not TransactionStatus.IDLE:
        # One of them may end the client's transaction.
        return Way.BLOCK
    if not any(map(is_control, statements)):
        return Way.WHOLE
    if any(map(_discards_all, statements)):
        # What it does at once could not be rolled back with the others.
        raise errors.InsideBlock(command="DISCARD ALL")
    if not any(isinstance(statement, TransactionStatement) for statement in statements):
        # Also if it is the only one that does more than settings.
        for statement in statements:
            check_inside_block(statement)
    doing = [i for i, statement in enumerate(statements) if not isinstance(statement, _AT_MOST_SETTINGS)]
    is_local = any(isinstance(statement, SetSetting) and statement.local for statement in statements)
    if is_local or len(doing) > 1 or any(isinstance(statements[i], TransactionStatement) for i in doing):
        return Way.BLOCK
    # What one of them has committed could not be rolled back.
    behind = statements[doing[0] + 1 :] if doing else ()
    return Way.EACH if all(_is_sure(statement, session) for statement in behind) else Way.BLOCK


def _is_sure(statement: Parsed, session: SessionState) -> bool:
    """Whether it does not fail, whatever the statement before it does."""
    scratch = SessionSettings()
    try:
        match statement:
            case NeedlessStatement() | AcceptExtension() | ShowSetting(None) | ResetSetting(None):
                return True
            case ShowSetting(str(name)):
                scratch.get(name)
            case ResetSetting(str(name)):
                scratch.set(name, None)
            case SetSetting(name, value) if name not in _ROLES:
                session.check_setting(name, value)
                scratch.set(name, value)
            case _:
                return False
    except errors.Error:
        return False
    return True


def _discards_all(statement: Parsed) -> bool:
    return isinstance(statement, Discard) and statement.what == "all"


def _is_outside(statement: Parsed) -> bool:
    return isinstance(statement, _OUTSIDE) or _discards_all(statement)


@contextmanager
def settings_kept(session: SessionState) -> Iterator[None]:
    """Around statements in autocommit: if one fails, the settings of the others are undone."""
    before = session.settings.mark() if session.status is TransactionStatus.IDLE else None
    try:
        yield
    except errors.Error:
        if before is not None:
            session.settings.restore(before)
        raise


class ImplicitBlock:
    """A transaction block that the client did not ask for."""

    def __init__(self, session: SessionState) -> None:
        self._session = session
        self.is_open = False

    @contextmanager
    def statement(self, statement: Parsed, is_last: bool = False) -> Iterator[None]:
        """Around one of several statements. The last is in autocommit if those before it are committed."""
        session = self._session
        if self.is_open and isinstance(statement, SavepointStatement):
            raise errors.NoActiveTransaction(command="SAVEPOINT")
        if session.status is TransactionStatus.IDLE and not is_last and not _is_outside(statement):
            session.begin()
            self.is_open = True
        is_begun = self.is_open and isinstance(statement, Begin)
        notices = len(session.notices)
        yield
        if is_begun:
            del session.notices[notices:]
        # The client's own from now on, or ended by COMMIT or ROLLBACK.
        self.is_open = self.is_open and not is_begun and session.status is not TransactionStatus.IDLE

    def end(self, commit: bool) -> None:
        if not self.is_open:
            return
        self.is_open = False
        if commit:
            self._session.commit()
        else:
            self._session.rollback()
