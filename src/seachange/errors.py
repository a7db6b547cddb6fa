"""Every error that a client can see, with its SQLSTATE.

The classes of PEP 249 come first; each concrete error below them carries a code, a message template with
named fields and, where there is one, a hint. Three families: the user's fault, retry (class 40), our bug (XX000).
"""

from __future__ import annotations

from typing import ClassVar, Self


class Warning(Exception):  # noqa: A001 - the name is PEP 249's
    """PEP 249: important warnings such as data truncation."""


class Error(Exception):
    """The root: formats `message` with the named fields and remembers them."""

    sqlstate: ClassVar[str] = "XX000"
    message: ClassVar[str] = "{detail}"
    # What a client may show below the message, or leave out.
    detail_text: ClassVar[str | None] = None
    hint_text: ClassVar[str | None] = None

    def __init__(self, **fields: object) -> None:
        self.fields = fields
        self.detail = self.detail_text.format(**fields) if self.detail_text else None
        self.hint = self.hint_text.format(**fields) if self.hint_text else None
        super().__init__(self.message.format(**fields))

    def located(self, place: str) -> Self:
        """The same error, saying where it was met."""
        self.args = (f"{self} ({place})",)
        return self


class InterfaceError(Error):
    """PEP 249: misuse of the Python interface rather than of the database."""

    sqlstate = "08003"


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    sqlstate = "22000"


class OperationalError(DatabaseError):
    sqlstate = "58000"


class IntegrityError(DatabaseError):
    sqlstate = "23000"


class InternalError(DatabaseError):
    sqlstate = "XX000"


class ProgrammingError(DatabaseError):
    sqlstate = "42000"


class NotSupportedError(DatabaseError):
    sqlstate = "0A000"


# The user's fault: statements.


class SyntaxProblem(ProgrammingError):
    sqlstate = "42601"
    message = "syntax error: {detail}"


class FeatureNotSupported(NotSupportedError):
    message = "{feature} is not supported"
    hint_text = "{instead}"


class UndefinedTable(ProgrammingError):
    sqlstate = "42P01"
    message = 'relation "{name}" does not exist'


class WrongObjectType(ProgrammingError):
    sqlstate = "42809"
    message = '"{name}" is not a {kind}'


class NotDeferrable(ProgrammingError):
    sqlstate = "42809"
    message = 'constraint "{constraint}" is not deferrable'
    hint_text = "Foreign keys that are declared DEFERRABLE are."


class DuplicateTable(ProgrammingError):
    sqlstate = "42P07"
    message = 'relation "{name}" already exists'


class UndefinedColumn(ProgrammingError):
    sqlstate = "42703"
    message = 'column "{name}" of relation "{relation}" does not exist'


class DuplicateColumn(ProgrammingError):
    sqlstate = "42701"
    message = 'column "{name}" specified more than once'


class GeneratedAlways(ProgrammingError):
    sqlstate = "428C9"
    message = 'cannot {action} column "{column}": it is {kind}'
    hint_text = "Give DEFAULT for it, or leave it out."


class UndefinedObject(ProgrammingError):
    sqlstate = "42704"
    message = '{kind} "{name}" does not exist'


class InvalidTableDefinition(ProgrammingError):
    sqlstate = "42P16"
    message = 'table "{name}": {detail}'


class InvalidSchemaName(ProgrammingError):
    sqlstate = "3F000"
    message = 'schema "{name}" does not exist'


class NoSchemaSelected(ProgrammingError):
    sqlstate = "3F000"
    message = "no schema has been selected to create in"
    hint_text = "None of the schemas in search_path exists."


class DuplicateSchema(ProgrammingError):
    sqlstate = "42P06"
    message = 'schema "{name}" already exists'


class InvalidDatabaseName(ProgrammingError):
    sqlstate = "3D000"
    message = 'database "{name}" does not exist'


class DuplicateDatabase(ProgrammingError):
    sqlstate = "42P04"
    message = 'database "{name}" already exists'


class InvalidColumnChange(ProgrammingError):
    sqlstate = "42601"
    message = 'column "{name}" of relation "{relation}" {detail}'


