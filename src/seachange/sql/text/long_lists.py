"""Long lists of constants or parameters, taken out of a statement's text before it is parsed.

A list `(1, 2, ..., n)` is replaced by `($k)`, whose value is a list; rows `(1, 'a'), (2, 'b'), ...` by `($k, $k+1)`,
each of which has the values of one column. So the parser, and all that follows, sees one node for a list of any length.

>>> taken = take_lists("select " + str(tuple(range(32))) + " + $1")
>>> taken.text, taken.lists[0].values[:3]
('select ($2) + $1', [0, 1, 2])

**Invariant:** no list is taken out of a string, a quoted name or a comment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from seachange.sql.text.placeholders import COMMENT, OPAQUE, comment_end, highest_parameter
from seachange.values.digits import count_digits
from seachange.values.types import BIGINT, Kind, SqlType

# Shorter ones are parsed as they are.
ITEMS_MIN: Final = 32
ROWS_MIN: Final = 16
# A script with more is split into its statements as it is.
_LISTS_MAX: Final = 1_000
# The protocol has no more.
_PARAMETERS_MAX: Final = 65_535

_ITEM = r"""
    (?: \$[0-9]++ | [+-]?[0-9]++(?:\.[0-9]++)? | '(?:[^']|'')*+' | (?:null|true|false|default)\b )
    (?: ::[a-z_][a-z0-9_\ ]*+(?:\([0-9]++(?:,[0-9]++)?\))? )?
"""
_ROW = rf"\(\s*+{_ITEM}(?:\s*+,\s*+{_ITEM})*+\s*+\)"
_LISTS = re.compile(
    rf"""{OPAQUE} {COMMENT}
    | (?P<rows> {_ROW}(?:\s*+,\s*+{_ROW}){{{ROWS_MIN - 1},}}+ )
    | (?P<list> \(\s*+{_ITEM}(?:\s*+,\s*+{_ITEM}){{{ITEMS_MIN - 1},}}+\s*+\) )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_VALUES = re.compile(r"\bvalues(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*\Z", re.IGNORECASE)
