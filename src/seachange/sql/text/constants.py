"""Constants taken out of a statement's text, so that texts that differ only in them share a plan.

>>> take_constants("update t set n = n + -5 where id = 7 and s = 'it''s'")
('update t set n = n + $1 where id = $2 and s = $3', (-5, 7, "it's"))

**Invariant:** a parameter in the place of a constant is not always the same thing: only a plan can tell
(`takes_constants`).
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

# Texts with more are data rather than a statement that is repeated.
_CONSTANTS_MAX = 64
# Comments, escapes, dollar quotes and parameters of the text's own.
_OTHERS = re.compile(r"--|/\*|\\|\$")
# Names in double quotes and strings behind a word stay. A minus belongs to the number behind it if there is nothing to
# subtract from.
_CONSTANT = re.compile(
    r"""
    "(?:[^"]|"")*"
    | [\w&]+'(?:[^']|'')*'
    | '(?P<text>(?:[^']|'')*)'
    | (?:(?<=[=(,+])\s*(?P<minus>-)\s*|(?<![\w.]))(?P<number>[0-9]+(?:\.[0-9]+)?)(?![\w.])
    """,
    re.VERBOSE,
)


def take_constants(text: str) -> tuple[str, tuple[Any, ...]]:
    """The text with numbered parameters in the places of its constants, and their values; without any if there are too
    many, or if they cannot be told from other things."""
    if _OTHERS.search(text) is not None:
        return text, ()
    found: list[Any] = []

    def replace(match: re.Match[str]) -> str:
        string, minus, number = match.groups()
        if string is None and number is None:
            return match.group()
        found.append(string.replace("''", "'") if string is not None else _read_number(number, minus is not None))
        return f" ${len(found)}" if minus is not None else f"${len(found)}"

    pattern = _CONSTANT.sub(replace, text)
    return (pattern, tuple(found)) if 0 < len(found) <= _CONSTANTS_MAX else (text, ())


def _read_number(text: str, is_negative: bool) -> int | Decimal:
    if text.isdigit():
        return -int(text) if is_negative else int(text)
    number = Decimal(text)
    return number.copy_negate() if is_negative and number else number
