"""Arrays as text, in PostgreSQL's format: braces, commas, quotes where needed.

>>> parse_array('{a, "b ""c", NULL, "NULL"}'.replace('""', chr(92) + '"'))
['a', 'b "c', None, 'NULL']
>>> show_array(['a b', None, '', 'x'])
'{"a b",NULL,"",x}'
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seachange import errors

_WHITE = " \t\n\r\v\f"
_ELEMENT = re.compile(r'[ \t\n\r\v\f]*(?:"((?:[^"\\]|\\.)*)"|((?:[^",{}\\]|\\.)+))[ \t\n\r\v\f]*', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r'["\\]')
_QUOTED = re.compile(r'[",{}\\ \t\n\r\v\f]')


def parse_array(text: str) -> list[str | None]:
    """The elements of an array of one dimension."""
    body = text.strip(_WHITE)
    if body.startswith("["):
        raise errors.FeatureNotSupported(feature="an array with bounds", instead="Write the elements only.")
    if not (body.startswith("{") and body.endswith("}")) or len(body) < 2:
        raise _malformed(text)
    inner = body[1:-1].strip(_WHITE)
    if not inner:
        return []
    if inner.startswith("{"):
        raise errors.FeatureNotSupported(feature="an array of several dimensions", instead="Use jsonb.")
    found: list[str | None] = []
    position = 0
    while True:
        match = _ELEMENT.match(inner, position)
        if match is None:
            raise _malformed(text)
        found.append(_element(match, text))
        position = match.end()
        if position == len(inner):
            return found
        if inner[position] != ",":
            raise _malformed(text)
        position += 1


def _element(match: re.Match[str], text: str) -> str | None:
    quoted, plain = match.groups()
    if quoted is not None:
        return _ESCAPE.sub(r"\1", quoted)
    stripped = plain.rstrip(_WHITE) if not plain.endswith("\\ ") else plain
    if not stripped:
        raise _malformed(text)
    if stripped.upper() == "NULL":
        return None
    return _ESCAPE.sub(r"\1", stripped)


def _malformed(text: str) -> errors.Error:
    return errors.InvalidTextRepresentation(type="array", value=text)


def show_array(elements: Sequence[str | None]) -> str:
    return "{" + ",".join(["NULL" if element is None else _show(element) for element in elements]) + "}"


def _show(element: str) -> str:
    if element and element.upper() != "NULL" and not _QUOTED.search(element):
        return element
    return '"' + _SPECIAL.sub(r"\\\g<0>", element) + '"'


_QUOTED_IN_RECORDS = re.compile(r'[\s(),"\\]')


def show_record(items: Sequence[str | None]) -> str:
    """A row as text, from the texts of its columns.

    >>> show_record(["1", None, "", "a b", "(x)"])
    '(1,,"","a b","(x)")'
    """
    return f"({','.join(_show_in_record(item) for item in items)})"


def _show_in_record(item: str | None) -> str:
    if item is None:
        return ""
    if item and not _QUOTED_IN_RECORDS.search(item):
        return item
    return '"' + item.replace("\\", "\\\\").replace('"', '""') + '"'
