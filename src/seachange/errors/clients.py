"""Errors of connections: protocol, authentication, connection limits, timeouts, use after close."""

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
    message = "too many failed password attempts from {address}"
    hint_text = "Wait a minute, then connect again."


class TooManyOfRole(OperationalError):
    sqlstate = "53300"
    message = 'too many connections for role "{role}"'
    hint_text = "Close a connection, or raise the limit with ALTER ROLE ... CONNECTION LIMIT."


class TooManyConnections(OperationalError):
    sqlstate = "53300"
    message = "sorry, too many clients already ({count})"
    hint_text = "Close some connections, or raise max_connections (serve --connections)."


class TooManyStatements(OperationalError):
    sqlstate = "53400"
    message = "the connection already has {count} prepared statements or portals"
    hint_text = "Close some of them (DEALLOCATE, CLOSE), or raise seachange.max_prepared_statements."


class IdleInTransaction(OperationalError):
    sqlstate = "25P03"
    message = "terminating connection due to idle-in-transaction timeout ({ms} ms)"
    hint_text = (
        "The transaction was rolled back. Connect again, or raise idle_in_transaction_session_timeout to allow longer "
        "pauses."
    )


class IdleSession(OperationalError):
    sqlstate = "57P05"
    message = "terminating connection due to idle-session timeout ({ms} ms)"
    hint_text = "Connect again, or raise idle_session_timeout."


class LoginTimeout(OperationalError):
    sqlstate = "57014"
    message = "canceling authentication due to timeout ({ms} ms)"
    hint_text = "Connect again, or raise authentication_timeout."


class ServerStops(OperationalError):
    sqlstate = "57P01"
    message = "terminating connection because the server is shutting down"
    hint_text = "Connect to another node, or to this one when it has restarted."


class SessionTerminated(OperationalError):
    sqlstate = "57P01"
    message = "terminating connection due to administrator command"


class StatementNotStopped(OperationalError):
    sqlstate = "57P01"
    message = "terminating connection because the statement did not stop within {ms} ms of its cancel or timeout"
    hint_text = "Connect again. The statement runs until it can be stopped, and is then rolled back."


class CopyFailed(OperationalError):
    sqlstate = "57014"
    message = "COPY from stdin failed: {detail}"


class NodeClosed(InterfaceError):
    message = "the connection is closed"


class CursorClosed(InterfaceError):
    message = "the cursor is closed"


class NoResult(InterfaceError):
    sqlstate = "24000"
    message = "the last statement returned no rows"