class ReservedName(ProgrammingError):
    sqlstate = "42939"
    message = 'unacceptable name "{name}": {detail}'


class InvalidName(ProgrammingError):
    sqlstate = "42602"
    message = 'invalid name "{name}": {detail}'


class DuplicateObject(ProgrammingError):
    sqlstate = "42710"
    message = '{kind} "{name}" already exists'


class UnresolvedColumn(ProgrammingError):
    sqlstate = "42703"
    message = "{detail}"


class UnresolvedTable(ProgrammingError):
    sqlstate = "42P01"
    message = "{detail}"


class AmbiguousColumn(ProgrammingError):
    sqlstate = "42702"
    message = "{detail}"


class UndefinedFunction(ProgrammingError):
    sqlstate = "42883"
    message = "{detail}"


class AmbiguousFunction(ProgrammingError):
    sqlstate = "42725"
    message = "{detail}"


class GroupingProblem(ProgrammingError):
    sqlstate = "42803"
    message = "{detail}"


class WindowingProblem(ProgrammingError):
    sqlstate = "42P20"
    message = "{detail}"


class InvalidConflictTarget(ProgrammingError):
    sqlstate = "42P10"
    message = "there is no unique or exclusion constraint matching the ON CONFLICT specification"


class InvalidColumnReference(ProgrammingError):
    sqlstate = "42P10"
    message = "{detail}"


class StatementTooComplex(ProgrammingError):
    sqlstate = "54001"
    message = "the statement is nested too deeply"


class ProgramLimitExceeded(OperationalError):
    sqlstate = "54000"
    message = "{detail}"


class StatementRefused(ProgrammingError):
    sqlstate = "42000"
    message = "{detail}"


class DependentObjectsExist(ProgrammingError):
    sqlstate = "2BP01"
    message = "cannot drop {what} because other objects depend on it"
    detail_text: ClassVar[str | None] = "{dependents}"
    hint_text: ClassVar[str | None] = "Use DROP ... CASCADE to drop the dependent objects too."


class RequiredObject(DependentObjectsExist):
    message = "cannot drop {what} because {owner} requires it"
    detail_text = None
    hint_text = "You can drop {owner} instead."


class ValueNeeded(DependentObjectsExist):
    message = "cannot drop {what}: {dependent} depends on it"
    detail_text = None
    hint_text = None


class RoleNeeded(DependentObjectsExist):
    message = 'role "{name}" cannot be dropped because some objects depend on it'
    hint_text = "REASSIGN OWNED and DROP OWNED take them away from it."


class InvalidObjectDefinition(ProgrammingError):
    sqlstate = "42P17"
    message = "{detail}"


class InvalidGrant(ProgrammingError):
    sqlstate = "0LP01"
    message = "privilege type {privilege} is not one of a {kind}"


class InvalidGrantOption(ProgrammingError):
    sqlstate = "0LP01"
    message = "{detail}"


class InvalidForeignKey(ProgrammingError):
    sqlstate = "42830"
    message = "{detail}"


class DatatypeMismatch(ProgrammingError):
    sqlstate = "42804"
    message = "{detail}"


class NotAssignable(DatatypeMismatch):
    message = 'column "{column}" is of type {type} but expression is of type {given}'
    hint_text = "You will need to rewrite or cast the expression."


class InvalidAuthorization(OperationalError):
    sqlstate = "28000"
    message = "{detail}"


class InsufficientPrivilege(ProgrammingError):
    sqlstate = "42501"
    message = "{detail}"


class WrongParameterCount(ProgrammingError):
    sqlstate = "08P01"
    message = "the statement takes {expected} parameters, {given} were given"


class InvalidTextRepresentation(DataError):
    sqlstate = "22P02"
    message = 'invalid input for type {type}: "{value}"'


class NumericValueOutOfRange(DataError):
    sqlstate = "22003"
    message = 'value "{value}" is out of range for type {type}'


class StringTooLong(DataError):
    sqlstate = "22001"
    message = "value too long for type {type}"


class CharacterNotInRepertoire(DataError):
    sqlstate = "22021"
    message = "a text value cannot contain the character with code 0"


