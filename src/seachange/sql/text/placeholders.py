"""Parameters in SQL text, normalised to `$1` surrounded by spaces.

Literals, quoted names and comments are never changed. PostgreSQL's drivers send `$1,$2` without a space, which sqlglot
takes for the start of a dollar-quoted string; PEP 249's `%s` and `%(name)s` are numbered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from seachange import errors

OPAQUE = r"""
    (?P<opaque>
        (?<![\w$])[eE]'(?:[^'\\]|\\.|'')*'
      | '(?:[^']|'')*'
      | "(?:[^"]|"")*"
      | --[^\n]*
      | (?<![\w$])\$(?P<tag>[A-Za-z_\x80-\uffff][\w]*)?\$.*?\$(?P=tag)?\$
    )
"""
COMMENT = r"| (?P<comment>/\*)"
_NUMBERED = r"| (?<![\w$])\$(?P<number>[0-9]+)"
_PYFORMAT = r"| %(?:(?P<percent>%)|(?P<positional>s)|\((?P<name>[^)]*)\)s|(?P<bad>))"

_NUMBERED_PATTERN = re.compile(OPAQUE + COMMENT + _NUMBERED, re.VERBOSE | re.DOTALL)
_PYFORMAT_PATTERN = re.compile(OPAQUE + COMMENT + _NUMBERED + _PYFORMAT, re.VERBOSE | re.DOTALL)
_NUMBER = re.compile(r"\$([0-9]{1,9})")
_COMMENT_MARK = re.compile(r"/\*|\*/")

Parameters = Sequence[Any] | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Numbered:
    """Text with `$n` parameters; `names` are the keys of their values, None if by position."""

    text: str
    names: tuple[str, ...] | None

    def values(self, parameters: Parameters) -> Sequence[Any]:
        if parameters is None:
            return ()
        if self.names is None:
            if isinstance(parameters, Mapping):
                if parameters:
                    raise errors.SyntaxProblem(detail="named values for a statement without names")
                return ()
            return parameters
        if not isinstance(parameters, Mapping):
            raise errors.SyntaxProblem(detail="the statement has named parameters: give a mapping")
        try:
            return [parameters[name] for name in self.names]
        except KeyError as missing:
            raise errors.SyntaxProblem(detail=f"no value for parameter {missing}") from None


def isolate_parameters(text: str) -> str:
    """Puts a space around every `$n`."""
    if "$" not in text:
        return text
    return _substitute(text, _NUMBERED_PATTERN, lambda match: f" ${match.group('number')} ")


def original_offset(text: str, offset: int) -> int:
    """The offset in a text of what has this one after `isolate_parameters`."""
    if "$" not in text:
        return offset
    added = 0

    def count(match: re.Match[str]) -> str:
        nonlocal added
        if match.start() + added < offset:
            added += 1 if offset == match.start() + added + 1 else 2
        return match.group()

    _substitute(text, _NUMBERED_PATTERN, count)
    return offset - added


@lru_cache(maxsize=2048)
def number_parameters(text: str) -> Numbered:
    """Replaces `%s` and `%(name)s` by `$n`, and `%%` by `%`."""
    positional = 0
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        nonlocal positional
        if match.group("number") is not None:
            return match.group()
        if match.group("percent") is not None:
            return "%"
        if match.group("positional") is not None:
            positional += 1
            return f"${positional} "
        if match.group("name") is not None:
            return f"${names.setdefault(match.group('name'), len(names) + 1)} "
        raise errors.SyntaxProblem(detail="a % must be doubled when parameters are given")

    numbered = _substitute(text, _PYFORMAT_PATTERN, number, opaque=_undouble)
    if positional and names:
        raise errors.SyntaxProblem(detail="positional and named parameters in one statement")
    return Numbered(numbered, tuple(names) if names else None)


def highest_parameter(text: str) -> int:
    """The highest `$n` of a text, or of a comment or string in it; 0 if there is none."""
    return max(map(int, _NUMBER.findall(text)), default=0) if "$" in text else 0


def _undouble(text: str) -> str:
    # Client libraries substitute in the whole text, so a doubled % is one % inside literals too.
    return text.replace("%%", "%")


def _keep(text: str) -> str:
    return text


def _substitute(text: str, pattern: re.Pattern[str], replace: Any, opaque: Any = _keep) -> str:
    pieces: list[str] = []
    position = 0
    while (match := pattern.search(text, position)) is not None:
        pieces.append(text[position : match.start()])
        end = match.end()
        if match.group("comment") is not None:
            end = comment_end(text, match.end())
            pieces.append(text[match.start() : end])
        elif match.group("opaque") is not None:
            pieces.append(opaque(match.group()))
        else:
            pieces.append(replace(match))
        position = end
    pieces.append(text[position:])
    return "".join(pieces)


def comment_end(text: str, start: int) -> int:
    """The end of a comment that begins before `start`. Comments nest."""
    depth, position = 1, start
    while depth and (mark := _COMMENT_MARK.search(text, position)) is not None:
        depth += 1 if mark.group() == "/*" else -1
        position = mark.end()
    return position if not depth else len(text)
