"""Overload resolution: which operator or function a call means, by the types of its arguments.

The rules are those of PostgreSQL (chapter "Type Conversion"), over its own tables. A type may be None: one that the
binder could not determine, which fits everything and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from seachange.sql.bind import postgres
from seachange.sql.bind.postgres import Signature
from seachange.sql.bind.types import UNKNOWN, BoundType, array_type, element_of, named

Types = Sequence[BoundType | None]

_ANY: Final = "any"
# Polymorphic types by the family whose members stand for one type.
_ELEMENTS: Final = {"anyelement": "any", "anynonarray": "any", "anyenum": "any"}
_ARRAYS: Final = {"anyarray": "any"}
_COMPATIBLE: Final = {"anycompatible": "compatible", "anycompatiblenonarray": "compatible"}
_COMPATIBLE_ARRAYS: Final = {"anycompatiblearray": "compatible"}
_POLYMORPHIC: Final = frozenset({_ANY, *_ELEMENTS, *_ARRAYS, *_COMPATIBLE, *_COMPATIBLE_ARRAYS})
_LISTED: Final = frozenset({*_ARRAYS, *_COMPATIBLE_ARRAYS})


@dataclass(frozen=True, slots=True)
class Chosen:
    """The types that the arguments are converted to, and that of the result; None: not determined."""

    arguments: Sequence[BoundType | None]
    result: BoundType | None
    signature: Signature | None = None


class NoMatch(Exception):
    """No candidate takes arguments of these types."""


@lru_cache(maxsize=4096)
def choose_operator(name: str, given: tuple[BoundType | None, ...]) -> Chosen:
    """Raises NoMatch; KeyError if there is no operator of that name."""
    return _choose(postgres.operators()[name], given, is_operator=True)


@lru_cache(maxsize=4096)
def choose_function(name: str, given: tuple[BoundType | None, ...]) -> Chosen:
    """Raises NoMatch; KeyError if there is no function of that name."""
    return _choose(postgres.functions()[name], given, is_operator=False)


def _choose(candidates: Sequence[Signature], given: Types, is_operator: bool) -> Chosen:
    fitting = [(signature, arguments) for signature in candidates for arguments in _shapes(signature, len(given))]
    if not fitting:
        raise NoMatch
    found = [each for each in fitting if _is_exact(each[1], given)]
    if not found and is_operator:
        found = _like_other(fitting, given)
    if not found:
        found = [each for each in fitting if _accepts(each[1], given)]
    if not found:
        raise NoMatch
    # Of a type that is not known each candidate may be the best.
    for narrow in () if None in given else (_most_exact, _most_preferred, _by_category, _like_known):
        if len(found) > 1:
            found = narrow(found, given)
    results = [_chosen(*each, given) for each in found]
    if len(results) == 1:
        return results[0]
    same = results[0].result if len({chosen.result for chosen in results}) == 1 else None
    return Chosen([None] * len(given), same)


_Candidate = tuple[Signature, tuple[str, ...]]


def _shapes(signature: Signature, count: int) -> Iterator[tuple[str, ...]]:
    """The types of so many arguments."""
    arguments = signature.arguments
    if len(arguments) - signature.defaults <= count <= len(arguments):
        yield arguments[:count]
    if signature.is_variadic and count >= len(arguments):
        last = arguments[-1]
        element = last if last == _ANY else "anycompatible" if last in _COMPATIBLE_ARRAYS else last.removeprefix("_")
        yield (*arguments[:-1], *[element] * (count - len(arguments) + 1))


def _is_exact(arguments: tuple[str, ...], given: Types) -> bool:
    return all(type_ is not None and type_.name == wanted for wanted, type_ in zip(arguments, given, strict=True))


def _like_other(fitting: list[_Candidate], given: Types) -> list[_Candidate]:
    """Of two arguments, one that is unknown is taken to have the type of the other."""
    if len(given) != 2 or given[0] is None or given[1] is None or (given[0] == UNKNOWN) == (given[1] == UNKNOWN):
        return []
    known = given[1] if given[0] == UNKNOWN else given[0]
    return [each for each in fitting if each[1] == (known.name, known.name)]


def can_convert(source: BoundType, target: str) -> bool:
    """Whether a value is converted without being asked to."""
    if source.name == target or source == UNKNOWN or target == _ANY:
        return True
    if source.is_array and target.startswith("_"):
        return can_convert(named(source.name[1:]), target[1:])
    return postgres.casts().get((source.name, target)) == "i"


def _accepts(arguments: tuple[str, ...], given: Types) -> bool:
    for wanted, type_ in zip(arguments, given, strict=True):
        if type_ is None or wanted == _ANY or type_ == UNKNOWN:
            continue
        if wanted in _POLYMORPHIC:
            if wanted in _LISTED and not type_.is_array:
                return False
            if wanted == "anyenum" and not type_.is_enum:
                return False
            if wanted in ("anynonarray", "anycompatiblenonarray") and type_.is_array:
                return False
        elif not can_convert(type_, wanted):
            return False
    return _resolve(arguments, given) is not None


def _resolve(arguments: tuple[str, ...], given: Types) -> dict[str, BoundType | None] | None:
    """The types that families of polymorphic types stand for; None if their arguments disagree."""
    found: dict[str, list[BoundType | None]] = {}
    for wanted, type_ in zip(arguments, given, strict=True):
        family = _ELEMENTS.get(wanted) or _COMPATIBLE.get(wanted)
        listed = _ARRAYS.get(wanted) or _COMPATIBLE_ARRAYS.get(wanted)
        if family is not None:
            found.setdefault(family, []).append(type_.plain if type_ is not None else None)
        elif listed is not None:
            element = type_ if type_ is None or type_ == UNKNOWN else element_of(type_.plain)
            found.setdefault(listed, []).append(element)
    resolved: dict[str, BoundType | None] = {}
    for family, types in found.items():
        known = list(dict.fromkeys(type_ for type_ in types if type_ is not None and type_ != UNKNOWN))
        if family == "any" and len(known) > 1:
            return None
        if len(known) > 1:
            met = common_type(known)
            if met is None:
                return None
            known = [met]
        if None in types:
            resolved[family] = known[0] if known and family == "any" else None
        else:
            resolved[family] = known[0] if known else named("text") if family == "compatible" else UNKNOWN
    return resolved


def _chosen(signature: Signature, arguments: tuple[str, ...], given: Types) -> Chosen:
    resolved = _resolve(arguments, given) or {}

    def meant(name: str, type_: BoundType | None) -> BoundType | None:
        if name == _ANY:
            return named("text") if type_ == UNKNOWN else type_
        family = _ELEMENTS.get(name) or _COMPATIBLE.get(name)
        if family is not None:
            return resolved.get(family)
        listed = _ARRAYS.get(name) or _COMPATIBLE_ARRAYS.get(name)
        if listed is not None:
            element = resolved.get(listed)
            return None if element is None or element == UNKNOWN else array_type(element)
        return named(name)

    pairs = zip(arguments, given, strict=True)
    return Chosen([meant(name, type_) for name, type_ in pairs], meant(signature.result, None), signature)


def _best(found: list[_Candidate], score: Callable[[_Candidate], int]) -> list[_Candidate]:
    scores = [score(each) for each in found]
    best = max(scores)
    return [each for each, points in zip(found, scores, strict=True) if points == best]


def _most_exact(found: list[_Candidate], given: Types) -> list[_Candidate]:
    return _best(
        found, lambda each: sum(t is not None and t.name == wanted for wanted, t in zip(each[1], given, strict=True))
    )


def _most_preferred(found: list[_Candidate], given: Types) -> list[_Candidate]:
    """Candidates that take the same types, or preferred ones of their category."""

    def points(each: _Candidate) -> int:
        return sum(
            type_ is not None and type_ != UNKNOWN and (type_.name == wanted or _is_preferred(wanted, type_.category))
            for wanted, type_ in zip(each[1], given, strict=True)
        )

    return _best(found, points)


def _is_preferred(name: str, category: str) -> bool:
    row = postgres.types().get(name)
    return row is not None and row.is_preferred and row.category == category


def _by_category(found: list[_Candidate], given: Types) -> list[_Candidate]:
    """An unknown argument is a string if some candidate takes one, else of the category that all take."""
    left = found
    for place, type_ in enumerate(given):
        if type_ != UNKNOWN:
            continue
        rows = [postgres.types().get(each[1][place]) for each in left]
        categories = {row.category if row is not None else "" for row in rows}
        if "S" in categories:
            category = "S"
        elif len(categories) == 1:
            category = categories.pop()
        else:
            return found
        same = [each for each, row in zip(left, rows, strict=True) if row is not None and row.category == category]
        preferred = [each for each in same if postgres.types()[each[1][place]].is_preferred]
        left = preferred or same
    return left or found


def _like_known(found: list[_Candidate], given: Types) -> list[_Candidate]:
    """If all that are known have one type, the unknown ones have it too."""
    known = {type_.name for type_ in given if type_ is not None and type_ != UNKNOWN}
    if len(known) != 1 or None in given:
        return found
    (name,) = known
    type_ = named(name)
    alike = [each for each in found if _accepts(each[1], [type_] * len(given))]
    return alike if len(alike) == 1 else found


def common_type(types: Sequence[BoundType]) -> BoundType | None:
    """The type of CASE, COALESCE, VALUES, ARRAY and set operations: the first that the others are converted to. None if
    there is none."""
    known = [type_ for type_ in types if type_ != UNKNOWN]
    if not known:
        return named("text")
    if all(type_ == known[0] for type_ in known):
        return known[0]
    found = known[0].plain
    for type_ in known[1:]:
        if type_.name == found.name:
            continue
        if type_.category != found.category:
            return None
        if not found.is_preferred and can_convert(found, type_.name) and not can_convert(type_, found.name):
            found = type_.plain
    return found if all(can_convert(type_, found.name) for type_ in known) else None
