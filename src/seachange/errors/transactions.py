"""The user's fault: the state of transaction, session, job or setting does not allow it."""

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


class ObjectInUse(OperationalError):
    sqlstate = "55006"
    message = "{detail}"


class JobPastReturn(ObjectInUse):
    message = "job {job} cannot be canceled: it is past its point of no return, or already goes back ({status})"
    hint_text = "It goes on by itself; SHOW JOB {job} shows how far it is."


class QueuedBehindFailure(OperationalError):
    sqlstate = "55000"
    message = "job {behind}, behind which this one was queued, has {status}: {reason}"
    hint_text = "Send the statement again if it is still wanted."


class NotInPrerequisiteState(OperationalError):
    sqlstate = "55000"
    message = "{detail}"


class ReadOnlyTransaction(DatabaseError):
    sqlstate = "25006"
    message = "cannot execute {command} in a read-only transaction"


class InvalidSetting(ProgrammingError):
    sqlstate = "22023"
    message = 'invalid value for parameter "{name}": "{value}"'


class LayoutTooOld(OperationalError):
    sqlstate = "72000"
    message = 'the shape that tables had at "{value}" (seachange.layout) is no longer known'
    hint_text = "Set it to a later moment, or to '' for the shape of now; seachange.retention keeps it for longer."


class SettingOfNode(ProgrammingError):
    sqlstate = "55P02"
    message = 'parameter "{name}" cannot be changed by SET: it belongs to the node'
    hint_text = "Write it into seachange.toml in the data folder, and open the database again."


class SettingFixed(ProgrammingError):
    sqlstate = "55P02"
    message = 'parameter "{name}" cannot be changed: it is always "{value}"'


class SettingsFileProblem(OperationalError):
    sqlstate = "F0000"
    message = "{file}: {detail}"
    hint_text = "docs/settings.md lists the settings and their forms."
