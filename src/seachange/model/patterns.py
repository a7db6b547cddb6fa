"""to_char, to_date and to_timestamp: values by PostgreSQL's patterns, the common ones.

>>> import datetime as dt
>>> moment = dt.datetime(2024, 2, 7, 21, 5, 3, 123456)
>>> write_moment(moment, 'Dy, DD Mon YYYY HH12:MI:SS.MS AM "quoted"')
'Wed, 07 Feb 2024 09:05:03.123 PM quoted'
>>> write_moment(moment, "Month|FMMonth|FMDD|DDth|Q|DDD|IW|J")
'February |February|7|07th|1|038|06|2460348'
>>> read_moment("05 Dec 2000 11:12 PM", "DD Mon YYYY HH12:MI AM")
datetime.datetime(2000, 12, 5, 23, 12)
>>> write_number("1234.5", "FM9,999.00"), write_number("-12", "999"), write_number("125.8", "999D99")
('1,234.50', ' -12', ' 125.80')
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from seachange import errors

_MONTH_NAMES: Final = "January February March April May June July August September October November December"
_MONTHS: Final = tuple(_MONTH_NAMES.split())
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Longest first: YYYY before YY.
_PATTERNS: Final = """
    HH24 HH12 YYYY IYYY MONTH Month month Y,YYY SSSSS DDD DAY Day day MON Mon mon DY Dy dy A.M. P.M. a.m. p.m. AM PM
    am pm YYY YY HH MI SS MS US MM DD WW IW ID CC TZ OF Q W D J Y