class InvalidBinaryRepresentation(DataError):
    sqlstate = "22P03"
    message = "incorrect binary data format for type {type}"


class UntranslatableCharacter(DataError):
    sqlstate = "22P05"
    message = "\\u0000 cannot be converted to text"


class UnpairedSurrogate(DataError):
    sqlstate = "22021"
    message = "a text value cannot contain one half of a surrogate pair, which is no character"


class BadCopyFormat(DataError):
    sqlstate = "22P04"
    message = "line {line}: {detail}"


class InvalidEncoding(DataError):
    sqlstate = "22021"
    message = "line {line}: not valid UTF-8"


class InvalidDatetimeFormat(DataError):
    sqlstate = "22007"
    message = 'invalid input for type {type}: "{value}"'


class DatetimeFieldOverflow(DataError):
    sqlstate = "22008"
    message = 'a field of "{value}" is out of range for type {type}'


class DivisionByZero(DataError):
    sqlstate = "22012"
    message = "division by zero"


class InvalidArgumentOfPower(DataError):
    sqlstate = "2201F"
    message = "{detail}"


class InvalidArgumentOfLogarithm(DataError):
    sqlstate = "2201E"
    message = "{detail}"


class InvalidRegularExpression(DataError):
    sqlstate = "2201B"
    message = "invalid regular expression: {detail}"


class InvalidParameterValue(DataError):
    sqlstate = "22023"
    message = "{detail}"


class ArraySubscriptError(DataError):
    sqlstate = "2202E"
    message = "{detail}"


class NullValueNotAllowed(DataError):
    sqlstate = "22004"
    message = "{detail}"


class SequenceOutOfBounds(DataError):
    sqlstate = "22003"
    message = 'setval: value {value} is out of bounds for sequence "{name}" ({minimum}..{maximum})'


class SequenceExhausted(DataError):
    sqlstate = "2200H"
    message = 'nextval: reached {end} value of sequence "{name}" ({value})'


class CardinalityViolation(DataError):
    sqlstate = "21000"
    message = "{detail}"


class QueryFailed(DataError):
    sqlstate = "22000"
    message = "{detail}"


# The user's fault: data.


class NotNullViolation(IntegrityError):
    sqlstate = "23502"
    message = 'null value in column "{column}" of relation "{relation}" violates not-null constraint'


class UniqueViolation(IntegrityError):
    sqlstate = "23505"
    message = 'duplicate key value violates unique constraint "{constraint}": {key} already exists'


class CheckViolation(IntegrityError):
    sqlstate = "23514"
    message = 'new row for relation "{relation}" violates check constraint "{constraint}": the row is ({row})'


class MissingParent(IntegrityError):
    sqlstate = "23503"
    message = (
        'insert or update on table "{relation}" violates foreign key constraint "{constraint}": '
        'key {key} is not present in table "{parent}"'
    )


class StillReferenced(IntegrityError):
    sqlstate = "23503"
    message = (
        'update or delete on table "{parent}" violates foreign key constraint "{constraint}" on table "{relation}": '
        'key {key} is still referenced from table "{relation}"'
    )


# The user's fault: transactions and settings.


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


# Retry: the same transaction may succeed when it is run again.


class SerializationFailure(OperationalError):
    sqlstate = "40001"
    message = "could not serialize access: {detail}"
    hint_text = "Run the transaction again."


class StaleNode(SerializationFailure):
    message = "the epoch of node {node} has ended: it did not send a heartbeat within its expiry"
    hint_text = "The session continues on a new epoch; run the transaction again."


class RowChanged(SerializationFailure):
    """Found before anything was written: at READ COMMITTED the statement is run again on the newest version."""

    message = "could not serialize access due to a concurrent update (commit {seq})"

    def __init__(self, seq: int) -> None:
        super().__init__(seq=seq)
        self.seq = seq


class DeadlockDetected(OperationalError):
    sqlstate = "40P01"
    message = "deadlock detected: the transactions wait for each other's keys"
    hint_text = "Run the transaction again."


