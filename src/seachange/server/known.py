"""Answers that are known before they are asked for: to executions of statements whose result is always the same.

**Invariant:** an answer is the one that the messages would get otherwise, outside of transactions: it is kept for a
statement as long as that has its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from seachange import errors
from seachange.server import messages as m
from seachange.server.portals import Statement, Statements
from seachange.server.rows import describe_rows, encode_rows

# Bind, perhaps Describe, Execute and Sync: one statement that stands for itself.
ONE_EXECUTION = frozenset({b"BES", b"BDES"})
FRAMES_MAX = max(map(len, ONE_EXECUTION))
_OUTSIDE = m.ready(b"I")
_KEPT_MAX = 64
_PORTAL = m.Named("P", "")


def kinds_of(frames: Sequence[m.MessageFrame]) -> bytes:
    return b"".join([frame.kind for frame in frames])


class KnownAnswers:
    """Of one connection, by the messages as they came."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._kept: dict[tuple[m.MessageFrame, ...], tuple[str, Statement, bytes]] = {}

    def find(self, frames: tuple[m.MessageFrame, ...]) -> bytes | None:
        kept = self._kept.get(frames)
        if kept is None:
            return None
        name, statement, answer = kept
        return answer if self._statements.peek(name) is statement else None

    def learn(self, frames: tuple[m.MessageFrame, ...]) -> None:
        """If they ask for one whole result that is known."""
        statement = self._statements.peek(m.peek_bound(frames[0].body))
        constant = statement.prepared.constant if statement is not None and statement.prepared is not None else None
        if kinds_of(frames) not in ONE_EXECUTION or statement is None or constant is None or constant.columns is None:
            return
        # What is wrong with them is told by who does what they ask for.
        with suppress(errors.Error):
            bind, execute = m.read_bind(frames[0].body), m.read_execute(frames[-2].body)
            described = b""
            if len(frames) == FRAMES_MAX:
                described = describe_rows(constant.columns, bind.result_formats)
                if m.read_named(frames[1].body) != _PORTAL:
                    return
            if bind.portal or bind.values or execute.portal or execute.rows_max:
                return
            rows = b"".join(encode_rows(constant.columns, bind.result_formats, constant.rows))
            answer = m.BIND_COMPLETE + described + rows + m.command_complete(constant.tag) + _OUTSIDE
            if len(self._kept) >= _KEPT_MAX:
                self._kept.clear()
            self._kept[frames] = bind.statement, statement, answer
