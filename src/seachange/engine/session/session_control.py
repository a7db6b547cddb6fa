"""The statements about a session itself: its transactions, settings, prepared statements and cursors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from seachange import errors
from seachange.engine.context.statement_calls import prepare_one
from seachange.engine.session.cursors import OpenCursor
from seachange.engine.session.session_state import SessionState, TransactionStatus
from seachange.model import statements
from seachange.model.relation import RelationName
from seachange.sql.duck.operands import Argument, argument_count, check_argument_count
from seachange.sql.parsing.parse import Parsed
from seachange.sql.port.result import Result, table_column
from seachange.sql.query.query import read_arguments
from seachange.sql.run.execute import Prepared
from seachange.sql.settings.settings import READ_ONLY
from seachange.values.types import TEXT

# The statements that a failed transaction accepts.
_WAYS_OUT = (statements.Commit, statements.Rollback, statements.RollbackToSavepoint)
_SET_BEFORE_QUERIES = ("transaction_isolation", "seachange.as_of")


_CONTROL = frozenset(get_args(statements.SessionStatement))


# Statements that do not change how earlier statements of the block would be run again.
_LEAVING = (
    *(
        statements.Begin,
        statements.Commit,
        statements.Rollback,
        statements.Savepoint,
        statements.ReleaseSavepoint,
        statements.ShowSetting,
        statements.NeedlessStatement,
        statements.PrepareStatement,
    ),
    *(
        statements.ExecutePrepared,
        statements.Deallocate,
        statements.DeclareCursor,
        statements.FetchCursor,
        statements.CloseCursor,
    ),
)


def is_control(statement: Parsed) -> bool:
    return type(statement) in _CONTROL


def is_way_out(statement: Parsed) -> bool:
    """Whether a failed transaction accepts it."""
    return isinstance(statement, _WAYS_OUT)


def leaves_results(statement: Parsed) -> bool:
    """Whether the statements before it would give the same results after it."""
    return isinstance(statement, _LEAVING)


def run_control(session: SessionState, statement: Parsed, values: Sequence[Any]) -> Result:
    if session.status is TransactionStatus.FAILED and not is_way_out(statement):
        raise errors.InFailedTransaction()
    match statement:
        case statements.Begin():
            _begin(session, statement)
            return Result("BEGIN")
        case statements.Commit() | statements.Rollback():
            return _finish(session, isinstance(statement, statements.Commit), statement.chain)
        case statements.Savepoint() | statements.ReleaseSavepoint() | statements.RollbackToSavepoint():
            return _run_savepoint(session, statement)
        case statements.SetTransaction():
            _set_transaction(session, statement)
            return Result("SET")
        case statements.SetConstraints(names, deferred):
            _set_constraints(session, names, deferred)
            return Result("SET CONSTRAINTS")
        case statements.LockTables():
            _check_block(session, "LOCK TABLE")
            session.lock_tables(statement)
            return Result("LOCK TABLE")
        case statements.SetSetting():
            _set(session, statement)
            return Result("SET")
        case statements.ResetSetting():
            session.settings.reset(statement.name)
            return Result("RESET")
        case statements.ShowSetting():
            return _show(session, statement)
        case statements.AcceptExtension(tag, name):
            session.notices.append(f'what extension "{name}" has is built in')
            return Result(tag)
        case statements.Vacuum():
            session.vacuum(statement)
            return Result("VACUUM")
        case statements.ImportTable():
            session.import_table(statement)
            return Result("CALL")
        case statements.ExportTable():
            session.export_table(statement)
            return Result("CALL")
        case statements.CreateFeed() | statements.DropFeed() | statements.AdvanceFeed():
            return session.change_feed(statement)
        case statements.NeedlessStatement(tag):
            session.check_needs(statement)
            return Result(tag)
        case statements.Discard():
            return _discard(session, statement)
        case statements.PrepareStatement() | statements.ExecutePrepared() | statements.Deallocate():
            return _run_prepared(session, statement, values)
        case statements.DeclareCursor() | statements.FetchCursor() | statements.CloseCursor():
            return _run_cursor(session, statement, values)
        case statements.CopyStream():
            raise errors.FeatureNotSupported(
                feature="COPY between a client and a table within an embedded session",
                instead="Use copy_from and copy_to of the connection.",
            )
        case _:
            raise errors.Bug(detail=f"{statement} is not a session statement")


def _begin(session: SessionState, statement: statements.Begin) -> None:
    is_open = session.status is not TransactionStatus.IDLE
    session.begin(statement.isolation, statement.read_only)
    if is_open:
        # As in PostgreSQL: it begins nothing, but its modes hold. A driver may have opened the block on its own.
        _set_transaction(session, statements.SetTransaction(statement.isolation, statement.read_only))


def _finish(session: SessionState, commit: bool, chain: bool) -> Result:
    if chain:
        _check_block(session, f"{'COMMIT' if commit else 'ROLLBACK'} AND CHAIN")
        isolation, read_only = session.settings.isolation, session.read_only
        result = _finish(session, commit, chain=False)
        session.begin(isolation, read_only)
        return result
    if session.status is TransactionStatus.IDLE:
        session.notices.append("there is no transaction in progress")
        return Result("COMMIT" if commit else "ROLLBACK")
    if commit:
        return Result("COMMIT" if session.commit() else "ROLLBACK")
    session.rollback()
    return Result("ROLLBACK")


def _run_savepoint(session: SessionState, statement: statements.SavepointStatement) -> Result:
    match statement:
        case statements.Savepoint(name):
            _check_block(session, "SAVEPOINT")
            session.savepoint(name)
            return Result("SAVEPOINT")
        case statements.ReleaseSavepoint(name):
            _check_block(session, "RELEASE SAVEPOINT")
            session.release(name)
            return Result("RELEASE")
        case statements.RollbackToSavepoint(name):
            _check_block(session, "ROLLBACK TO SAVEPOINT")
            session.rollback_to(name)
            return Result("ROLLBACK")


def _check_block(session: SessionState, command: str) -> None:
    if session.status is TransactionStatus.IDLE:
        raise errors.NoActiveTransaction(command=command)


def _set_transaction(session: SessionState, statement: statements.SetTransaction) -> None:
    if statement.session:
        if statement.isolation is not None:
            session.settings.set("default_transaction_isolation", statement.isolation.value)
        if statement.read_only is not None:
            session.settings.set(READ_ONLY, "on" if statement.read_only else "off")
        return
    if session.status is TransactionStatus.IDLE:
        session.notices.append("SET TRANSACTION can only be used in transaction blocks")
        return
    if statement.isolation is not None:
        _set(session, statements.SetSetting("transaction_isolation", statement.isolation.value, local=True))
    if statement.read_only is not None:
        if session.read_only and not statement.read_only and session.has_begun:
            raise errors.ActiveTransaction(detail="transaction read-write mode must be set before any query")
        session.set_read_only(statement.read_only)


def _set_constraints(session: SessionState, names: Sequence[RelationName] | None, deferred: bool) -> None:
    if session.status is TransactionStatus.IDLE:
        session.notices.append("SET CONSTRAINTS can only be used in transaction blocks")
        return
    session.set_constraints(names, deferred)


def _set(session: SessionState, statement: statements.SetSetting) -> None:
    if statement.name in _SET_BEFORE_QUERIES and session.has_begun:
        raise errors.ActiveTransaction(detail=f"{statement.name} must be set before any query")
    session.check_setting(statement.name, statement.value)
    local = statement.local or statement.name == "transaction_isolation"
    if local and session.status is TransactionStatus.IDLE:
        session.notices.append("SET LOCAL can only be used in transaction blocks")
        return
    session.settings.set(statement.name, statement.value, local)


def _discard(session: SessionState, statement: statements.Discard) -> Result:
    if statement.what == "all":
        session.settings.reset(None)
        session.settings.reset("session_authorization")
        session.settings.reset("role")
        session.prepared.remove(None)
        session.cursors.close(None)
        session.unlock_advisory()
    if statement.what in ("all", "temp", "temporary"):
        session.drop_temporary()
    return Result(f"DISCARD {statement.what.upper()}")


def _run_prepared(session: SessionState, statement: statements.PreparedStatement, values: Sequence[Any]) -> Result:
    match statement:
        case statements.PrepareStatement(name, types, text):
            session.prepared.add(name, text, types)
            return Result("PREPARE")
        case statements.ExecutePrepared(name, arguments):
            named = session.prepared.get(name)
            given = _arguments(session, arguments, values) if arguments else []
            return session.execute_prepared(named.prepared, named.convert(given))
        case statements.Deallocate(name):
            session.prepared.remove(name)
            return Result("DEALLOCATE" if name is not None else "DEALLOCATE ALL")


def _arguments(session: SessionState, text: str, values: Sequence[Any]) -> list[Any]:
    query, operands = read_arguments(text)
    if operands is None:
        return list(session.execute_prepared(Prepared(query), values).rows[0])
    check_argument_count(argument_count(operands), values)
    return [values[o.number - 1] if isinstance(o, Argument) else o.value for o in operands]


def _run_cursor(session: SessionState, statement: statements.CursorStatement, values: Sequence[Any]) -> Result:
    match statement:
        case statements.DeclareCursor(name, query, scroll, hold):
            if not hold:
                _check_block(session, "DECLARE CURSOR")
            session.cursors.check_free(name)
            result = session.execute_kept(prepare_one(query, ("SELECT",)), values)
            session.cursors.open(name, OpenCursor(result, scroll, hold))
            if session.status is TransactionStatus.IDLE:
                # A transaction of its own, which is over.
                session.cursors.end(committed=True)
            return Result("DECLARE CURSOR")
        case statements.FetchCursor(name, count, move, way):
            fetched = session.cursors.get(name).fetch(way, count)
            return Result(f"MOVE {fetched.count}", count=fetched.count) if move else fetched
        case statements.CloseCursor(name):
            session.cursors.close(name)
            return Result("CLOSE CURSOR" if name is not None else "CLOSE CURSOR ALL")


def _show(session: SessionState, statement: statements.ShowSetting) -> Result:
    if statement.name is not None:
        # Outside of a block it is what the next one will have.
        rows: list[tuple[str, ...]] = [(_value(session, statement.name),)]
        return Result("SHOW", (table_column(statement.name, TEXT),), rows, 1)
    columns = tuple(table_column(name, TEXT) for name in ("name", "setting", "description"))
    listed: list[tuple[str, ...]] = list(session.settings.show())
    return Result("SHOW", columns, listed, len(listed))


def _value(session: SessionState, name: str) -> str:
    if name == "transaction_read_only":
        return "on" if session.read_only else "off"
    # Outside of a block it is what the next one will have.
    is_next = name == "transaction_isolation" and session.status is TransactionStatus.IDLE
    return session.settings.get("default_transaction_isolation" if is_next else name)
