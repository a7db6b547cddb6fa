"""Where in a statement an error is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorPlace:
    """An offset into the text that was parsed: of a script, or of a part of a statement, if `part` is one. `side`: the
    place is the next word behind (1) or before (-1) what is there, such as an operator beside its operand."""

    offset: int
    side: int = 0
    part: str | None = None
