"""format(): PostgreSQL's text templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from seachange import errors

# %, a position, a dash, a width or its argument, and the conversion.
_SPECIFIER: Final = re.compile(r"%(?:([0-9]+)\$)?(-?)(?:([0-9]+)|\*(?:([0-9]+)\$)?)?(.?)", re.DOTALL)
_NAME: Final = re.compile(r"[a-z_][a-z0-9_$]*")
# A width makes a large value from a small one.
_WIDTH_MAX: Final = 1 << 20


def format_text(template: str, values: Sequence[str | None]) -> str:
    """
    >>> format_text("%2$s %1$s|%-4s|%3s", ["a", "b", "c"])
    'b a|b   |  c'
    >>> print(format_text("%I = %L, %s%%", ["Foo", "it's", None]))
    "Foo" = 'it''s', %
    """
    taken = 0
    made: list[str] = []
    end = 0
    for match in _SPECIFIER.finditer(template):
        made.append(template[end : match.start()])
        end = match.end()
        position, dash, width, width_from, form = match.groups()
        if match.group() == "%%":
            made.append("%")
            continue
        if form not in ("s", "I", "L"):
            raise errors.InvalidParameterValue(detail=f'unrecognized format() type specifier "{form}"')
        wide = int(width) if width else 0
        if "*" in match.group():
            taken = int(width_from) if width_from else taken + 1
            wide = int(_value(values, taken) or 0)
        taken = int(position) if position else taken + 1
        shown = _show(form, _value(values, taken))
        if abs(wide) > _WIDTH_MAX:
            raise errors.ProgramLimitExceeded(detail=f"a width of {wide} in format()")
        made.append(shown.ljust(abs(wide)) if dash or wide < 0 else shown.rjust(wide))
    return "".join([*made, template[end:]])


def _value(values: Sequence[str | None], number: int) -> str | None:
    if number < 1:
        raise errors.InvalidParameterValue(detail="format specifies argument 0, but arguments are numbered from 1")
    if number > len(values):
        raise errors.InvalidParameterValue(detail="too few arguments for format()")
    return values[number - 1]


def _show(form: str, value: str | None) -> str:
    match form:
        case "I":
            if value is None:
                raise errors.NullValueNotAllowed(detail="null values cannot be formatted as an SQL identifier")
            return value if _NAME.fullmatch(value) else '"' + value.replace('"', '""') + '"'
        case "L":
            return "NULL" if value is None else quote_literal(value)
        case _:
            return value or ""


def quote_literal(value: str) -> str:
    """
    >>> print(quote_literal("it's"), quote_literal("a" + chr(92)))
    'it''s' E'a\\\\'
    """
    quoted = value.replace("'", "''")
    return f"'{quoted}'" if "\\" not in quoted else "E'" + quoted.replace("\\", "\\\\") + "'"