class SnapshotTooOld(OperationalError):
    sqlstate = "72000"
    message = "snapshot {snapshot} is no longer available: {detail}"
    hint_text = "Run the transaction again, or raise seachange.retention."


class UnknownCommitOutcome(OperationalError):
    sqlstate = "40003"
    message = "the outcome of commit {commit_id} is not known: {detail}"
    hint_text = "Ask again by the commit id when the catalog can be reached."


# The outside world.


class QueryCanceled(OperationalError):
    sqlstate = "57014"
    message = "canceling statement due to {reason}"


class LockNotAvailable(OperationalError):
    sqlstate = "55P03"
    message = "could not obtain a lock: {detail}"


class AdvisoryLocksLost(OperationalError):
    sqlstate = "55000"
    message = "the session's advisory locks are lost: its node did not send a heartbeat within its expiry"
    hint_text = "Take them again before you rely on them; another session may hold them now."


class OutOfMemory(OperationalError):
    sqlstate = "53200"
    message = "out of memory: {detail}"
    hint_text = (
        "Ask for fewer rows at a time, or raise what was met: seachange.memory_limit or seachange.process_growth_limit."
    )


class OutOfTemporarySpace(OperationalError):
    sqlstate = "53100"
    message = "out of temporary space: {detail}"
    hint_text = "Ask for fewer rows at a time, or raise seachange.temp_space_limit."


class CatalogUnavailable(OperationalError):
    sqlstate = "08006"
    message = "the catalog {catalog} cannot be reached: {detail}"


class CatalogFormatTooNew(OperationalError):
    sqlstate = "55000"
    message = "the catalog {catalog} has format {found}; this program knows formats up to {known}"
    hint_text = "Use a newer Seachange for this catalog."


class ReleaseTooOld(OperationalError):
    sqlstate = "55000"
    message = "the database is changed by rules of release {needed}; this program knows releases up to {known}"
    hint_text = "Use a newer Seachange for this database."


class UnknownRelease(OperationalError):
    sqlstate = "55000"
    message = "a change was planned by rules of release {release}, which this program does not have"
    hint_text = "A node of a Seachange that has them finishes it, or takes it back."


class UnreadableJob(OperationalError):
    sqlstate = "XX001"
    message = "the record of job {job} cannot be read: {detail}"
    hint_text = (
        "If a newer Seachange wrote it, a node of that finishes the job; else restore the catalog from a backup."
    )


class InvalidCatalog(OperationalError):
    sqlstate = "22023"
    message = "{catalog} is not a catalog: {detail}"
    hint_text = "Give sqlite:///PATH or postgresql://..."


class NetworkFileSystem(OperationalError):
    sqlstate = "58000"
    message = "the SQLite catalog {path} lies on a network file system ({filesystem}), whose locks cannot be trusted"
    hint_text = "Put the data folder on a local disk, or use a PostgreSQL catalog."


class SegmentDamaged(OperationalError):
    sqlstate = "XX001"
    message = "segment file {file} is damaged: {detail}"
    hint_text = "Restore the file from a back-up; nothing was read from it."


class DiskFull(OperationalError):
    sqlstate = "53100"
    message = "no space left to write {file}"
    hint_text = "Free space and run the statement again; nothing was changed."


class WillNotFit(OperationalError):
    sqlstate = "53100"
    message = "{what} needs about {needed} in {folder}, beside {spare} that are to stay free, and {free} are free there"
    hint_text = "Free space there, or lower seachange.pipeline_free_space, and run the statement again."


class LowDisk(OperationalError):
    sqlstate = "53100"
    message = "{needed} are needed in {folder} to go on, and {free} are free there"
    hint_text = "Free space there: the work goes on by itself."


class InputOutputError(OperationalError):
    sqlstate = "58030"
    message = "could not {action} {file}: {detail}"


class DataFolderProblem(OperationalError):
    sqlstate = "58P01"
    message = "data folder {path}: {detail}"


class HistoryProblem(OperationalError):
    sqlstate = "58P01"
    message = "history {path}: {detail}"
    hint_text = "Give a folder of .sql files as Flyway, golang-migrate, Prisma or Diesel name them, or in plain order."


