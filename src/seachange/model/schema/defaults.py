"""Column defaults as stored text: a quoted constant with its type, as PostgreSQL prints it.

>>> from seachange.values.types import BIGINT
>>> constant_default(BIGINT, 5)
"'5'::bigint"
>>> constant_value(BIGINT, "'5'::bigint")
5
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from seachange.values.canonical import format_canonical, parse_canonical
from seachange.values.types import SqlType

_CONSTANT = re.compile(r"'((?:[^']|'')*)'::.*", re.DOTALL)


def constant_default(type_: SqlType, value: Any) -> str | None:
    text = format_canonical(type_, value)
    return None if text is None else "'" + text.replace("'", "''") + f"'::{type_}"


def is_constant(default: str) -> bool:
    return _CONSTANT.fullmatch(default) is not None


@lru_cache(maxsize=4096)
def constant_value(type_: SqlType, default: str | None) -> Any:
    """The value of a default, read as `type_` (to which the column may have been widened since)."""
    if default is None:
        return None
    match = _CONSTANT.fullmatch(default)
    assert match is not None, default
    return parse_canonical(type_, match.group(1).replace("''", "'"))
