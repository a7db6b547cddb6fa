"""The statements about a session itself: its transactions and its settings."""

from __future__ import annotations

from seachange import errors
from seachange.engine.sessionstate import SessionState, Status
from seachange.model.statements import (
    Begin,
    Commit,
    ReleaseSavepoint,
    ResetSetting,
    Rollback,
    RollbackToSavepoint,
    Savepoint,
    SavepointStatement,
    SetSetting,
    SettingStatement,
    SetTransaction,
    ShowSetting,
    TransactionStatement,
)
from seachange.model.types import TEXT
from seachange.sql.parse import Parsed
from seachange.sql.result import Result, table_column

ControlStatement = TransactionStatement | SettingStatement
# What a failed transaction still listens to.
_WAYS_OUT = (Commit, Rollback, RollbackToSavepoint)
_SET_BEFORE_QUERIES = ("transaction_isolation", "seachange.as_of")


def is_control(statement: Parsed) -> bool:
    return isinstance(statement, ControlStatement)


def run_control(session: SessionState, statement: Parsed) -> Result:
    if session.status is Status.FAILED and not isinstance(statement, _WAYS_OUT):
        raise errors.InFailedTransaction()
    match statement:
        case Begin():
            session.begin(statement.isolation, statement.read_only)
            return Result("BEGIN")
        case Commit() | Rollback():
            return _finish(session, isinstance(statement, Commit))
        case Savepoint() | ReleaseSavepoint() | RollbackToSavepoint():
            return _run_savepoint(session, statement)
        case SetTransaction():
            _set_transaction(session, statement)
            return Result("SET")
        case SetSetting():
            _set(session, statement)
            return Result("SET")
        case ResetSetting():
            session.settings.reset(statement.name)
            return Result("RESET")
        case ShowSetting():
            return _show(session, statement)
        case _:
            raise errors.Bug(detail=f"{statement} is not a session statement")


def _finish(session: SessionState, commit: bool) -> Result:
    if session.status is Status.IDLE:
        session.notices.append("there is no transaction in progress")
        return Result("COMMIT" if commit else "ROLLBACK")
    if commit:
        return Result("COMMIT" if session.commit() else "ROLLBACK")
    session.rollback()
    return Result("ROLLBACK")


def _run_savepoint(session: SessionState, statement: SavepointStatement) -> Result:
    match statement:
        case Savepoint(name):
            _check_block(session, "SAVEPOINT")
            session.savepoint(name)
            return Result("SAVEPOINT")
        case ReleaseSavepoint(name):
            _check_block(session, "RELEASE SAVEPOINT")
            session.release(name)
            return Result("RELEASE")
        case RollbackToSavepoint(name):
            _check_block(session, "ROLLBACK TO SAVEPOINT")
            session.rollback_to(name)
            return Result("ROLLBACK")


def _check_block(session: SessionState, command: str) -> None:
    if session.status is Status.IDLE:
        raise errors.NoActiveTransaction(command=command)


def _set_transaction(session: SessionState, statement: SetTransaction) -> None:
    if statement.session:
        if statement.isolation is not None:
            session.settings.set("default_transaction_isolation", statement.isolation.value)
        return
    if session.status is Status.IDLE:
        session.notices.append("SET TRANSACTION can only be used in transaction blocks")
        return
    if statement.isolation is not None:
        _set(session, SetSetting("transaction_isolation", statement.isolation.value, local=True))
    if statement.read_only is not None:
        session.read_only = statement.read_only


def _set(session: SessionState, statement: SetSetting) -> None:
    if statement.name in _SET_BEFORE_QUERIES and session.has_begun:
        raise errors.ActiveTransaction(detail=f"{statement.name} must be set before any query")
    local = statement.local or statement.name == "transaction_isolation"
    if local and session.status is Status.IDLE:
        session.notices.append("SET LOCAL can only be used in transaction blocks")
        return
    session.settings.set(statement.name, statement.value, local)


def _show(session: SessionState, statement: ShowSetting) -> Result:
    if statement.name is not None:
        rows: list[tuple[str, ...]] = [(session.settings.get(statement.name),)]
        return Result("SHOW", (table_column(statement.name, TEXT),), rows, 1)
    columns = tuple(table_column(name, TEXT) for name in ("name", "setting", "description"))
    listed: list[tuple[str, ...]] = list(session.settings.show())
    return Result("SHOW", columns, listed, len(listed))
