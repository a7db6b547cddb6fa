"""Positions of errors in the text that the client has sent, as PostgreSQL reports them.

The binder and the parsers say where; for other errors the name, word or constant of the message is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from seachange import errors
from seachange.sql.text.placeholders import original_offset
from seachange.sql.text.tokens import RawStatement, split_script

_CONSTANTS: Final = (TokenType.STRING, TokenType.NUMBER)
# What may be between an operand and its operator.
_CLOSING: Final = frozenset({")", "]"})
_OPENING: Final = frozenset({"("})
# By the beginning of the message, what in it names the place.
_NAMES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r'syntax error: (?:syntax error )?at or near "(?P<word>.+)"',
        r'column "(?P<name>[^"]+)" (?:does not exist|must appear|of relation|specified more)',
        r"column (?P<name>\S+) does not exist",
        r'column reference "(?P<name>[^"]+)" is ambiguous',
        r'relation "(?P<name>[^"]+)" does not exist',
        r'missing FROM-clause entry for table "(?P<name>[^"]+)"',
        r"function (?P<name>[\w.]+)\(? ?.*does not exist",
        r'type "(?P<name>[^"]+)" does not exist',
        r'invalid input syntax for type [^:]+: "(?P<constant>.*)"',
        r'(?:date/time field )?value .*out of range.*"(?P<constant>[^" ]+)"+$',
        r'invalid input value for enum [^:]+: "(?P<constant>.*)"',
    )
)
_AT_END: Final = "at end of input"
# PostgreSQL reads expressions in changes of a table from a tree, which has no positions.
_ALTER: Final = "alter"
# Definitions in which PostgreSQL reports no place for names of relations and columns.
_ONLY_EXPRESSIONS: Final = frozenset({"alter", "drop", "truncate", "comment", "grant", "revoke", "reindex", "vacuum"})


@dataclass(frozen=True, slots=True)
class StatementOrigin:
    """A statement of a text: its number there, and the characters before the text that the client has sent."""

    script: str
    number: int | None = None
    skipped: int = 0

    def __enter__(self) -> None:
        """Errors of the block get their positions."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, errors.Error):
            self.locate(error)

    def locate(self, error: errors.Error) -> None:
        """Gives an error its position."""
        if error.position is None:
            found = find_position(error, self.script, self.number)
            error.position = found + self.skipped if found is not None else None
            error.statement = " " * self.skipped + self.script


def find_position(error: errors.Error, script: str, number: int | None = None) -> int | None:
    """The character, from 1; None if it is not known. `number` is that of the statement in the script."""
    try:
        statements = split_script(script)
    except errors.Error:
        return None
    if not statements:
        return None
    if error.place is not None and error.place.part is None:
        found = _at_place(error.place, [token for raw in statements for token in raw.tokens])
    else:
        among = statements if number is None else statements[number : number + 1]
        found = next((at for raw in among if (at := _in_statement(error, raw)) is not None), None)
    if found is None and _AT_END in str(error):
        return len(script.rstrip()) + 1
    return None if found is None else original_offset(script, found) + 1


def _at_place(place: errors.ErrorPlace, tokens: Sequence[Token]) -> int | None:
    if not place.side:
        return place.offset
    if place.side > 0:
        found = next((t for t in tokens if t.start >= place.offset and t.text not in _CLOSING), None)
        if found is None or found.token_type is not TokenType.ALIAS:
            return found.start if found is not None else None
        return next((t.start for t in reversed(tokens) if t.end < place.offset and t.text.lower() == "cast"), None)
    return next((t.start for t in reversed(tokens) if t.end < place.offset and t.text not in _OPENING), None)


def _in_statement(error: errors.Error, raw: RawStatement) -> int | None:
    command = raw.tokens[0].text.lower()
    if error.place is not None and error.place.part is not None and command != _ALTER:
        # A part of a definition, which was parsed by itself.
        base = raw.text.find(error.place.part)
        first = raw.tokens[0].start
        if base >= 0:
            return _at_place(errors.ErrorPlace(first + base + error.place.offset, error.place.side), raw.tokens)
    match = next((found for pattern in _NAMES if (found := pattern.match(str(error)))), None)
    if match is None:
        return None
    kind, wanted = next((kind, text) for kind, text in match.groupdict().items() if text is not None)
    if kind == "constant":
        return next((t.start for t in raw.tokens if t.token_type in _CONSTANTS and t.text == wanted), None)
    if kind == "word":
        return _last(raw.tokens, wanted)
    if command in _ONLY_EXPRESSIONS and not str(error).startswith("type"):
        return None
    return _first_name(raw.tokens, wanted)


def _last(tokens: Sequence[Token], wanted: str) -> int | None:
    """The parser fails behind what it has read."""
    found = [token.start for token in tokens if token.text.lower() == wanted.lower()]
    return found[-1] if found else None


def _first_name(tokens: Sequence[Token], wanted: str) -> int | None:
    parts = [part.strip('"') for part in wanted.split(".")]
    for at in range(len(tokens)):
        named = tokens[at : at + 2 * len(parts) - 1 : 2]
        if len(named) == len(parts) and all(map(_means, named, parts)):
            return _qualified_start(tokens, at)
    return None


def _means(token: Token, name: str) -> bool:
    if token.token_type in _CONSTANTS:
        return False
    return (token.text if token.token_type is TokenType.IDENTIFIER else token.text.lower()) == name


def _qualified_start(tokens: Sequence[Token], at: int) -> int:
    while at >= 2 and tokens[at - 1].text == ".":
        at -= 2
    return tokens[at].start
