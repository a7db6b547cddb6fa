"""Errors that a retry may resolve: the same transaction may succeed when it is run again."""

from __future__ import annotations

from seachange.errors.families import OperationalError


class SerializationFailure(OperationalError):
    sqlstate = "40001"
    message = "could not serialize access: {detail}"
    hint_text = "Run the transaction again."


class StaleNode(SerializationFailure):
    message = "the epoch of node {node} has ended: it did not send a heartbeat within its expiry"
    hint_text = "The session continues on a new epoch; run the transaction again."


class RowChanged(SerializationFailure):
    """Raised before anything was written: at READ COMMITTED the statement is retried on the newest version."""

    message = "could not serialize access due to a concurrent update (commit {seq})"

    def __init__(self, seq: int) -> None:
        super().__init__(seq=seq)
        self.seq = seq


class StatementHeld(SerializationFailure):
    """The newest commit is not readable for the statement: it is retried at the last sequence that is."""

    message = "could not serialize access due to a concurrent change of a table (after commit {seq})"

    def __init__(self, seq: int) -> None:
        super().__init__(seq=seq)
        self.seq = seq


class DeadlockDetected(OperationalError):
    sqlstate = "40P01"
    message = "deadlock detected"
    hint_text = "Run the transaction again."

    def __init__(self, waits: str | None = None) -> None:
        """`waits` lists the sessions of the cycle and what each waits for."""
        super().__init__()
        self.detail = waits


class ExportInProgress(OperationalError):
    sqlstate = "55P03"
    message = "another node exports the table"
    hint_text = "Try again."


class SnapshotTooOld(OperationalError):
    sqlstate = "72000"
    message = "snapshot {snapshot} is no longer available: {detail}"
    hint_text = "Run the transaction again, or raise seachange.retention."


class FeedTooOld(OperationalError):
    sqlstate = "72000"
    message = "changes since commit {since} are no longer kept: history starts at {floor}"
    hint_text = (
        "Copy the tables as of now and continue from there; CREATE FEED keeps the changes that it has not passed on, "
        "seachange.retention those of the past."
    )


class FeedEnded(OperationalError):
    sqlstate = "72000"
    message = 'feed "{name}" was ended: {reason}'
    hint_text = "Drop it, copy the tables as of now, and create it again."


class StreamSchemaChanged(OperationalError):
    sqlstate = "55000"
    message = 'the schema of table "{table}" was changed by commit {seq}, and the stream has read everything before it'
    hint_text = (
        "Start the query again from its checkpoint: with option schemaChanges follow it continues in the new shape. If "
        "the table was dropped, there is nothing more to read."
    )


class StreamTableReplaced(OperationalError):
    sqlstate = "55000"
    message = 'the checkpoint is of another table than "{table}" is now'
    hint_text = "Start the query with a new checkpoint."


class UnknownCommitOutcome(OperationalError):
    sqlstate = "40003"
    message = "the outcome of commit {commit_id} is not known: {detail}"
    hint_text = "When the catalog is reachable again, look up the outcome by the commit id."