"""
_ANY_PATTERN: Final = "|".join(map(re.escape, _PATTERNS.split()))
_TOKEN: Final = re.compile(
    rf'"(?P<quoted>[^"]*)"|(?P<fill>FM)?(?P<pattern>{_ANY_PATTERN})(?P<th>th|TH)?|(?P<fm>FM)|(?P<other>.)',
    re.DOTALL,
)
_EPOCH_DAY: Final = 1721426
_NOON: Final = 12


_WORDS: Final = re.compile(r"[^\W_]+")


def capitalise(text: str) -> str:
    """
    >>> capitalise("hello wORLD foo_bar")
    'Hello World Foo_Bar'
    """
    return _WORDS.sub(lambda word: word.group()[0].upper() + word.group()[1:].lower(), text)


def _ordinal(number: int) -> str:
    if 10 <= number % 100 <= 20:
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _number(moment: dt.datetime, pattern: str) -> tuple[int, int] | None:
    """The value of a pattern that is a number, and how many digits it has."""
    iso_year, iso_week, iso_day = moment.isocalendar()
    hour12 = moment.hour % _NOON or _NOON
    of_year = moment.timetuple().tm_yday
    values: dict[str, tuple[int, int]] = {
        "YYYY": (moment.year, 4),
        "YYY": (moment.year % 1000, 3),
        "YY": (moment.year % 100, 2),
        "Y": (moment.year % 10, 1),
        "IYYY": (iso_year, 4),
        "MM": (moment.month, 2),
        "DD": (moment.day, 2),
        "DDD": (of_year, 3),
        "D": (iso_day % 7 + 1, 1),
        "ID": (iso_day, 1),
        "HH24": (moment.hour, 2),
        "HH12": (hour12, 2),
        "HH": (hour12, 2),
        "MI": (moment.minute, 2),
        "SS": (moment.second, 2),
        "SSSSS": (moment.hour * 3600 + moment.minute * 60 + moment.second, 5),
        "MS": (moment.microsecond // 1000, 3),
        "US": (moment.microsecond, 6),
        "Q": ((moment.month + 2) // 3, 1),
        "WW": ((of_year - 1) // 7 + 1, 2),
        "W": ((moment.day - 1) // 7 + 1, 1),
        "IW": (iso_week, 2),
        "J": (moment.toordinal() + _EPOCH_DAY - 1, 1),
        "CC": ((moment.year + 99) // 100, 2),
    }
    return values.get(pattern)


def _word(moment: dt.datetime, pattern: str) -> tuple[str, int]:
    """The text of a pattern that is a word, and how wide it is padded."""
    folded = pattern.lower()
    if folded.replace(".", "") in ("am", "pm"):
        half = "pm" if moment.hour >= _NOON else "am"
        half = f"{half[0]}.{half[1]}." if "." in pattern else half
        return (half.upper() if pattern.isupper() else half), 0
    if folded in ("month", "mon"):
        name = _MONTHS[moment.month - 1]
    else:
        name = _DAYS[moment.weekday()]
    name, width = (name[:3], 0) if folded in ("mon", "dy") else (name, 9)
    if pattern.isupper():
        return name.upper(), width
    return (name.lower() if pattern.islower() else name), width


def write_moment(moment: dt.datetime, pattern: str) -> str:
    parts: list[str] = []
    for token in _TOKEN.finditer(pattern):
        found = token["pattern"]
        if found is None:
            parts.append(token["quoted"] if token["quoted"] is not None else token["other"] or "")
        elif found in ("TZ", "OF"):
            parts.append("UTC" if found == "TZ" else "+00")
        elif found == "Y,YYY":
            parts.append(f"{moment.year:,}")
        elif (number := _number(moment, found)) is not None:
            value, digits = number
            parts.append(str(value) if token["fill"] else str(value).zfill(digits))
            if token["th"]:
                suffix = _ordinal(value)
                parts.append(suffix.upper() if token["th"].isupper() else suffix)
        else:
            word, width = _word(moment, found)
            parts.append(word if token["fill"] else word.ljust(width))
    return "".join(parts)


_READERS: Final[dict[str, str]] = {
    "YYYY": r"[+-]?\d{1,4}", "YY": r"\d{1,2}", "MM": r"\d{1,2}", "DD": r"\d{1,2}", "DDD": r"\d{1,3}",
    "HH24": r"\d{1,2}", "HH12": r"\d{1,2}", "HH": r"\d{1,2}",
    "MI": r"\d{1,2}", "SS": r"\d{1,2}", "MS": r"\d{1,3}", "US": r"\d{1,6}",
    "MON": r"[A-Za-z]{3}", "MONTH": r"[A-Za-z]+", "DY": r"[A-Za-z]{3}", "DAY": r"[A-Za-z]+", "AM": r"[AaPp]\.?[Mm]\.?",
    "PM": r"[AaPp]\.?[Mm]\.?", "J": r"\d+",
}  # fmt: skip


def read_moment(text: str, pattern: str) -> dt.datetime:
    values: dict[str, str] = {}
    at = 0
    for token in _TOKEN.finditer(pattern):
        name = (token["pattern"] or "").upper().replace(".", "")
        if not name:
            if token["fm"] is None:
                at = _skip(text, at, token["quoted"] or token["other"] or "")
            continue
        reader = _READERS.get(name)
        if reader is None:
            raise errors.FeatureNotSupported(feature=f"{token['pattern']} in to_date or to_timestamp", instead="")
        while at < len(text) and text[at].isspace():
            at += 1
        # Digits that are followed by others are as many as the pattern has.
        width = len(name) if name in ("YYYY", "MM", "DD", "MI", "SS", "DDD") else 2 if name.startswith("HH") else 0
        match = re.compile(reader).match(text, at, at + width if width else len(text))
        if match is None:
            raise errors.InvalidDatetimeFormat(type="date", value=text)
        values[name] = match.group()
        at = match.end()
    return _moment(values, text)


def _skip(text: str, at: int, separator: str) -> int:
    for character in separator:
        if character.isspace() or not character.isalnum():
            while at < len(text) and not text[at].isalnum() and text[at] not in "+-":
                at += 1
            if at < len(text) and character in "+-" and text[at] == character:
                at += 1
        else:
            at += 1
    return at


def _moment(values: dict[str, str], text: str) -> dt.datetime:
    year = int(values.get("YYYY", values.get("YY", "1")))
    if "YYYY" not in values and "YY" in values:
        year += 2000 if year < 70 else 1900
    month = int(values.get("MM", "1"))
    name = values.get("MON") or values.get("MONTH")
    hour = int(values.get("HH24") or values.get("HH12") or values.get("HH") or "0")
    half = (values.get("AM") or values.get("PM") or "").lower().replace(".", "")
    micros = int(values.get("US", "0")) + int(values.get("MS", "0").ljust(3, "0")) * 1000
    try:
        if name is not None:
            month = [m[:3].lower() for m in _MONTHS].index(name[:3].lower()) + 1
        if half:
            hour = hour % _NOON + (_NOON if half == "pm" else 0)
        day = dt.datetime(year, month, int(values.get("DD", "1")))
        if "DDD" in values:
            day = dt.datetime(year, 1, 1) + dt.timedelta(days=int(values["DDD"]) - 1)
        return day.replace(
            hour=hour, minute=int(values.get("MI", "0")), second=int(values.get("SS", "0")), microsecond=micros
        )
    except ValueError:
        raise errors.DatetimeFieldOverflow(type="date", value=text) from None


_NUMBER_PATTERN: Final = re.compile(r"(FM)?([90,.GD]*)(S|MI|PR)?", re.IGNORECASE)


def write_number(number: str, pattern: str) -> str:
    """Digits, groups, a point, and a sign before or behind."""
    if pattern.upper() in ("RN", "FMRN"):
        return _roman(int(Decimal(number))) if pattern.upper() == "FMRN" else _roman(int(Decimal(number))).rjust(15)
    leading = pattern[:1].upper() == "S"
    match = _NUMBER_PATTERN.fullmatch(pattern[1:] if leading else pattern)
    if match is None:
        raise errors.FeatureNotSupported(feature=f'the pattern "{pattern}" of a number', instead="")
    fill, digits, sign = bool(match[1]), match[2].upper().replace("G", ",").replace("D", "."), (match[3] or "").upper()
    whole_pattern, point, fraction_pattern = digits.partition(".")
    value = Decimal(number)
    scale = len(fraction_pattern)
    rounded = abs(value).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP)
    whole, _, fraction = f"{rounded:f}".partition(".")
    shown = _group(whole, whole_pattern)
    if shown is None:
        shown, fraction = "#" * len(whole_pattern), "#" * scale
    if fill and fraction_pattern and "#" not in fraction:
        kept = fraction_pattern.rfind("0") + 1
        fraction = fraction[:kept] + fraction[kept:].rstrip("0")
    text = shown + point + fraction
    return _signed(text, value < 0 and any(c not in "0.," for c in text), sign, leading, fill)


def _group(whole: str, pattern: str) -> str | None:
    """The digits of a whole number at the places of a pattern; None if they are too many."""
    places = pattern.replace(",", "")
    digits = "" if whole == "0" and "0" not in places and places else whole
    if len(digits) > len(places):
        return None
    first_zero = places.find("0")
    padded = digits.rjust(len(places))
    if first_zero >= 0:
        padded = padded[:first_zero] + padded[first_zero:].replace(" ", "0")
        lead = len(padded) - len(padded.lstrip())
        padded = padded[:lead] + padded[lead:].replace(" ", "0")
    out, at = [], 0
    for character in pattern:
        if character == ",":
            out.append("," if at and padded[at - 1] != " " else " ")
        else:
            out.append(padded[at])
            at += 1
    return "".join(out)


def _signed(text: str, negative: bool, sign: str, leading: bool, fill: bool) -> str:
    if sign in ("S", "MI"):
        text += "-" if negative else "+" if sign == "S" else "" if fill else " "
    elif sign == "PR":
        text = f"<{text.strip()}>" if negative else f" {text} "
    else:
        blank = len(text) - len(text.lstrip(" "))
        mark = "-" if negative else "+" if leading else " "
        text = " " * blank + mark + text[blank:]
    return text.strip() if fill else text


_ROMAN: Final = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
    (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip


def _roman(number: int) -> str:
    if not 0 < number < 4000:
        return "#" * 15
    out = []
    for value, letters in _ROMAN:
        while number >= value:
            out.append(letters)
            number -= value
    return "".join(out)
