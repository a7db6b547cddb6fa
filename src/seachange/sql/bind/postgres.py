"""PostgreSQL's own tables of types, casts, operators and functions, as far as they are about types that exist here.

The text files are written from a real server by `tests/sql/bind/test_postgres_tables.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class TypeRow:
    """A row of pg_type: `category` is its letter there, and a preferred type wins among those of its category."""

    oid: int
    category: str
    is_preferred: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """An operator or function: the names of the types of its arguments and of its result. The last `defaults` arguments
    may be left out; the last one of a variadic function is an array that calls give the elements of."""

    arguments: tuple[str, ...]
    result: str
    kind: str = "f"
    defaults: int = 0
    is_variadic: bool = False
    returns_set: bool = False


def _rows(name: str) -> Iterator[list[str]]:
    for line in (_FOLDER / f"{name}.txt").read_text().splitlines():
        yield line.split()


@lru_cache(maxsize=1)
def types() -> Mapping[str, TypeRow]:
    return {
        name: TypeRow(int(oid), category, is_preferred == "t") for name, oid, category, is_preferred in _rows("types")
    }


@lru_cache(maxsize=1)
def casts() -> Mapping[tuple[str, str], str]:
    """By source and target: `i` is implicit, `a` for assignments, `e` explicit."""
    return {(source, target): context for source, target, context in _rows("casts")}


@lru_cache(maxsize=1)
def operators() -> Mapping[str, Sequence[Signature]]:
    """A prefix operator has one argument."""
    found: dict[str, list[Signature]] = {}
    for name, left, right, result in _rows("operators"):
        arguments = (right,) if left == "-" else (left, right)
        found.setdefault(name, []).append(Signature(arguments, result))
    return found


@lru_cache(maxsize=1)
def functions() -> Mapping[str, Sequence[Signature]]:
    found: dict[str, list[Signature]] = {}
    for name, kind, returns_set, defaults, variadic, result, *arguments in _rows("functions"):
        found.setdefault(name, []).append(
            Signature(tuple(arguments), result, kind, int(defaults), variadic == "v", returns_set == "s")
        )
    return found
