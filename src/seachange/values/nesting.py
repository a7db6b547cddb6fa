"""Nesting depth of the characters of an SQL text, in parentheses and quotes."""

from __future__ import annotations

from collections.abc import Iterator


def depths(text: str) -> Iterator[tuple[int, str, int]]:
    """Positions, characters, and the depth after each of them.

    >>> [depth for _, _, depth in depths("(a,',')b")]
    [1, 1, 1, 2, 2, 1, 0, 0]
    """
    depth, quote = 0, ""
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "()":
            depth += 1 if character == "(" else -1
        yield at, character, depth + bool(quote)
