"""Runs the pieces of a migration one after the other in a session, and records the outcome of each.

**Invariant:** a migration is one transaction, as tools run it, unless it controls transactions itself or has a
statement that cannot run in a transaction block: then its statements run in autocommit.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.job_session import JobStatement, answer
from seachange.engine.session.outside_blocks import check_inside_block
from seachange.engine.session.session import Session
from seachange.engine.session.session_state import TransactionStatus
from seachange.engine.transaction.enum_labels import labelled
from seachange.engine.transaction.transaction import Transaction
from seachange.model.jobs import JobId
from seachange.model.statements import Begin, Commit, CopyStream, DdlStatement, Rollback
from seachange.replay.history import History, Migration
from seachange.replay.script import Piece, PieceKind, cut
from seachange.sql.change.explain_ddl import cost_of
from seachange.sql.parsing.parse import parse_script
from seachange.sql.port.result import Result

_JOB_COLUMN = "job_id"
# Pieces that a replay skips, and why.
_SKIPPED = {PieceKind.PSQL: "a psql meta-command", PieceKind.WAY_BACK: "a down migration"}
_SAVEPOINT = "seachange_replay"


class Verdict(StrEnum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class PieceOutcome:
    """`strategy` is the planner's strategy for a schema change; empty for other statements."""

    migration: str
    line: int
    text: str
    verdict: Verdict
    time_us: int = 0
    strategy: str = ""
    sqlstate: str = ""
    message: str = ""
    hint: str = ""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PieceStep:
    """A piece and the session to run it in. `number` counts the pieces of the whole history. `guarded`: if it is
    refused, the rest of its transaction goes on."""

    number: int
    migration: Migration
    piece: Piece
    session: Session
    guarded: bool = False

    @property
    def in_block(self) -> bool:
        return self.session.status is not TransactionStatus.IDLE

    def perform(self) -> PieceOutcome:
        piece, session = self.piece, self.session
        if piece.kind in _SKIPPED:
            return self._outcome(Verdict.SKIPPED, message=_SKIPPED[piece.kind])
        if piece.kind is PieceKind.UNREADABLE:
            code = errors.SyntaxProblem.sqlstate
            return self._outcome(Verdict.REFUSED, sqlstate=code, message=piece.problem)
        session.notices.clear()
        clock = session.node.parts.clock
        strategy = ""
        started = clock.steady_us()
        try:
            strategy = _strategy(session, piece)
            started = clock.steady_us()
            with _guard(session) if self.guarded else nullcontext():
                _run(session, piece)
        except errors.Error as error:
            time_us = clock.steady_us() - started
            refusal = (error.sqlstate, str(error), error.hint or "")
            return self._outcome(Verdict.REFUSED, time_us, strategy, *refusal)
        return self._outcome(Verdict.ACCEPTED, clock.steady_us() - started, strategy)

    def _outcome(
        self,
        verdict: Verdict,
        time_us: int = 0,
        strategy: str = "",
        sqlstate: str = "",
        message: str = "",
        hint: str = "",
    ) -> PieceOutcome:
        place = (self.migration.name, self.piece.line, self.piece.text)
        return PieceOutcome(*place, verdict, time_us, strategy, sqlstate, message, hint, tuple(self.session.notices))


def steps(
    history: History, node: Node, autocommit: bool, on_outcome: Callable[[PieceOutcome], None]
) -> Iterator[PieceStep]:
    """Every piece of the history; each migration has a session of its own. A transaction that a migration leaves open
    is rolled back and reported."""
    number = 0
    for migration in history.migrations:
        pieces = cut(migration.text)
        is_one = not autocommit and _can_be_one_transaction(pieces)
        with closing(Session(node)) as session:
            for piece, guarded in _in_transaction(pieces) if is_one else ((piece, False) for piece in pieces):
                step = PieceStep(number, migration, piece, session, guarded)
                number += 1
                yield step
            if session.status is not TransactionStatus.IDLE and pieces:
                problem = errors.ActiveTransaction(detail="the migration ends within a transaction: it is rolled back")
                place = (migration.name, pieces[-1].line, "(end of the migration)")
                on_outcome(PieceOutcome(*place, Verdict.REFUSED, sqlstate=problem.sqlstate, message=str(problem)))


def _can_be_one_transaction(pieces: Sequence[Piece]) -> bool:
    for piece in pieces:
        if piece.kind is not PieceKind.STATEMENT:
            continue
        try:
            for statement in parse_script(piece.text):
                check_inside_block(statement)
                if isinstance(statement, Begin | Commit | Rollback):
                    return False
        except errors.InsideBlock:
            return False
        except errors.Error:
            # The statement itself will raise the error.
            continue
    return bool(pieces)


def _in_transaction(pieces: Sequence[Piece]) -> Iterator[tuple[Piece, bool]]:
    """The pieces with what a tool sends around them; each with whether it is guarded."""
    yield Piece("BEGIN", pieces[0].line), False
    yield from ((piece, True) for piece in pieces)
    yield Piece("COMMIT", pieces[-1].line), False


@contextmanager
def _guard(session: Session) -> Iterator[None]:
    session.execute(f"SAVEPOINT {_SAVEPOINT}")
    try:
        yield
    except errors.Error:
        session.execute(f"ROLLBACK TO {_SAVEPOINT}")
        raise
    session.execute(f"RELEASE {_SAVEPOINT}")


def _strategy(session: Session, piece: Piece) -> str:
    parsed = parse_script(piece.text)
    if len(parsed) != 1 or not isinstance(parsed[0], DdlStatement):
        return ""
    statement = parsed[0]

    def ask(transaction: Transaction) -> str:
        try:
            return cost_of(statement, labelled(transaction)).strategy.value
        except errors.Error:
            # The statement itself will raise the error.
            return ""

    return session.in_transaction(ask)


def _run(session: Session, piece: Piece) -> None:
    if piece.rows is not None:
        _copy(session, piece.text, piece.rows)
    else:
        _wait(session, session.execute(piece.text))


def _copy(session: Session, text: str, rows: str) -> None:
    (copy,) = parse_script(text)
    if not isinstance(copy, CopyStream):
        raise errors.SyntaxProblem(detail="rows follow a statement that is not COPY FROM STDIN")
    session.copy_in(copy, lambda width: io.StringIO(rows))


def _wait(session: Session, result: Result) -> None:
    """Waits for the jobs that an asynchronous statement has started."""
    if result.columns is None or [column.name for column in result.columns] != [_JOB_COLUMN]:
        return
    typed = session.settings.typed
    limits = typed.drain_timeout_ms, typed.lock_timeout_ms
    for (job_id,) in result.rows:
        waiting = JobStatement(session.node, session.client, session.notices.append, *limits)
        answer(waiting.wait(JobId(job_id)))
