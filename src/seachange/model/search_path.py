"""The search path: the schemas in which unqualified names are looked up, in order; objects are created in the first
that exists.

>>> parse_path('"$user", public, "A, B"', "me")
('me', 'public', 'A, B')
"""

from __future__ import annotations

import re
from functools import lru_cache

DEFAULT_PATH = '"$user", public'
_NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s",]+))\s*(,|$)')
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_USER = "$user"


def quote_in_path(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


@lru_cache(maxsize=256)
def parse_path(text: str, user: str) -> tuple[str, ...]:
    """Raises ValueError if it is not a list of names."""
    found: list[str] = []
    at = 0
    while at < len(text):
        match = _NAME.match(text, at)
        if match is None:
            raise ValueError(text)
        quoted, plain, comma = match.groups()
        name = quoted.replace('""', '"') if quoted is not None else plain.lower()
        found.append(user if name == _USER else name)
        at = match.end()
        if comma and at >= len(text):
            raise ValueError(text)
    return tuple(dict.fromkeys(found))
