"""What is known of an open session, on its node and on others."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from seachange.model.ids import Epoch, Seq


class SessionActivity(StrEnum):
    """The names are PostgreSQL's (`pg_stat_activity.state`)."""

    ACTIVE = "active"
    IDLE = "idle"
    IN_TRANSACTION = "idle in transaction"
    FAILED = "idle in transaction (aborted)"


class SessionRequest(StrEnum):
    """What one session may ask of another one."""

    CANCEL = "cancel"
    END = "end"


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """`number` is that of one session at a time, on all nodes; `role` is the one that logged in. Moments are 0 where
    there was none: the session has not run a statement, or is in no transaction. A state begins at `changed_us`. The
    statement is the one that runs, or the last one. Sessions without a network client have no address."""

    number: int
    role: str
    database: str
    application: str
    address: str
    port: int
    began_us: int
    transaction_us: int
    statement_us: int
    changed_us: int
    state: SessionActivity
    statement: str
    # What the session is pinned to.
    layout: str = ""


class ShownSession(NamedTuple):
    """A session with its node, and the lock that it waits for: its mode, what it is on, and the sessions that hold it.
    What it does is None for roles that may not know."""

    node: str
    epoch: Epoch
    record: SessionRecord
    is_seen: bool
    wait_mode: str | None
    waits_for: str | None
    blocked_by: tuple[int, ...]


class AskedSession(NamedTuple):
    number: int
    request: SessionRequest


class Beat(NamedTuple):
    """What a heartbeat returns: the head of the log, and what other nodes ask of sessions of this one."""

    head: Seq
    asked: tuple[AskedSession, ...] = ()