# Characters before a row in which VALUES is looked for: a longer comment is rare.
_BEFORE_ROW: Final = 256
_ITEMS = re.compile(
    r"""(\()?\s*+
    ( \$[0-9]++ | [+-]?[0-9]++(?:\.[0-9]++)? | '(?:[^']|'')*+' | (?:null|true|false|default)\b )
    (::[a-z_][a-z0-9_\ ]*+(?:\([0-9]++(?:,[0-9]++)?\))?)?""",
    re.VERBOSE | re.IGNORECASE,
)
_INTEGER: Final = SqlType(Kind.INTEGER)
_BOOLEAN: Final = SqlType(Kind.BOOLEAN)
_INTEGER_MAX: Final = 2**31 - 1
_BIGINT_MAX: Final = 2**63 - 1
_WORDS: Final = {"null": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class ListShape:
    """What a plan depends on: `number` is that of the parameter in the list's place, `kind` the class of its constants
    (None: it is of parameters), `type` their type, None if their place decides it. `is_column`: it is one of the
    columns of rows."""

    number: int
    kind: type | None
    type: SqlType | None
    digits: tuple[int, int] | None = None
    is_column: bool = False


@dataclass(frozen=True, slots=True)
class LongList:
    """Constants (`values`) or the numbers of parameters (`numbers`)."""

    shape: ListShape
    values: Sequence[Any] = ()
    numbers: Sequence[int] = ()

    def read(self, values: Sequence[Any]) -> list[Any]:
        """What it contains with these values of the text's own parameters."""
        return [values[number - 1] for number in self.numbers] if self.shape.kind is None else list(self.values)


@dataclass(frozen=True, slots=True)
class TakenLists:
    """The numbers of the text's own parameters are at most `highest`; those of the lists follow."""

    text: str
    highest: int
    lists: tuple[LongList, ...]


class _NotUniform(Exception):
    """The list is parsed as it is."""


def take_lists(text: str) -> TakenLists | None:
    """None if there are no long lists."""
    if text.count(",") < ROWS_MIN - 1:
        return None
    spans = list(_find(text))
    if not spans:
        return None
    highest = highest_parameter(text)
    lists: list[LongList] = []
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        try:
            columns = _read(text[start:end], highest + len(lists))
        except _NotUniform:
            continue
        lists += [column for column, _ in columns if isinstance(column, LongList)]
        pieces += (text[position:start], "(", ", ".join(shown for _, shown in columns), ")")
        position = end
    left = "".join([*pieces, text[position:]])
    is_known = 0 < len(lists) <= _LISTS_MAX and highest <= _PARAMETERS_MAX and not _are_shared(lists, left)
    return TakenLists(left, highest, tuple(lists)) if is_known else None


def _find(text: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    position = 0
    while (match := _LISTS.search(text, position)) is not None:
        position = match.end()
        if match.group("comment") is not None:
            position = comment_end(text, position)
        elif match.group("rows") is not None or (match.group("list") is not None and not _is_row(text, match.start())):
            found.append(match.span())
    return found


def _is_row(text: str, start: int) -> bool:
    """Whether what is in parentheses there is the one row of VALUES, whose items are columns."""
    return _VALUES.search(text, max(0, start - _BEFORE_ROW), start) is not None


def _read(text: str, taken: int) -> list[tuple[LongList | None, str]]:
    """The columns of rows, or the one of a list, with the text in their places. A column that says the same in each row
    stays as it is."""
    items = _ITEMS.findall(text)
    opened = [place for place, (parenthesis, _, _) in enumerate(items) if parenthesis]
    width = opened[1] if len(opened) > 1 else 1
    rows = len(items) // width
    if len(opened) > 1 and opened != list(range(0, len(items), width)):
        raise _NotUniform
    found: list[tuple[LongList | None, str]] = []
    for column in range(width):
        shown = {item[2] for item in items[column::width]}
        written = [item[1] for item in items[column::width]]
        if len(shown) != 1:
            raise _NotUniform
        (cast,) = shown
        if len(opened) > 1 and {text.lower() for text in written} in ({"default"}, {"null"}):
            found.append((None, written[0] + cast))
            continue
        taken += 1
        column_list = _column(written, taken)
        shape = replace(column_list.shape, is_column=len(opened) > 1)
        found.append((replace(column_list, shape=shape), f"${taken}{cast}"))
    if all(column is None for column, _ in found) or not rows:
        raise _NotUniform
    return found


def _column(written: list[str], number: int) -> LongList:
    first = next((text[0] for text in written if text.lower() != "null"), "")
    if first == "$":
        if any(text[0] != "$" for text in written):
            raise _NotUniform
        return LongList(ListShape(number, None, None), numbers=[int(text[1:]) for text in written])
    try:
        if first == "'":
            values: list[Any] = [_string(text) for text in written]
        elif first.isdigit() or first in ("+", "-"):
            values = [_number(text) for text in written]
        else:
            values = [_WORDS[text.lower()] for text in written]
    except (ValueError, KeyError):
        raise _NotUniform from None
    kind = type(next(value for value in values if value is not None))
    if kind is int and any(isinstance(value, Decimal) for value in values):
        kind = Decimal
    digits = _digits(values) if kind is Decimal else None
    return LongList(ListShape(number, kind, _type(kind, values), digits), values)


def _digits(values: Sequence[Any]) -> tuple[int, int]:
    found = [count_digits(Decimal(value)) for value in values if value is not None]
    behind = max(scale for _, scale in found)
    return max(digits - scale for digits, scale in found) + behind, behind


def _type(kind: type, values: Sequence[Any]) -> SqlType | None:
    if kind is not int:
        return _BOOLEAN if kind is bool else None
    highest = max(abs(value) for value in values if value is not None)
    return _INTEGER if highest <= _INTEGER_MAX else BIGINT if highest <= _BIGINT_MAX else None


def _string(text: str) -> str | None:
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    if text.lower() != "null":
        raise _NotUniform
    return None


def _number(text: str) -> int | Decimal | None:
    if "." in text:
        return Decimal(text)
    return None if text[0] in "nN" and text.lower() == "null" else int(text)


def _are_shared(lists: Sequence[LongList], text: str) -> bool:
    """Whether a parameter occurs twice: in two lists, or in a list and elsewhere."""
    listed = [number for each in lists for number in each.numbers or ()]
    if not listed:
        return False
    others = {int(number) for number in re.findall(r"\$([0-9]+)", text)} - {each.shape.number for each in lists}
    return len(set(listed)) != len(listed) or not others.isdisjoint(listed)
