"""Errors of state: transactions, cursors, prepared statements, jobs and settings that do not allow the statement."""

from __future__ import annotations

from seachange.errors.families import DatabaseError, NotSupportedError, OperationalError, ProgrammingError


class InFailedTransaction(DatabaseError):
    sqlstate = "25P02"
    message = "current transaction is aborted, commands ignored until end of transaction block"


class NoActiveTransaction(DatabaseError):
    sqlstate = "25P01"
    message = "{command} can only be used in transaction blocks"


class InvalidSavepoint(DatabaseError):
    sqlstate = "3B001"
    message = 'savepoint "{name}" does not exist'


class UndefinedStatement(ProgrammingError):
    sqlstate = "26000"
    message = 'prepared statement "{name}" does not exist'


class DuplicateStatement(ProgrammingError):
    sqlstate = "42P05"
    message = 'prepared statement "{name}" already exists'


class UndefinedCursor(ProgrammingError):
    sqlstate = "34000"
    message = 'cursor "{name}" does not exist'


class UndefinedPortal(ProgrammingError):
    sqlstate = "34000"
    message = 'portal "{name}" does not exist'


class DuplicateCursor(ProgrammingError):
    sqlstate = "42P03"
    message = 'cursor "{name}" already exists'


class ResultTypeChanged(NotSupportedError):
    sqlstate = "0A000"
    message = "cached plan must not change result type"
    hint_text = "Prepare the statement again."


class CursorScansForward(OperationalError):
    sqlstate = "55000"
    message = "cursor can only scan forward"


class ActiveTransaction(DatabaseError):
    sqlstate = "25001"
    message = "{detail}"


class InsideBlock(DatabaseError):
    sqlstate = "25001"
    message = "{command} cannot run inside a transaction block"


class ObjectInUse(OperationalError):
    sqlstate = "55006"
    message = "{detail}"


class JobPastReturn(ObjectInUse):
    message = "job {job} cannot be canceled: it is past its point of no return, or already rolling back ({status})"
    hint_text = "The job will finish on its own; see SHOW JOB {job}."


class QueuedBehindFailure(OperationalError):
    sqlstate = "55000"
    message = "this job was queued behind job {behind}, which has {status}: {reason}"
    hint_text = "Run the statement again if it is still needed."


class NotInPrerequisiteState(OperationalError):
    sqlstate = "55000"
    message = "{detail}"


class ReadOnlyTransaction(DatabaseError):
    sqlstate = "25006"
    message = "cannot execute {command} in a read-only transaction"


class InvalidSetting(ProgrammingError):
    sqlstate = "22023"
    message = 'invalid value for parameter "{name}": "{value}"'


class ReadOnlyLayout(DatabaseError):
    sqlstate = "25006"
    message = "{layout} can only be read"
    hint_text = "Reset seachange.layout, or pin the session to a shape or a moment."


class LayoutTooOld(OperationalError):
    sqlstate = "72000"
    message = 'the table definitions as of "{value}" (seachange.layout) are no longer kept'
    hint_text = (
        "Set it to a later time, or to '' for the current definitions; raise seachange.retention to keep them longer."
    )


class SettingOfNode(ProgrammingError):
    sqlstate = "55P02"
    message = 'parameter "{name}" cannot be changed by SET: it is a setting of the node'
    hint_text = "Set it in seachange.toml in the data folder, and open the database again."


class SettingFixed(ProgrammingError):
    sqlstate = "55P02"
    message = 'parameter "{name}" cannot be changed: it is always "{value}"'


class SettingsFileProblem(OperationalError):
    sqlstate = "F0000"
    message = "{file}: {detail}"
    hint_text = "See docs/settings.md for the settings and their syntax."
