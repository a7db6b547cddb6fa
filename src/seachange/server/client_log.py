"""What the log has of the clients of a server: who logs in, who is refused, and the errors of statements."""

from __future__ import annotations

from dataclasses import dataclass

from seachange import errors
from seachange.engine.context.problem_log import log_internal, log_problem
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.event_log import SILENT, EventLog

_BUG = errors.Bug.sqlstate


@dataclass(frozen=True, slots=True)
class ClientLog:
    """`session` is 0 before the log-in."""

    log: EventLog
    role: str
    database: str
    address: str = ""
    session: int = 0

    def note_login(self, way: str, is_encrypted: bool, application: str = "") -> None:
        self.log.info(
            "login",
            session=self.session or None,
            role=self.role,
            database=self.database,
            client=self.address or None,
            by=way,
            tls=is_encrypted,
            application=application or None,
        )

    def note_refusal(self, problem: errors.Error) -> None:
        self.log.warning(
            "login refused",
            role=self.role or None,
            database=self.database or None,
            client=self.address or None,
            sqlstate=problem.sqlstate,
            message=problem.without_values(),
        )

    def note_end(self, problem: errors.Error | None) -> None:
        """Of a session: by its client, or with an error."""
        reason = None if problem is None else problem.without_values()
        state = None if problem is None else problem.sqlstate
        self.log.info("logout", session=self.session, role=self.role, sqlstate=state, message=reason)

    def note_error(self, problem: errors.Error, text: str | None) -> None:
        """Our own errors get an id, under which the client can ask for the entry."""
        about = {"session": self.session or None, "role": self.role, "database": self.database}
        if problem.sqlstate == _BUG and self.log.is_on:
            cause = problem.__cause__ or problem
            id_ = log_internal(self.log, SYSTEM_ENTROPY, cause, "a statement", **about)
            problem.located(f"error id {id_}")
        log_problem(self.log, problem, problem.statement or text, **about)


NO_LOG = ClientLog(SILENT, "", "")
