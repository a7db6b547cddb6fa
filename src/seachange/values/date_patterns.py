"""to_char, to_date and to_timestamp: dates and times by PostgreSQL's patterns, the common ones.

>>> import datetime as dt
>>> moment = dt.datetime(2024, 2, 7, 21, 5, 3, 123456)
>>> write_moment(moment, 'Dy, DD Mon YYYY HH12:MI:SS.MS AM "quoted"')
'Wed, 07 Feb 2024 09:05:03.123 PM quoted'
>>> write_moment(moment, "Month|FMMonth|FMDD|DDth|Q|DDD|IW|J")
'February |February|7|07th|1|038|06|2460348'
>>> read_moment("05 Dec 2000 11:12 PM", "DD Mon YYYY HH12:MI AM")
datetime.datetime(2000, 12, 5, 23, 12)
>>> write_interval("15 months 2 days 93784000000 microseconds", "YYYY MM DD HH24:MI:SS HH12 US")
'0001 03 02 26:03:04 02 000000'
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

from seachange import errors
from seachange.values.interval import Interval, read_canonical
from seachange.values.number_patterns import check_pattern, ordinal, roman

_MONTH_NAMES: Final = "January February March April May June July August September October November December"
_MONTHS: Final = tuple(_MONTH_NAMES.split())
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Longest first: YYYY before YY.
_PATTERNS: Final = """
    HH24 HH12 YYYY IYYY MONTH Month month Y,YYY SSSSS SSSS A.D. B.C. a.d. b.c. IDDD DDD DAY Day day MON Mon mon DY Dy
    dy A.M. P.M. a.m. p.m. FF1 FF2 FF3 FF4 FF5 FF6 AM PM am pm AD BC ad bc YYY IYY YY IY HH MI SS MS US MM DD WW IW ID
    CC TZH TZM TZ tz OF RM rm Q W D J Y I
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
        "IYY": (iso_year % 1000, 3),
        "IY": (iso_year % 100, 2),
        "I": (iso_year % 10, 1),
        "IDDD": ((iso_week - 1) * 7 + iso_day, 3),
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
        "SSSS": (moment.hour * 3600 + moment.minute * 60 + moment.second, 1),
        "SSSSS": (moment.hour * 3600 + moment.minute * 60 + moment.second, 1),
        "MS": (moment.microsecond // 1000, 3),
        "US": (moment.microsecond, 6),
        "Q": ((moment.month + 2) // 3, 1),
        "WW": ((of_year - 1) // 7 + 1, 2),
        "W": ((moment.day - 1) // 7 + 1, 1),
        "IW": (iso_week, 2),
        "J": (moment.toordinal() + _EPOCH_DAY - 1, 1),
        "CC": ((moment.year + 99) // 100, 2),
        **{f"FF{n}": (moment.microsecond // 10 ** (6 - n), n) for n in range(1, 7)},
    }
    return values.get(pattern)


def _word(moment: dt.datetime, pattern: str) -> tuple[str, int]:
    """The text of a pattern that is a word, and the width to which it is padded."""
    folded = pattern.lower()
    if folded.replace(".", "") in ("am", "pm"):
        half = "pm" if moment.hour >= _NOON else "am"
        half = f"{half[0]}.{half[1]}." if "." in pattern else half
        return (half.upper() if pattern.isupper() else half), 0
    if folded.replace(".", "") in ("ad", "bc"):
        # All years are AD.
        era = "a.d." if "." in pattern else "ad"
        return (era.upper() if pattern.isupper() else era), 0
    if folded == "rm":
        month = roman(moment.month)
        return (month if pattern.isupper() else month.lower()), 4
    if folded in ("month", "mon"):
        name = _MONTHS[moment.month - 1]
    else:
        name = _DAYS[moment.weekday()]
    name, width = (name[:3], 0) if folded in ("mon", "dy") else (name, 9)
    if pattern.isupper():
        return name.upper(), width
    return (name.lower() if pattern.islower() else name), width


# Timestamps are given as local times in UTC.
_ZONES: Final = {"TZ": "UTC", "tz": "utc", "OF": "+00", "TZH": "+00", "TZM": "00"}


def write_moment(moment: dt.datetime, pattern: str) -> str:
    check_pattern(pattern)
    parts: list[str] = []
    for token in _TOKEN.finditer(pattern):
        found = token["pattern"]
        if found is None:
            parts.append(token["quoted"] if token["quoted"] is not None else token["other"] or "")
        elif found in _ZONES:
            parts.append(_ZONES[found])
        elif found == "Y,YYY":
            parts.append(f"{moment.year:,}")
        elif (number := _number(moment, found)) is not None:
            value, digits = number
            parts.append(str(value) if token["fill"] else str(value).zfill(digits))
            if token["th"]:
                suffix = ordinal(value)
                parts.append(suffix.upper() if token["th"].isupper() else suffix)
        else:
            word, width = _word(moment, found)
            parts.append(word if token["fill"] else word.ljust(width))
    return "".join(parts)


def write_interval(canonical: str, pattern: str) -> str:
    """Fields of a day or a year that an interval does not have are those of its start."""
    check_pattern(pattern)
    value = read_canonical(canonical)
    parts: list[str] = []
    for token in _TOKEN.finditer(pattern):
        found = token["pattern"]
        if found is None:
            parts.append(token["quoted"] if token["quoted"] is not None else token["other"] or "")
            continue
        if found.lower().replace(".", "") in ("am", "pm"):
            hour = abs(value.microseconds) // 3_600_000_000 % 24
            parts.append(_word(dt.datetime(1, 1, 1, hour), found)[0])
            continue
        field = _interval_field(value, found)
        if field is None:
            raise errors.FeatureNotSupported(feature=f"{found} in to_char of an interval", instead="")
        number, digits = field
        # The sign of days takes one of their digits, that of other fields precedes them.
        wide = 1 if token["fill"] else digits + (number < 0 and found != "DD")
        parts.append(f"{number:0{wide}d}")
        if token["th"]:
            suffix = ordinal(abs(number))
            parts.append(suffix.upper() if token["th"].isupper() else suffix)
    return "".join(parts)


def _interval_field(value: Interval, pattern: str) -> tuple[int, int] | None:
    sign = -1 if value.microseconds < 0 else 1
    seconds, micros = divmod(abs(value.microseconds), 1_000_000)
    years = int(value.months / 12)
    hours = seconds // 3600
    fields: dict[str, tuple[int, int]] = {
        "YYYY": (years, 4),
        "YYY": (years % 1000, 3),
        "YY": (years % 100, 2),
        "Y": (years % 10, 1),
        "MM": (value.months - years * 12, 2),
        "DD": (value.days, 2),
        "HH24": (sign * hours, 2),
        "HH12": (sign * (hours % _NOON or _NOON), 2),
        "HH": (sign * (hours % _NOON or _NOON), 2),
        "MI": (sign * (seconds // 60 % 60), 2),
        "SS": (sign * (seconds % 60), 2),
        "SSSS": (sign * seconds, 1),
        "SSSSS": (sign * seconds, 1),
        "MS": (sign * (micros // 1000), 3),
        "US": (sign * micros, 6),
    }
    return fields.get(pattern)


_READERS: Final[dict[str, str]] = {
    "YYYY": r"[+-]?\d{1,4}", "YY": r"\d{1,2}", "MM": r"\d{1,2}", "DD": r"\d{1,2}", "DDD": r"\d{1,3}",
    "HH24": r"\d{1,2}", "HH12": r"\d{1,2}", "HH": r"\d{1,2}",
    "MI": r"\d{1,2}", "SS": r"\d{1,2}", "MS": r"\d{1,3}", "US": r"\d{1,6}",
    "MON": r"[A-Za-z]{3}", "MONTH": r"[A-Za-z]+", "DY": r"[A-Za-z]{3}", "DAY": r"[A-Za-z]+", "AM": r"[AaPp]\.?[Mm]\.?",
    "PM": r"[AaPp]\.?[Mm]\.?", "J": r"\d+", "IYYY": r"\d{1,4}", "IW": r"\d{1,2}", "ID": r"\d", "D": r"\d", "Q": r"\d",
    "FF1": r"\d", "FF2": r"\d{1,2}", "FF3": r"\d{1,3}", "FF4": r"\d{1,4}", "FF5": r"\d{1,5}", "FF6": r"\d{1,6}",
}  # fmt: skip


def read_moment(text: str, pattern: str) -> dt.datetime:
    check_pattern(pattern)
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
        # Digits that are followed by others have the width of the pattern.
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


_FRACTIONS: Final = frozenset({"MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6"})


def _moment(values: dict[str, str], text: str) -> dt.datetime:
    year = int(values.get("YYYY", values.get("YY", "1")))
    if "YYYY" not in values and "YY" in values:
        year += 2000 if year < 70 else 1900
    month = int(values.get("MM", "1"))
    name = values.get("MON") or values.get("MONTH")
    hour = int(values.get("HH24") or values.get("HH12") or values.get("HH") or "0")
    half = (values.get("AM") or values.get("PM") or "").lower().replace(".", "")
    fraction = next((digits for name, digits in values.items() if name in _FRACTIONS), "0")
    micros = int(fraction.ljust(6, "0"))
    try:
        if name is not None:
            month = [m[:3].lower() for m in _MONTHS].index(name[:3].lower()) + 1
        if half:
            hour = hour % _NOON + (_NOON if half == "pm" else 0)
        day = dt.datetime(year, month, int(values.get("DD", "1")))
        if "IYYY" in values:
            week, weekday = int(values.get("IW", "1")), int(values.get("ID", "1"))
            day = dt.datetime.fromisocalendar(int(values["IYYY"]), week, weekday)
        if "J" in values:
            day = dt.datetime.fromordinal(int(values["J"]) - _EPOCH_DAY + 1)
        if "DDD" in values:
            day = dt.datetime(year, 1, 1) + dt.timedelta(days=int(values["DDD"]) - 1)
        return day.replace(
            hour=hour, minute=int(values.get("MI", "0")), second=int(values.get("SS", "0")), microsecond=micros
        )
    except ValueError:
        raise errors.DatetimeFieldOverflow(type="date", value=text) from None
