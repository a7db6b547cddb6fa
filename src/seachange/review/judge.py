"""Reads migrations and finds out what each of their statements would take: on an empty database on which they are run,
or on a running one that is only asked.

**Invariant:** a running database executes nothing but EXPLAIN.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from seachange import errors
from seachange.engine.database.opening import acquire_node, release_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.statements import Begin, Commit, DdlStatement
from seachange.replay.history import History, Migration, read_history
from seachange.replay.perform import PieceOutcome, Verdict, steps
from seachange.replay.script import Piece, PieceKind, cut
from seachange.review.finding import StatementFinding, finding_of, refusal, row_change
from seachange.runtime.location import find_location
from seachange.sql.parsing.parse import parse_script

_EXPLAIN = "EXPLAIN (DDL, EACH, FORMAT JSON)"


class ExplainingDatabase(Protocol):
    def explain(self, text: str) -> str:
        """The answer to an EXPLAIN, which is one text."""


def read_migrations(places: Sequence[Path]) -> list[tuple[Path, History]]:
    return [(place if place.is_dir() else place.parent, read_history(place)) for place in places]


def judge_on_server(places: Sequence[Path], database: ExplainingDatabase) -> list[StatementFinding]:
    """All statements follow one another, after the current state of the database."""
    pieces = [
        (str(folder / migration.name), piece)
        for folder, history in read_migrations(places)
        for migration in history.migrations
        for piece in cut(migration.text)
    ]
    planned = [piece.text for _, piece in pieces if _is_schema_change(piece)]
    answers = iter(explain(database, planned))
    return [found for file, piece in pieces if (found := _judge(file, piece, answers)) is not None]


def judge_on_scratch(places: Sequence[Path]) -> list[StatementFinding]:
    """Each file is planned after those before it have been run on an empty database; its tables are taken to have rows,
    but for those that the file itself creates."""
    with TemporaryDirectory(prefix="seachange-plan-") as folder:
        node = acquire_node(find_location(folder, None), None, True)
        try:
            return [
                found
                for place, history in read_migrations(places)
                for migration in history.migrations
                for found in _judge_and_run(place, history, migration, node)
            ]
        finally:
            release_node(node)


def explain(database: ExplainingDatabase, texts: Sequence[str]) -> list[dict[str, Any]]:
    if not texts:
        return []
    # The line break ends a comment behind the last word of a statement.
    block = "".join(f"{text}\n;" for text in texts)
    found: list[dict[str, Any]] = json.loads(database.explain(f"{_EXPLAIN} BEGIN; {block} COMMIT"))
    return found


class ScratchDatabase:
    def __init__(self, node: Node) -> None:
        self._node = node

    def explain(self, text: str) -> str:
        with closing(Session(self._node)) as session:
            ((answer,),) = session.execute(text).rows
            return str(answer)


def _judge_and_run(folder: Path, history: History, migration: Migration, node: Node) -> Iterator[StatementFinding]:
    file, pieces = str(folder / migration.name), cut(migration.text)
    planned = explain(ScratchDatabase(node), [piece.text for piece in pieces if _is_schema_change(piece)])
    refused = {outcome.line: outcome for outcome in _run(history, migration, node)}
    answers = iter(planned)
    for piece in pieces:
        found = _judge(file, piece, answers)
        outcome = refused.get(piece.line)
        if found is not None and outcome is not None and not found.is_refused:
            # Planning has not seen what running it has.
            found = refusal(file, piece.line, piece.text, outcome.sqlstate, outcome.message, outcome.hint)
        if found is not None:
            yield found


def _run(history: History, migration: Migration, node: Node) -> list[PieceOutcome]:
    """The outcomes of statements that were refused."""
    ended: list[PieceOutcome] = []
    one = History(history.naming, (migration,), ())
    performed = [step.perform() for step in steps(one, node, False, ended.append)]
    return [outcome for outcome in (*performed, *ended) if outcome.verdict is Verdict.REFUSED]


def _judge(file: str, piece: Piece, answers: Iterator[dict[str, Any]]) -> StatementFinding | None:
    if piece.kind is PieceKind.UNREADABLE:
        return refusal(file, piece.line, piece.text, errors.SyntaxProblem.sqlstate, piece.problem, None)
    if piece.kind is not PieceKind.STATEMENT:
        return None
    if _is_schema_change(piece):
        return finding_of(file, piece.line, piece.text, next(answers))
    try:
        parsed = parse_script(piece.text)
    except errors.Error as problem:
        return refusal(file, piece.line, piece.text, problem.sqlstate, str(problem), problem.hint)
    return None if isinstance(parsed[0], Begin | Commit) else row_change(file, piece.line, piece.text)


def _is_schema_change(piece: Piece) -> bool:
    if piece.kind is not PieceKind.STATEMENT:
        return False
    try:
        return isinstance(parse_script(piece.text)[0], DdlStatement)
    except errors.Error:
        return False
