"""What surrounds every statement of a session: it can be cancelled, it has limits, and it is counted.

**Invariant:** a statement is guarded once, together with its commit, its retries, and the statements that it consists
of. A long text is guarded while it is parsed.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import TracebackType

from seachange import errors
from seachange.engine.context.meters import Timing
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.node.node import Node
from seachange.engine.node.watchdog import Watched
from seachange.runtime.interruption import InterruptedBy
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.run.execute import KEPT_CHARS_MAX, Prepared, prepare
from seachange.sql.settings.session_settings import SessionSettings
from seachange.values.timezone import InZone

_WITHIN = nullcontext()
# How often a statement that waits for memory checks whether there is some.
_SHORTAGE_SECONDS = 0.02


class Guard:
    def __init__(self, node: Node, client: SessionContext, duck: DuckSession, settings: SessionSettings) -> None:
        self._node = node
        self._client = client
        self._duck = duck
        self._settings = settings
        self._is_entered = False
        self._is_settled = False
        # When the running statement was first asked to end; 0 if it was not.
        self._interrupted_us = 0
        # How often the memory of the node had been limited when the statement began, unless it still was.
        self._shortages = 0
        # Why the session has been ended by another one; it accepts nothing any more.
        self.ending: errors.Error | None = None
        # The statement that runs, or the last one, when it began, and when it or the session began to wait.
        self.text = ""
        self.began_us = 0
        self._ended_us = node.parts.clock.wall_us()

    @property
    def is_settled(self) -> bool:
        """Whether the statement has committed, so that it is too late to end it."""
        return self._is_settled

    def note_committed(self, is_whole: bool = True) -> None:
        """A statement whose job is not over is not committed as a whole."""
        self._is_settled = is_whole

    @property
    def stopping_us(self) -> int:
        """For how long the running statement has been asked to end; 0 if there is none, or it was not asked."""
        since_us = self._interrupted_us
        return self._node.parts.clock.steady_us() - since_us if since_us and self._is_entered else 0

    def interrupt(self) -> None:
        """Ends the running statement; may be called from another thread, and again while the statement goes on."""
        if not self._interrupted_us:
            self._interrupted_us = self._node.parts.clock.steady_us()
        # The flag first: a thread that begins to wait checks it.
        self._client.interrupts.set()
        self._duck.interrupt()
        self._node.epoch.locks.cancel(self._client.actor)

    @property
    def is_running(self) -> bool:
        return self._is_entered

    @property
    def changed_us(self) -> int:
        """Since when a statement runs, or none does."""
        return self.began_us if self._is_entered else self._ended_us

    def end(self, problem: errors.Error) -> None:
        """Ends the running statement, and lets none begin; called from another thread."""
        self.ending = problem
        self.interrupt()

    def statement(self, command: str = "", text: str = "") -> AbstractContextManager[None]:
        """Around a statement; within another one, part of that."""
        return _WITHIN if self._is_entered else _Guarded(self, command, text)

    def prepare(self, text: str) -> tuple[Prepared, ...]:
        """The statements of a text. Its time limit counts from here, and again when they are run."""
        if len(text) <= KEPT_CHARS_MAX or self._is_entered:
            return prepare(text)
        try:
            self.enter(text)
            with self.watched() or _WITHIN, InterruptedBy(self._client.interrupts.check_end):
                return prepare(text)
        finally:
            self.leave()

    def awaits_memory(self) -> bool:
        """Whether the statement may have failed because another one used too much memory; waits until that has
        ended."""
        watchdog = self._node.watchdog
        if self._interrupted_us or watchdog.shortages == self._shortages:
            return False
        while watchdog.is_short:
            self._client.interrupts.pause(_SHORTAGE_SECONDS)
        return True

    def note(self, text: str) -> None:
        """A statement has run that needed no guard: it took too little time to be ended."""
        self.text = text
        self.began_us = self._ended_us = self._node.parts.clock.wall_us()

    # What surrounds a statement.

    def enter(self, text: str) -> None:
        self._interrupted_us = 0
        self.text, self.began_us = text or self.text, self._node.parts.clock.wall_us()
        self._is_entered, self._is_settled = True, False
        self._client.interrupts.clear()
        watchdog = self._node.watchdog
        self._shortages = watchdog.shortages and watchdog.shortages - watchdog.is_short

    def leave(self) -> None:
        self._ended_us = self._node.parts.clock.wall_us()
        self._is_entered = False
        self._interrupted_us = 0
        # The rows of a statement that has ended are not kept until the next one.
        self._duck.ask(dict)

    def timed(self, command: str) -> Timing:
        return self._node.parts.meters.statement(command)

    def in_zone(self) -> InZone:
        zone = self._settings.typed.timezone
        self._duck.set_zone(zone)
        return InZone(zone)

    def interrupted(self) -> InterruptedBy:
        return InterruptedBy(self._client.interrupts.check_end)

    def watched(self) -> Watched | None:
        """None without limits."""
        limits = self._settings.typed
        if not limits.statement_timeout_ms and not limits.process_growth_bytes_max:
            return None
        return self._node.watchdog.watch(self, limits.statement_timeout_ms, limits.process_growth_bytes_max)

    def ended_with(self, error: BaseException | None) -> BaseException | None:
        """The error that the client gets."""
        if isinstance(error, errors.QueryCanceled) and self.ending is not None:
            return self.ending
        if isinstance(error, MemoryError):
            return errors.OutOfMemory(detail="the process cannot allocate more")
        return error


class _Guarded:
    """`with _Guarded(guard, command, text)`. A generator with all that it enters would cost as much as a look-up."""

    __slots__ = ("_command", "_guard", "_interrupted", "_text", "_timing", "_watched", "_zone")

    def __init__(self, guard: Guard, command: str, text: str) -> None:
        self._guard = guard
        self._command = command
        self._text = text

    def __enter__(self) -> None:
        guard = self._guard
        try:
            guard.enter(self._text)
            self._timing = guard.timed(self._command)
            self._zone = guard.in_zone()
            self._interrupted = guard.interrupted()
            self._watched = guard.watched()
            self._zone.__enter__()
            self._interrupted.__enter__()
            self._timing.__enter__()
            if self._watched is not None:
                self._watched.__enter__()
        except BaseException:
            guard.leave()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        guard, ended = self._guard, error
        try:
            if self._watched is not None:
                ended = self._watched.ended_with(error)
            self._timing.end(ended)
            self._interrupted.__exit__()
            self._zone.__exit__()
            ended = guard.ended_with(ended)
        finally:
            guard.leave()
        if ended is not None and ended is not error:
            raise ended from (None if ended is guard.ending else error)
