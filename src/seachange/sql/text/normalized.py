"""Statements without their constants, for the log and for statistics: texts that differ only in these are the same.

>>> normalize("SELECT *  FROM t\\nWHERE name = 'ann' AND n IN (1, 2, 3) -- hers")
'SELECT * FROM t WHERE name = ? AND n IN (?, ...)'
>>> normalize("insert into t values (1, 'a', $1), (2, 'b', $2)")
'insert into t values (?, ..., $1), ...'

**Invariant:** no character of a constant is in the result, whatever else is wrong with the text.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Longer texts are cut, before and after.
_READ_CHARS_MAX = 8_000
_CHARS_MAX = 2_000
# In this order: comments and what is quoted, also if it does not end. A dollar quote is not a parameter.
_PART = re.compile(
    r"""
      (?P<gap>(?:\s | --[^\n]*+ | /\*(?:[^*]|\*(?!/))*+(?:\*/)?)++)
    | (?P<name>(?:[uU]&)?"(?:[^"]|"")*+"?)
    | (?P<text>(?:\b[eE]'(?:[^'\\]|\\.|''|\\$)*+'? | (?:\b(?:[bBxXnN]|[uU]&))?'(?:[^']|'')*+'?))
    | (?P<dollar>\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z))
    | (?P<parameter>\$[0-9]+)
    | (?P<word>[^\W\d][\w$]*+)
    | (?P<number>(?:[0-9]|\.[0-9])(?:\w|\.|(?<=[eE])[+-](?=[0-9]))*+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CONSTANT = "?"
_LIST = re.compile(r"\?(?:, ?\?)+")
_ROW = re.compile(
    r"(\((?:\?|\$[0-9]+|default|null|\.\.\.|, ?)+\))(?:, ?\((?:\?|\$[0-9]+|default|null|\.\.\.|, ?)+\))+", re.I
)


@lru_cache(maxsize=1_000)
def normalize(text: str) -> str:
    parts: list[str] = []
    for match in _PART.finditer(text[:_READ_CHARS_MAX]):
        match match.lastgroup:
            case "gap":
                parts.append(" ")
            case "text" | "number" | "dollar" | "tag":
                parts.append(_CONSTANT)
            case _:
                parts.append(match.group())
    found = _ROW.sub(r"\1, ...", _LIST.sub("?, ...", "".join(parts).strip().rstrip(";").rstrip()))
    return found if len(found) <= _CHARS_MAX else f"{found[:_CHARS_MAX]}..."


_PASSWORD = re.compile(r"\bpassword\b", re.IGNORECASE)


def is_about_password(text: str) -> bool:
    return _PASSWORD.search(text) is not None


def without_passwords(text: str) -> str:
    """The text as it is, unless it mentions a password: then without constants.

    >>> without_passwords("ALTER ROLE ann PASSWORD 'secret'"), without_passwords("select 'x'")
    ('ALTER ROLE ann PASSWORD ?', "select 'x'")
    """
    return normalize(text) if is_about_password(text) else text[:_READ_CHARS_MAX]
