"""The context of a transaction and of each statement in it: session, role, search path, limits and mode.

**Invariant:** these values are frozen. A session makes another one when a setting changes, and gives it to its
transaction before a statement; nothing else is assigned to a transaction from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from seachange.changer.job import Job
from seachange.engine.context.child_transactions import ChildTransactions
from seachange.engine.context.statement_calls import NamedStatements
from seachange.model.schema.access import DEFAULT_ROLE
from seachange.model.schema.objects import DEFAULT_DATABASE, DEFAULT_SCHEMA
from seachange.model.schema.rights import ROOT_IDENTITY, SessionIdentity
from seachange.sql.port.port import SessionView
from seachange.sql.settings.session_settings import SessionSettings


def _check_nothing(name: str, value: str | None) -> None:
    """Without a client every setting is allowed."""


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The session as the functions of SQL see it: `SessionView`."""

    user: str = DEFAULT_ROLE
    database: str = DEFAULT_DATABASE
    number: int = 0
    values: SessionSettings = field(default_factory=SessionSettings)
    # Whether the client may give a setting this value.
    check: Callable[[str, str | None], None] = _check_nothing
    statements: NamedStatements = field(default_factory=NamedStatements)

    @property
    def session_user(self) -> str:
        name = self.values.typed.session_user
        return self.user if name is None else name

    def setting(self, name: str) -> str:
        if name == "session_authorization":
            return self.session_user
        return self.values.get(name)

    def set_setting(self, name: str, value: str | None, local: bool) -> str:
        self.check(name, value)
        self.values.set(name, value, local)
        return self.values.get(name)

    def settings(self) -> Sequence[tuple[str, str, str]]:
        return self.values.show()

    def prepared(self) -> Sequence[tuple[str, str, Sequence[str], bool]]:
        return self.statements.show()


@dataclass(frozen=True, slots=True)
class TransactionMode:
    """Of a transaction as a whole: a block, or one statement in autocommit, which may go on as a job.

    `asks_for_job`: its change gets a job even if nothing is left for it to do. `queued` is the job whose statement this
    transaction begins; `drain_ms` and `job_settings` are stored with every job that begins. `is_contended`: it is run
    again after a conflict, and other nodes wait for its writes, so that it does not lose for ever."""

    autocommit: bool = False
    asks_for_job: bool = False
    queued: Job | None = None
    drain_ms: int | None = None
    job_settings: tuple[tuple[str, str], ...] = ()
    is_contended: bool = False


BLOCK = TransactionMode()
AUTOCOMMIT = TransactionMode(autocommit=True)


@dataclass(frozen=True, slots=True)
class StatementContext:
    """For the statements from now on. `waits`: they wait for locks of other transactions, and are run again on what
    those have committed; else a conflict is found at COMMIT. A limit of 0 means none."""

    session: SessionView = field(default_factory=SessionFacts)
    identity: SessionIdentity = ROOT_IDENTITY
    search_path: tuple[str, ...] = (DEFAULT_SCHEMA,)
    lock_timeout_ms: int = 0
    waits: bool = False
    # For changes in several stages inside a block.
    children: ChildTransactions | None = None
