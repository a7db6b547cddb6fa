"""Names that PostgreSQL would give: `t_pkey`, `t_a_b_key`, `t_a_idx`, with a number where one is taken."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import count

# PostgreSQL's NAMEDATALEN - 1.
NAME_BYTES_MAX = 63


def choose_name(table: str, columns: Sequence[str], label: str, taken: Container[str]) -> str:
    """
    >>> choose_name("t", ["a", "b"], "key", {"t_a_b_key"})
    't_a_b_key1'
    """
    for attempt in count():
        suffix = f"{label}{attempt or ''}"
        name = _join(table, "_".join(columns), suffix)
        if name not in taken:
            return name
    raise AssertionError("unreachable")


def _join(first: str, second: str, suffix: str) -> str:
    """Shortens the longer of the two parts until the whole fits."""
    room = NAME_BYTES_MAX - len(suffix.encode()) - (2 if second else 1)
    while len(first.encode()) + len(second.encode()) > room:
        if len(first) > len(second):
            first = first[:-1]
        else:
            second = second[:-1]
    return "_".join(part for part in (first, second, suffix) if part)
