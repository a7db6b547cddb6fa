"""Isolation scripts: steps of several sessions, as text.

    setup                        statements that make the tables, and put the rows into them
    session NAME                 a transaction; its statements follow, one on a line, each a step
    check                        a query for the final state
    anomaly LEVEL, LEVEL         levels at which outcomes without a serial equal are known, and must occur

A transaction is begun by its first step and committed by a last one. Lines that start with # are comments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

LEVELS = ("read committed", "repeatable read", "serializable")


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    setup: tuple[str, ...]
    sessions: Mapping[str, tuple[str, ...]]
    check: str
    anomalies: frozenset[str]


def read_script(path: Path) -> Script:
    setup: list[str] = []
    check: list[str] = []
    sessions: dict[str, list[str]] = {}
    anomalies: frozenset[str] = frozenset()
    into = setup
    for line in filter(None, map(str.strip, path.read_text().splitlines())):
        word, _, rest = line.partition(" ")
        match word:
            case "setup" | "check":
                into = setup if word == "setup" else check
            case "session":
                into = sessions.setdefault(rest, [])
            case "anomaly":
                anomalies = frozenset(level.strip() for level in rest.split(","))
                assert anomalies <= set(LEVELS), path
            case "#":
                continue
            case _:
                into.append(line)
    return Script(path.stem, tuple(setup), {n: tuple(s) for n, s in sessions.items()}, "".join(check), anomalies)


def interleavings(lengths: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """All orders of the sessions' steps, each a tuple of session names.

    >>> list(interleavings({"a": 1, "b": 2}))
    [('a', 'b', 'b'), ('b', 'a', 'b'), ('b', 'b', 'a')]
    """
    if not any(lengths.values()):
        yield ()
    for name, left in lengths.items():
        if left:
            for rest in interleavings({**lengths, name: left - 1}):
                yield (name, *rest)
