"""A folder of migrations as the tools lay it out, in the order in which they would be run.

What is recognised is data: for each naming a pattern, and the files beside that are no steps forward.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from seachange import errors


class Naming(StrEnum):
    PRISMA = "Prisma"
    DIESEL = "Diesel"
    GOLANG_MIGRATE = "golang-migrate"
    FLYWAY = "Flyway"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class _Layout:
    """`step` are the files that are run, by their path within the folder; `last` those of them that come at the end."""

    naming: Naming
    step: re.Pattern[str]
    last: re.Pattern[str] | None = None


# In this order: whichever finds a file is the naming of the folder.
_LAYOUTS = (
    _Layout(Naming.PRISMA, re.compile(r"(?P<order>[^/]+)/migration\.sql")),
    _Layout(Naming.DIESEL, re.compile(r"(?P<order>[^/]+)/up\.sql")),
    _Layout(Naming.GOLANG_MIGRATE, re.compile(r"(?P<order>[0-9]+)_?[^/]*\.up\.sql")),
    _Layout(
        Naming.FLYWAY,
        re.compile(r"(?:.*/)?V(?P<order>[0-9]+(?:[._][0-9]+)*)__[^/]*\.sql"),
        re.compile(r"(?:.*/)?R__(?P<order>[^/]*)\.sql"),
    ),
    _Layout(Naming.PLAIN, re.compile(r"(?P<order>[^/]*)\.sql")),
)

_DIGITS = re.compile(r"([0-9]+)")


@dataclass(frozen=True, slots=True)
class Migration:
    """`name` is its path within the folder."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class History:
    """`left_out` are the SQL files of the folder that are no step forward: the way back, or of no known name."""

    naming: Naming
    migrations: tuple[Migration, ...]
    left_out: tuple[str, ...]


def order_files(paths: Iterable[str]) -> tuple[Naming, tuple[str, ...], tuple[str, ...]]:
    """The naming of these SQL files, those that are run, in order, and those that are not.

    >>> order_files(["V2__b.sql", "V10__c.sql", "V1.1__a.sql", "R__views.sql", "U2__b.sql"])[1:]
    (('V1.1__a.sql', 'V2__b.sql', 'V10__c.sql', 'R__views.sql'), ('U2__b.sql',))
    """
    given = sorted(paths)
    for layout in _LAYOUTS:
        steps = _matching(layout.step, given)
        if steps:
            ordered = (*steps, *(_matching(layout.last, given) if layout.last else ()))
            return layout.naming, ordered, tuple(path for path in given if path not in ordered)
    return Naming.PLAIN, (), tuple(given)


def _matching(pattern: re.Pattern[str], paths: list[str]) -> tuple[str, ...]:
    found = [(_natural(match["order"]), path) for path in paths if (match := pattern.fullmatch(path))]
    return tuple(path for _, path in sorted(found))


def _natural(text: str) -> tuple[tuple[bool, int, str], ...]:
    """Numbers by their value, and before words: 2 comes before 10. What separates numbers does not count."""
    parts = [part for part in _DIGITS.split(text) if part not in ("", ".", "_")]
    return tuple((False, int(part), "") if part.isdecimal() else (True, 0, part) for part in parts)


def read_history(place: Path) -> History:
    """The migrations of a folder; a single file is a history of one."""
    if place.is_file():
        return History(Naming.PLAIN, (_read(place, place.name),), ())
    if not place.is_dir():
        raise errors.HistoryProblem(path=place, detail="there is no such folder or file")
    found = [path.relative_to(place).as_posix() for path in place.rglob("*.sql")]
    naming, steps, left_out = order_files(found)
    if not steps:
        raise errors.HistoryProblem(path=place, detail="there are no migrations in it")
    return History(naming, tuple(_read(place / name, name) for name in steps), left_out)


def _read(path: Path, name: str) -> Migration:
    try:
        # Some tools begin their files with a byte order mark.
        return Migration(name, path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as problem:
        raise errors.HistoryProblem(path=path, detail=str(problem)) from problem
