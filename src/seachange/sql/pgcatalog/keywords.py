"""The rows of pg_get_keywords()."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from seachange.sql.pgcatalog.facts import Facts
from seachange.sql.text.keywords import KEYWORDS

_KINDS: Final[dict[str, str]] = {
    "C": "unreserved (cannot be function or type name)",
    "R": "reserved",
    "T": "reserved (can be function or type name)",
    "U": "unreserved",
}
_LABELS: Final = {False: "requires AS", True: "can be bare label"}


def pg_get_keywords(facts: Facts) -> Iterator[dict[str, Any]]:
    """Independent of the schema, ordered by word."""
    found = ((word, kind, bare) for (kind, bare), words in KEYWORDS.items() for word in words.split())
    for word, kind, bare in sorted(found):
        yield {
            "word": word,
            "catcode": kind,
            "barelabel": bare,
            "catdesc": _KINDS[kind],
            "baredesc": _LABELS[bare],
        }
