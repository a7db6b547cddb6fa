"""Splits the text of a migration into pieces: statements, psql meta-commands, the rows that follow a COPY, and the down
migration, if a tool has both in one file.

**Invariant:** every character of the text that is not a comment is in a piece; text that cannot be parsed is a piece,
too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from seachange import errors
from seachange.sql.text.tokens import is_complete, split_script

_COPY = re.compile(r"\bfrom\s+stdin\b[^;]*;\s*$", re.IGNORECASE)
_END_OF_ROWS = "\\."
# The markers of up and down migrations in files of goose, sql-migrate, dbmate, micrate and rambler.
_WAY = re.compile(r"--\s*(?:\+(?:goose|migrate|micrate)\s+|migrate:|rambler\s+)(up|down)\b", re.IGNORECASE)


class PieceKind(StrEnum):
    STATEMENT = "statement"
    PSQL = "psql"
    WAY_BACK = "way back"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Piece:
    """`line` is the line of the file in which it begins. `rows` is what follows a COPY FROM STDIN, `problem` the syntax
    error of an unreadable piece."""

    text: str
    line: int
    kind: PieceKind = PieceKind.STATEMENT
    rows: str | None = None
    problem: str = ""


def cut(text: str) -> list[Piece]:
    pieces: list[Piece] = []
    pending: list[str] = []
    first = 1
    is_back = False
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        way = _WAY.match(line)
        if way is not None:
            pieces += _part(pending, first, is_back)
            pending, first, is_back = [], number + 1, way[1].lower() == "down"
            continue
        if is_back:
            pending.append(line)
            continue
        if line.startswith("\\") and not _is_open(pending):
            pieces += _statements(pending, first)
            pieces.append(Piece(line, number, PieceKind.PSQL))
            pending, first = [], number + 1
            continue
        pending.append(line)
        if _COPY.search(line) and not _is_open(pending):
            *before, copy = _statements(pending, first)
            rows, length = _rows(lines)
            pieces += [*before, Piece(copy.text, copy.line, copy.kind, rows, copy.problem)]
            pending, first = [], number + length + 1
    return pieces + _part(pending, first, is_back)


def _part(lines: list[str], first: int, is_back: bool) -> list[Piece]:
    """A down migration is one piece, which is not run."""
    statements = _statements(lines, first)
    return [Piece("\n".join(lines).strip(), first, PieceKind.WAY_BACK)] if is_back and statements else statements


def _is_open(lines: list[str]) -> bool:
    """Whether the text ends within a statement, a quote or a comment."""
    try:
        text = "\n".join(lines)
        return bool(split_script(text)) and not is_complete(text)
    except errors.SyntaxProblem:
        return True


def _rows(lines: Iterator[tuple[int, str]]) -> tuple[str, int]:
    """The rows of a COPY, and the number of their lines including the one that ends them."""
    rows: list[str] = []
    for _, line in lines:
        if line == _END_OF_ROWS:
            return "".join(f"{row}\n" for row in rows), len(rows) + 1
        rows.append(line)
    return "".join(f"{row}\n" for row in rows), len(rows)


def _statements(lines: list[str], first: int) -> list[Piece]:
    text = "\n".join(lines)
    if not text.strip():
        return []
    try:
        return [Piece(raw.text, first + raw.tokens[0].line - 1) for raw in split_script(text)]
    except errors.SyntaxProblem as problem:
        return [Piece(text, first, PieceKind.UNREADABLE, problem=str(problem))]