class ReplayNeedsEmptyDatabase(OperationalError):
    sqlstate = "55000"
    message = "the database in {path} has tables, which the writers of a replay would write to"
    hint_text = "Give a folder without a database, or none: then one is made for the replay, and deleted."


class WriterLost(OperationalError):
    message = "the writer in process {process} has ended by itself"
    hint_text = "Its own message is above."


class BackupProblem(OperationalError):
    sqlstate = "58000"
    message = "back-up {path}: {detail}"


class SparkUnavailable(NotSupportedError):
    sqlstate = "0A000"
    message = "Spark cannot be used: {detail}"
    hint_text = "{remedy}"


class SparkFailed(OperationalError):
    sqlstate = "58000"
    message = "Spark failed: {detail}"
    hint_text = "Its messages are in {log}. The work goes on from the units that are done when it is tried again."


# Clients of the server.


class ProtocolViolation(OperationalError):
    sqlstate = "08P01"
    message = "protocol violation: {detail}"


class UnknownProtocol(NotSupportedError):
    message = "unsupported frontend protocol {version}: server supports 3.0"


class InvalidByteSequence(DataError):
    sqlstate = "22021"
    message = 'invalid byte sequence for encoding "UTF8": {bytes}'


class InvalidPassword(OperationalError):
    sqlstate = "28P01"
    message = 'password authentication failed for user "{user}"'


class TooManyFailures(OperationalError):
    sqlstate = "28000"
    message = "too many wrong passwords came from {address}"
    hint_text = "Wait for a minute, and connect again."


class TooManyOfRole(OperationalError):
    sqlstate = "53300"
    message = 'too many connections for role "{role}"'
    hint_text = "ALTER ROLE ... CONNECTION LIMIT raises it."


class TooManyConnections(OperationalError):
    sqlstate = "53300"
    message = "there are {count} connections already, and no more are taken"
    hint_text = "Close some, or raise max_connections (serve --connections)."


class TooManyStatements(OperationalError):
    sqlstate = "53400"
    message = "the connection has {count} prepared statements or portals already"
    hint_text = "Close some of them, by DEALLOCATE for example, or raise seachange.max_prepared_statements."


class IdleInTransaction(OperationalError):
    sqlstate = "25P03"
    message = "terminating connection: it was silent within a transaction for {ms} ms"
    hint_text = "Its transaction was rolled back. idle_in_transaction_session_timeout says how long it may be silent."


class IdleSession(OperationalError):
    sqlstate = "57P05"
    message = "terminating connection: it was silent for {ms} ms"
    hint_text = "Connect again. idle_session_timeout says how long it may be silent."


class LoginTimeout(OperationalError):
    sqlstate = "57014"
    message = "terminating connection: it did not log in within {ms} ms"
    hint_text = "authentication_timeout says how long that may take."


class ServerStops(OperationalError):
    sqlstate = "57P01"
    message = "terminating connection: the server is stopped"
    hint_text = "Connect again, to this server later or to another node."


class CopyFailed(OperationalError):
    sqlstate = "57014"
    message = "COPY from stdin failed: {detail}"


class NodeClosed(InterfaceError):
    message = "the connection is closed"


class CursorClosed(InterfaceError):
    message = "the cursor is closed"


class NoResult(InterfaceError):
    sqlstate = "24000"
    message = "the last statement gave no rows"


# The parents of errors that come from a record: by the class of their SQLSTATE.
_FAMILIES: dict[str, type[DatabaseError]] = {
    "0A": NotSupportedError,
    "22": DataError,
    "23": IntegrityError,
    "42": ProgrammingError,
    "XX": InternalError,
}


def remembered(sqlstate: str, message: str, hint: str | None = None) -> DatabaseError:
    """An error that was met at another time or place, by its code and words."""
    family = _FAMILIES.get(sqlstate[:2], OperationalError)
    class_ = type("RememberedError", (family,), {"sqlstate": sqlstate, "message": "{text}", "hint_text": None})
    error: DatabaseError = class_(text=message)
    error.hint = hint
    return error


class Bug(InternalError):
    message = "internal error: {detail}"
    hint_text = "This is a bug in Seachange; please report it with this message."
