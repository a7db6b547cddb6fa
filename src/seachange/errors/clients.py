"""Clients of the server, and of closed connections."""

from __future__ import annotations

from seachange.errors.families import DataError, InterfaceError, NotSupportedError, OperationalError


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


class EncryptionRequired(OperationalError):
    sqlstate = "28000"
    message = "connection is not encrypted, and the server requires encryption"
    hint_text = "Connect with sslmode=require or stricter."


class FixedPassword(OperationalError):
    sqlstate = "55006"
    message = 'password of role "{role}" cannot be changed: the server takes it from the environment'
    hint_text = "Change SEACHANGE_PASSWORD where the server is started, and restart it; or start it without."


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


class StatementNotStopped(OperationalError):
    sqlstate = "57P01"
    message = "terminating connection: the statement did not stop within {ms} ms of its cancel or timeout"
    hint_text = "Connect again. The statement goes on until it can be stopped, and is then rolled back."


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
