"""unistr, parse_ident, normalize: escapes, identifiers and Unicode normal forms."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from seachange import errors

_ESCAPE: Final = re.compile(
    r"\\(?:\\|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|\+([0-9A-Fa-f]{6})|([0-9A-Fa-f]{4})|(.?))", re.DOTALL
)
_PART: Final = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\W\d][\w$]*))\s*')


def resolve_escapes(text: str) -> str:
    """unistr.

    >>> resolve_escapes(r"d\\0061t\\+000061")
    'data'
    """

    def resolved(match: re.Match[str]) -> str:
        if match.group() == "\\\\":
            return "\\"
        code = next((part for part in match.groups()[:4] if part), None)
        if code is None or not 0 < int(code, 16) < 0x110000 or 0xD800 <= int(code, 16) < 0xE000:
            raise errors.SyntaxProblem(detail="invalid Unicode escape")
        return chr(int(code, 16))

    return _ESCAPE.sub(resolved, text)


def parse_name(text: str) -> list[str]:
    """parse_ident.

    >>> parse_name('"SomeSchema".someTable')
    ['SomeSchema', 'sometable']
    """
    parts, at = [], 0
    while True:
        match = _PART.match(text, at)
        if match is None:
            raise errors.InvalidParameterValue(detail=f"string is not a valid identifier: {text}")
        quoted, plain = match.groups()
        parts.append(plain.lower() if quoted is None else quoted.replace('""', '"'))
        at = match.end()
        if at == len(text):
            return parts
        if text[at] != ".":
            raise errors.InvalidParameterValue(detail=f"string is not a valid identifier: {text}")
        at += 1


# Sorting combining marks takes time quadratic in their number and blocks all threads; Unicode's own limit for streams
# is 30.
_MARKS_MAX = 1_000


def normalize(text: str, form: str) -> str:
    """
    >>> len(normalize("a\\u0308", "NFC"))
    1
    """
    if form not in ("NFC", "NFD", "NFKC", "NFKD"):
        raise errors.InvalidParameterValue(detail=f"invalid normalization form: {form}")
    if len(text) > _MARKS_MAX and _longest_marks(text) > _MARKS_MAX:
        raise errors.ProgramLimitExceeded(detail=f"a character with more than {_MARKS_MAX} combining marks")
    return unicodedata.normalize(form, text)  # type: ignore[arg-type]


def _longest_marks(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if unicodedata.combining(character) else 0
        longest = max(longest, run)
    return longest


def drop_parentheses(text: str) -> str:
    """
    >>> drop_parentheses("(code > 5)"), drop_parentheses("(a) or (b)"), drop_parentheses("(a = ')')")
    ('code > 5', '(a) or (b)', "a = ')'")
    """
    for at, _, depth in depths(text):
        if not depth and at < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") else text


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
