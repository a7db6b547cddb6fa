"""pg_proc, the functions that SQL may call, and pg_get_keywords().

`functions.txt` has one line for each function that is allowed (`sql/translate/functions.py`) and whose types are known:
OID, name, kind (f, a or w), volatility, whether it is strict and returns a set, the types of its result and arguments,
that of a variadic argument, and the expected number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from seachange.sql.pgcatalog.builtin import CATALOG_OID
from seachange.sql.pgcatalog.facts import Facts, type_name
from seachange.sql.text.keywords import KEYWORDS

_INTERNAL: Final = 12
_OWNER: Final = 10
_NOTHING: Final = "-"
_KEYWORD_KINDS: Final[dict[str, str]] = {
    "C": "unreserved (cannot be function or type name)",
    "R": "reserved",
    "T": "reserved (can be function or type name)",
    "U": "unreserved",
}
_LABELS: Final = {False: "requires AS", True: "can be bare label"}


@dataclass(frozen=True, slots=True)
class Procedure:
    oid: int
    name: str
    kind: str
    volatility: str
    is_strict: bool
    gives_set: bool
    result: int
    arguments: tuple[int, ...]
    variadic: int
    rows: int


@lru_cache(maxsize=1)
def procedures() -> dict[int, Procedure]:
    text = files("seachange.sql.pgcatalog").joinpath("functions.txt").read_text()
    return {found.oid: found for found in map(_read, text.splitlines())}


def _read(line: str) -> Procedure:
    oid, name, kind, volatility, strict, set_, result, arguments, variadic, rows = line.split()
    types = () if arguments == _NOTHING else tuple(map(int, arguments.split(",")))
    flags = (strict == "t", set_ == "t")
    return Procedure(int(oid), name, kind, volatility, *flags, int(result), types, int(variadic), int(rows))


def pg_proc(facts: Facts) -> Iterator[dict[str, Any]]:
    """Independent of the schema."""
    for found in procedures().values():
        yield {
            "oid": found.oid,
            "proname": found.name,
            "pronamespace": CATALOG_OID,
            "proowner": _OWNER,
            "prolang": _INTERNAL,
            "procost": 1.0,
            "prorows": float(found.rows),
            "provariadic": found.variadic,
            "prokind": found.kind,
            "proisstrict": found.is_strict,
            "proretset": found.gives_set,
            "provolatile": found.volatility,
            "proparallel": "s",
            "pronargs": len(found.arguments),
            "prorettype": found.result,
            "proargtypes": list(found.arguments),
            "prosrc": found.name,
        }


def function_result(facts: Facts, oid: int) -> str | None:
    found = procedures().get(oid)
    if found is None:
        return None
    return ("SETOF " if found.gives_set else "") + type_name(facts, found.result)


def function_arguments(facts: Facts, oid: int) -> str | None:
    found = procedures().get(oid)
    if found is None:
        return None
    named = [type_name(facts, type_) for type_ in found.arguments]
    if found.variadic and named:
        named[-1] = f"VARIADIC {named[-1]}"
    return ", ".join(named)


def pg_get_keywords(facts: Facts) -> Iterator[dict[str, Any]]:
    """Independent of the schema, ordered by word."""
    found = ((word, kind, bare) for (kind, bare), words in KEYWORDS.items() for word in words.split())
    for word, kind, bare in sorted(found):
        yield {
            "word": word,
            "catcode": kind,
            "barelabel": bare,
            "catdesc": _KEYWORD_KINDS[kind],
            "baredesc": _LABELS[bare],
        }
