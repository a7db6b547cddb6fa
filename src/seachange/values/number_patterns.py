"""to_char of numbers and to_number: by PostgreSQL's patterns.

>>> write_number("1234.5", "FM9,999.00"), write_number("-12", "999"), write_number("125.8", "999D99")
('1,234.50', ' -12', ' 125.80')
>>> write_number("-485", "9SG99"), write_number("482", "999th"), write_number("485", '"No."999')
('4-85', ' 482nd', 'No. 485')
>>> read_number("12,454.8-", "99G999D9S"), read_number("<7>", "9PR")
(Decimal('-12454.8'), Decimal('-7'))
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Final

from seachange import errors

_TOKEN: Final = re.compile(
    r'"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<word>FM|EEEE|MI|PL|SG|PR|TH|th|RN|[90.,DGSLV])|(?P<other>.)',
    re.DOTALL | re.IGNORECASE,
)
# Numbers have up to 38 digits; those of Python keep 28.
_WIDE: Final = Context(prec=100)
_SIGNS: Final = frozenset({"S", "MI", "PL", "SG", "PR"})
_ROMAN_WIDTH: Final = 15
PATTERN_CHARS_MAX: Final = 10_000
# Of an ordinal number.
_SUFFIX_CHARS: Final = 2


@dataclass(frozen=True, slots=True)
class _Piece:
    """A word of the pattern, in capitals; or, without one, literal text."""

    word: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Pattern:
    pieces: tuple[_Piece, ...]
    fill: bool
    whole: int
    fraction: int
    shift: int

    def has(self, word: str) -> bool:
        return any(piece.word == word for piece in self.pieces)


def check_pattern(pattern: str) -> None:
    """Reading a pattern cannot be interrupted, and takes long for one that is generated."""
    if len(pattern) > PATTERN_CHARS_MAX:
        raise errors.ProgramLimitExceeded(detail=f"a pattern of more than {PATTERN_CHARS_MAX} characters")


def _read_pattern(pattern: str) -> _Pattern:
    check_pattern(pattern)
    pieces: list[_Piece] = []
    for token in _TOKEN.finditer(pattern):
        word = (token["word"] or "").upper()
        word = {"D": ".", "G": ","}.get(word, word)
        quoted = token["quoted"]
        text = token.group() if word == "TH" else quoted if quoted is not None else token["other"] or ""
        pieces.append(_Piece(word, re.sub(r"\\(.)", r"\1", text)))
    words = [piece.word for piece in pieces]
    point = words.index(".") if "." in words else len(words)
    digits = [word in ("0", "9") for word in words]
    shift = sum(digits[words.index("V") :]) if "V" in words else 0
    return _Pattern(
        tuple(piece for piece in pieces if piece.word != "FM"),
        "FM" in words,
        sum(digits[:point]),
        sum(digits[point:]),
        shift,
    )


def write_number(number: str, pattern: str) -> str:
    value = Decimal(number)
    if not value.is_finite():
        raise errors.FeatureNotSupported(feature=f"to_char of {number}", instead="Use a cast to text.")
    parsed = _read_pattern(pattern)
    if parsed.has("RN"):
        roman = _roman(value)
        return roman if parsed.fill else roman.rjust(_ROMAN_WIDTH)
    if parsed.has("EEEE"):
        shown = f"{value:.{parsed.fraction}e}"
        mantissa, _, exponent = shown.partition("e")
        return ("" if value < 0 else " ") + f"{mantissa}e{int(exponent):+03d}"
    return _write(value.scaleb(parsed.shift, _WIDE), parsed)


def _write(value: Decimal, pattern: _Pattern) -> str:
    rounded = value.quantize(Decimal(1).scaleb(-pattern.fraction), ROUND_HALF_UP, _WIDE)
    whole, _, fraction = f"{rounded.copy_abs():f}".partition(".")
    digits = "" if whole == "0" and (pattern.fraction or pattern.has(".")) else whole
    if len(digits) > pattern.whole:
        digits, fraction = "#" * pattern.whole, "#" * pattern.fraction
    places = _fill_zeros(digits.rjust(pattern.whole), pattern)
    if pattern.fill:
        fraction = _cut_zeros(fraction, pattern)
    return _put(places, fraction, rounded < 0, pattern)


def _fill_zeros(places: str, pattern: _Pattern) -> str:
    """From the first 0 of the pattern on, missing digits are zeros."""
    words = [piece.word for piece in pattern.pieces if piece.word in ("0", "9")][: pattern.whole]
    first = words.index("0") if "0" in words else len(words)
    return places[:first] + places[first:].replace(" ", "0")


def _cut_zeros(fraction: str, pattern: _Pattern) -> str:
    words = [piece.word for piece in pattern.pieces if piece.word in ("0", "9")][pattern.whole :]
    kept = len(words) - words[::-1].index("0") if "0" in words else 0
    return fraction[:kept] + fraction[kept:].rstrip("0")


class _Out:
    """The text so far; the sign precedes the first digit unless the pattern has a place for it."""

    def __init__(self, pattern: _Pattern, negative: bool) -> None:
        self.parts: list[str] = []
        self.blank = "" if pattern.fill else " "
        self.negative = negative
        leading = next((piece.word for piece in pattern.pieces if piece.word in {"S", "0", "9"}), "") == "S"
        floating = not any(piece.word in _SIGNS - {"PL"} for piece in pattern.pieces)
        self.pending = ("-" if negative else "+") if leading else "-" if negative else self.blank
        if pattern.has("PR"):
            self.pending = "<" if negative else self.blank
        elif not leading and not floating:
            self.pending = ""
        self.leading = leading
        self.started = False
        self.fractional = pattern.has(".")

    def start(self) -> None:
        if not self.started:
            self.parts.append(self.pending)
            self.started = True


def _put(places: str, fraction: str, negative: bool, pattern: _Pattern) -> str:
    out = _Out(pattern, negative)
    at, behind, wanted = 0, 0, False
    for piece in pattern.pieces:
        word = piece.word
        if word in ("0", "9") and not wanted:
            _put_digit(out, places[at])
            at += 1
        elif word in ("0", "9"):
            out.parts.append(fraction[behind : behind + 1])
            behind += 1
        elif word == ".":
            wanted = True
            out.start()
            # The decimal point stays even if no fraction is left.
            out.parts.append(".")
        elif word == ",":
            out.parts.append("," if out.started else out.blank)
        elif word not in ("V", "EEEE"):
            _put_mark(out, piece, places)
    if pattern.has("PR"):
        out.parts.append(">" if negative else out.blank)
    return "".join(out.parts)


def _put_digit(out: _Out, digit: str) -> None:
    if digit == " " and not out.started:
        out.parts.append(out.blank)
        return
    out.start()
    out.parts.append(digit)


def _put_mark(out: _Out, piece: _Piece, places: str) -> None:
    match piece.word:
        case "S":
            if not out.leading:
                out.parts.append("-" if out.negative else "+")
        case "MI":
            out.parts.append("-" if out.negative else out.blank)
        case "PL":
            out.parts.append(out.blank if out.negative else "+")
        case "SG":
            out.parts.append("-" if out.negative else "+")
        case "L":
            # The locale has no currency symbol.
            out.parts.append(" ")
        case "TH":
            if not out.negative and not out.fractional and places.strip().isdigit():
                suffix = ordinal(int(places))
                out.parts.append(suffix.upper() if piece.text.isupper() else suffix)
        case "":
            out.parts.append(piece.text)
        case _:
            pass


def ordinal(number: int) -> str:
    """
    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 22)]
    ['st', 'nd', 'rd', 'th', 'th', 'nd']
    """
    if 10 <= number % 100 <= 20:
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def read_number(text: str, pattern: str) -> Decimal:
    """Characters other than digits, decimal point and sign are skipped."""
    parsed = _read_pattern(pattern)
    if parsed.has("RN") or parsed.has("EEEE"):
        raise errors.FeatureNotSupported(feature=f'the pattern "{pattern}" in to_number', instead="")
    negative = "-" in text or (parsed.has("PR") and "<" in text)
    found: list[str] = []
    at = 0
    for piece in parsed.pieces:
        while at < len(text) and text[at] in " +-<":
            at += 1
        if at >= len(text):
            break
        here = text[at]
        if piece.word in ("0", "9"):
            # A digit position may be unused.
            if here.isdigit() and here.isascii():
                found.append(here)
                at += 1
        elif piece.word == ".":
            found.append(".")
            at += here == "."
        elif piece.word == ",":
            at += here == ","
        elif piece.word not in _SIGNS:
            at += _passed(text[at : at + _SUFFIX_CHARS], piece)
    try:
        value = Decimal("".join(found) or "?").scaleb(-parsed.shift, _WIDE)
    except InvalidOperation:
        raise errors.InvalidTextRepresentation(type="numeric", value=text) from None
    return _WIDE.minus(value) if negative else value


def _passed(rest: str, piece: _Piece) -> int:
    if piece.word == "TH":
        return len(re.match(r"[A-Za-z]{0,2}", rest).group())  # type: ignore[union-attr]
    if piece.word == "L":
        return 0 if rest[:1].isdigit() else 1
    return len(piece.text.strip())


_ROMAN: Final = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
    (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip


def roman(number: int) -> str:
    out = []
    for value, letters in _ROMAN:
        while number >= value:
            out.append(letters)
            number -= value
    return "".join(out)


def _roman(value: Decimal) -> str:
    number = int(value.to_integral_value(ROUND_HALF_UP))
    return roman(number) if 0 < number < 4000 else "#" * _ROMAN_WIDTH
