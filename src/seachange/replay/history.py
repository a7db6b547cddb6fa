"""The migrations of a folder, in the order in which their tool would run them.

The recognised tools are data: a pattern for each naming scheme, and the files that are not forward migrations.
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
    """`step` matches the files to run, by their path within the folder; `last` those that run at the end."""

    naming: Naming
    step: re.Pattern[str]
    last: re.Pattern[str] | None = None


# In this order: the first that matches a file is the naming of the folder.
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
    """`left_out` are the SQL files of the folder that are not forward migrations: down migrations, or unknown names."""

    naming: Naming
    migrations: tuple[Migration, ...]
    left_out: tuple[str, ...]


def order_files(paths: Iterable[str]) -> tuple[Naming, tuple[str, ...], tuple[str, ...]]:
    """The naming of these SQL files, those to run, in order, and those not to run.

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
    """Natural order: numbers by their value, and before words: 2 comes before 10. Separators of numbers do not
    count."""
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
        raise errors.HistoryProblem(path=place, detail="it contains no migrations")
    return History(naming, tuple(_read(place / name, name) for name in steps), left_out)


def _read(path: Path, name: str) -> Migration:
    try:
        # Some tools begin their files with a byte order mark.
        return Migration(name, path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as problem:
        raise errors.HistoryProblem(path=path, detail=str(problem)) from problem
