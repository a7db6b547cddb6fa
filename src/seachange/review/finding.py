"""What is known of one statement of a migration before it is run, and what may be forbidden."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from seachange import errors

# Statements that change rows, by their first word: what they overwrite or delete is not planned.
_CHANGES_ROWS = frozenset({"delete", "truncate", "update", "merge"})


class Forbidden(StrEnum):
    """What --forbid takes: the strategies of plans, waits for other transactions, and losses."""

    VALIDATE = "validate"
    BUILD = "build"
    REBUILD = "rebuild"
    WAIT = "wait"
    IRREVERSIBLE = "irreversible"


_STRATEGIES = {
    "validate only": Forbidden.VALIDATE,
    "build index": Forbidden.BUILD,
    "rebuild primary index": Forbidden.REBUILD,
}


@dataclass(frozen=True, slots=True)
class StatementFinding:
    """`strategy` is empty for a statement that is no schema change. Numbers that are not known are None. `loses` names
    what goes with its values; `remarks` are notices and advice; `cost` are the lines of EXPLAIN (DDL, COST)."""

    file: str
    line: int
    statement: str
    strategy: str = ""
    rows: int | None = None
    bytes: int | None = None
    ms: int | None = None
    waits: int = 0
    loses: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    cost: tuple[str, ...] = ()
    sqlstate: str = ""
    message: str = ""
    hint: str = ""

    @property
    def is_refused(self) -> bool:
        return bool(self.sqlstate)

    @property
    def traits(self) -> frozenset[Forbidden]:
        found = {_STRATEGIES[self.strategy]} if self.strategy in _STRATEGIES else set()
        if self.waits:
            found.add(Forbidden.WAIT)
        if self.loses:
            found.add(Forbidden.IRREVERSIBLE)
        return frozenset(found)


def finding_of(file: str, line: int, text: str, step: Mapping[str, Any]) -> StatementFinding:
    """`step` is one of the answer of EXPLAIN (DDL, EACH, FORMAT JSON)."""
    if "error" in step:
        error = step["error"]
        return refusal(file, line, text, error["sqlstate"], error["message"], error["hint"])
    return StatementFinding(
        file,
        line,
        text,
        step["strategy"],
        step["rows"],
        step["bytes"],
        step["ms"],
        step["waits"],
        tuple(step["loses"]),
        tuple(step["remarks"]),
        tuple(step["cost"]),
    )


def refusal(file: str, line: int, text: str, sqlstate: str, message: str, hint: str | None) -> StatementFinding:
    return StatementFinding(file, line, text, sqlstate=sqlstate, message=message, hint=hint or "")


def row_change(file: str, line: int, text: str) -> StatementFinding:
    """A statement that is no schema change."""
    word = text.split(maxsplit=1)[0].lower() if text.split() else ""
    return StatementFinding(
        file, line, text, loses=("rows that it changes or deletes",) if word in _CHANGES_ROWS else ()
    )


def read_forbidden(text: str) -> frozenset[Forbidden]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    try:
        return frozenset(map(Forbidden, words))
    except ValueError:
        known = ", ".join(Forbidden)
        raise errors.InvalidParameterValue(detail=f"--forbid takes a list of {known}, not {text}") from None
