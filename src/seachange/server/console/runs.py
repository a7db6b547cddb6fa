"""SQL of the console: short queries, and schema changes that go on when their page is closed.

**Invariant:** the text of a user is run only if it is one schema change, or one block of them, that can be explained;
explaining runs none of it. At most `_CHANGES_MAX` changes run at a time; one that is interrupted is reverted, like that
of any client.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.runtime.threads import ThreadPool
from seachange.server.console.result_json import result_json
from seachange.server.console.views import APPLICATION, EXPLANATIONS, ConsoleQuery

_QUERY_TIMEOUT = "5s"
_CHANGES_MAX = 4
# How long a page waits for the end of a change; a longer one is among the jobs by then.
_ANSWER_SECONDS = 1.5
_KEPT_MAX = 100


@dataclass(slots=True)
class ConsoleChange:
    """A change that was started in the console. `outcome` is the command tag or the error, once there is one."""

    role: str
    database: str
    statement: str
    failed: bool = False
    outcome: str | None = None


class ConsoleRuns:
    """Used on threads, except for `close`."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._lock = threading.Lock()
        self._running: set[Session] = set()
        self._changes = ThreadPool(_CHANGES_MAX, "seachange-console-change")
        self._kept: deque[ConsoleChange] = deque(maxlen=_KEPT_MAX)

    def close(self) -> None:
        with self._lock:
            for session in self._running:
                session.interrupt()
        self._changes.shutdown(cancel_futures=True)

    def check_login(self, user: str, database: str) -> None:
        with self._session(user, database):
            pass

    def query(self, user: str, database: str, query: ConsoleQuery, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The rows of a view, or the result of an action."""
        values = [_value(query, name, given.get(name)) for name in query.parameters]
        with self._session(user, database, _QUERY_TIMEOUT) as session:
            return result_json(session.execute(query.sql, values))

    def explain(self, user: str, database: str, text: str) -> Mapping[str, Any]:
        found: dict[str, list[str]] = {}
        with self._session(user, database, _QUERY_TIMEOUT) as session:
            for name, form in EXPLANATIONS.items():
                prepared = session.prepare(f"{form} {text}")
                if len(prepared) != 1:
                    raise errors.SyntaxProblem(
                        detail="one schema change is expected, or several between BEGIN and COMMIT"
                    )
                found[name] = [line for (line,) in session.execute_prepared(prepared[0], ()).rows]
        return found

    def run(self, user: str, database: str, text: str) -> ConsoleChange:
        self.explain(user, database, text)
        change = ConsoleChange(user, database, text)
        self._kept.appendleft(change)
        future: Future[None] = self._changes.submit(self._run, change)
        wait([future], _ANSWER_SECONDS)
        return change

    def changes_of(self, user: str) -> list[ConsoleChange]:
        return [change for change in list(self._kept) if change.role == user]

    def _run(self, change: ConsoleChange) -> None:
        try:
            with self._session(change.role, change.database) as session:
                with self._lock:
                    self._running.add(session)
                try:
                    change.outcome = session.execute(change.statement).tag
                finally:
                    with self._lock:
                        self._running.discard(session)
        except errors.Error as problem:
            change.failed, change.outcome = True, f"{problem.sqlstate}: {problem}"

    @contextmanager
    def _session(self, user: str, database: str, timeout: str = "0") -> Iterator[Session]:
        session = Session(self._node, user, database)
        try:
            session.check_login()
            session.settings.set("application_name", APPLICATION)
            session.settings.set("statement_timeout", timeout)
            yield session
        finally:
            session.close()


def _value(query: ConsoleQuery, name: str, given: Any) -> Any:
    """The value of a parameter as its query takes it."""
    if name not in query.numbers:
        return str(given) if given is not None else ""
    try:
        return int(given)
    except (TypeError, ValueError, OverflowError):
        raise errors.InvalidTextRepresentation(type="bigint", value=given) from None
