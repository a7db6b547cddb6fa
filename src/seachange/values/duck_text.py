"""PostgreSQL's text of a value, from DuckDB's text and type: the result of a cast to text."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from seachange.values.array_text import show_array
from seachange.values.interval import parse_interval
from seachange.values.network import show_bits
from seachange.values.output_format import show_float
from seachange.values.quotients import show_quotient
from seachange.values.types import NUMERIC_DEFAULT, NUMERIC_PRECISION_MAX, QUOTIENT_SCALES

# Numerics without declared digits, and products of them, which show no trailing zeros.
_UNLIMITED: Final = tuple(f"DECIMAL({NUMERIC_DEFAULT[0]},{scale})" for scale in range(NUMERIC_DEFAULT[1], 39))

_SINGLE: Final = struct.Struct("<f")
_ESCAPED: Final = re.compile(r"\\x([0-9A-Fa-f]{2})|([^\\])", re.DOTALL)


def show_scalar(text: str, duck_type: str) -> str:
    """
    >>> show_scalar("1.0", "DOUBLE"), show_scalar("1 year 2 months", "INTERVAL"), show_scalar("a\\\\x00", "BLOB")
    ('1', '1 year 2 mons', '\\\\x6100')
    """
    show = _TEXTS.get(duck_type)
    return text if show is None else show(text)


def show_list(texts: list[str | None], duck_type: str) -> str:
    """
    >>> show_list(["true", None], "BOOLEAN[]"), show_list(["1.50"], "DECIMAL(3,2)[]"), show_list(["a b"], "VARCHAR[]")
    ('{t,NULL}', '{1.50}', '{"a b"}')
    """
    element = duck_type.removesuffix("[]")
    show = _ELEMENTS.get(element) or _TEXTS.get(element)
    return show_array([text if text is None or show is None else show(text) for text in texts])


def _show_double(text: str) -> str:
    return show_float(float(text))


def _show_single(text: str) -> str:
    return show_float(_SINGLE.unpack(_SINGLE.pack(float(text)))[0], 9)


def _show_interval(text: str) -> str:
    return str(parse_interval(text))


def _show_bytes(text: str) -> str:
    return "\\x" + "".join(byte or f"{ord(plain):02x}" for byte, plain in _ESCAPED.findall(text)).lower()


def _show_fraction(text: str) -> str:
    """DuckDB leaves out the zero before the point where the type has no digit for it.

    >>> _show_fraction(".50"), _show_fraction("-.5")
    ('0.50', '-0.5')
    """
    return text.replace(".", "0.", 1)


def _show_decimal(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _show_quotient(text: str) -> str:
    return f"{show_quotient(Decimal(text)):f}"


_TEXTS: Final[dict[str, Callable[[str], str]]] = {
    "DOUBLE": _show_double,
    "FLOAT": _show_single,
    "INTERVAL": _show_interval,
    "BLOB": _show_bytes,
    "BIT": show_bits,
    **{f"DECIMAL({digits},{digits})": _show_fraction for digits in range(1, NUMERIC_PRECISION_MAX)},
    **dict.fromkeys(_UNLIMITED, _show_decimal),
    _UNLIMITED[-1]: lambda text: _show_decimal(_show_fraction(text)),
    **{f"DECIMAL({NUMERIC_PRECISION_MAX},{scale})": _show_quotient for scale in QUOTIENT_SCALES},
}
# Types that are printed differently inside an array.
_ELEMENTS: Final[dict[str, Callable[[str], str]]] = {"BOOLEAN": lambda text: text[:1]}
# The types whose text differs in DuckDB, besides lists.
SHOWN_TYPES: Final = tuple(_TEXTS)
