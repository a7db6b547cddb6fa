"""Operators of jsonb on text: each argument and result is the text of a document, or None for NULL."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from seachange import errors
from seachange.values.json_text import has_repeated_key, parse_json, show_json
from seachange.values.step_budget import StepBudget

_MISSING: Any = object()


def get_field(document: str, key: str) -> str | None:
    """`->` with a text, on an object."""
    value = parse_json(document)
    return _show(value.get(key, _MISSING) if isinstance(value, dict) else _MISSING)


def get_element(document: str, place: int) -> str | None:
    """`->` with a number, on an array; a negative one counts from the end."""
    value = parse_json(document)
    # A scalar counts as an array of one element.
    items = value if isinstance(value, list | dict) else [value]
    return _show(items[place] if isinstance(items, list) and -len(items) <= place < len(items) else _MISSING)


def get_path(document: str, path: Sequence[str | None]) -> str | None:
    """`#>`."""
    return _show(_follow(parse_json(document), path))


def as_text(document: str) -> str | None:
    """The result of `->>`, from that of `->`."""
    value = parse_json(document)
    if value is None:
        return None
    return value if isinstance(value, str) else show_json(value)


def comparable(document: str) -> str:
    """The canonical text of a document's value: numbers without trailing zeros.

    >>> comparable('{"a": [1.50, 2.0, "1.0"]}')
    '{"a": [1.5, 2, "1.0"]}'
    """
    return show_json(_without_zeros(parse_json(document))) if "." in document else document


def _without_zeros(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_zeros(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_zeros(item) for item in value]
    if not isinstance(value, Decimal):
        return value
    # By its text: the decimal context keeps 28 digits.
    text = f"{value:f}"
    return Decimal(text.rstrip("0").rstrip(".") if "." in text else text)


_KINDS: dict[str, tuple[type, ...]] = {"array": (list,), "object": (dict,), "value": (object,)}


def is_json(text: str, kind: str, unique: int) -> bool:
    """Whether a text is valid JSON, of any kind or of this one; `unique`: without duplicate keys."""
    try:
        value = parse_json(text)
    except errors.InvalidTextRepresentation:
        return False
    if kind == "scalar":
        is_kind = not isinstance(value, list | dict)
    else:
        is_kind = isinstance(value, _KINDS[kind])
    return is_kind and not (unique and has_repeated_key(text))


def _show(value: Any) -> str | None:
    return None if value is _MISSING else show_json(value)


def _follow(value: Any, path: Sequence[str | None]) -> Any:
    for step in path:
        value = _MISSING if step is None else _step(value, step)
        if value is _MISSING:
            return value
    return value


def _step(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step, _MISSING)
    place = _place(value, step) if isinstance(value, list) else None
    return _MISSING if place is None else value[place]


def _place(value: list[Any], step: str) -> int | None:
    try:
        place = int(step)
    except ValueError:
        return None
    return place if -len(value) <= place < len(value) else None


def _check_place(step: str, position: int) -> int:
    try:
        return int(step)
    except ValueError:
        detail = f"{step} (path element at position {position})"
        raise errors.InvalidTextRepresentation(type="integer", value=detail) from None


def contains(document: str, other: str) -> bool:
    """`@>`."""
    value, part = parse_json(document), parse_json(other)
    # An array contains a scalar as one of its elements, but only at the top level.
    if isinstance(value, list) and not isinstance(part, dict | list):
        return any(_same(element, part) for element in value)
    return _contains(value, part, StepBudget("a comparison of JSON documents"))


def _contains(value: Any, part: Any, budget: StepBudget) -> bool:
    budget.spend(1)
    if isinstance(part, dict):
        return isinstance(value, dict) and all(
            key in value and _contains(value[key], inner, budget) for key, inner in part.items()
        )
    if isinstance(part, list):
        return isinstance(value, list) and _contains_each(value, part, budget)
    return _same(value, part)


def _contains_each(elements: list[Any], parts: list[Any], budget: StepBudget) -> bool:
    # Scalars of one type are equal if their hashes find each other.
    scalars = {(type(element), element) for element in elements if not isinstance(element, dict | list)}
    nested = [element for element in elements if isinstance(element, dict | list)]
    return all(
        any(_contains(element, part, budget) for element in nested)
        if isinstance(part, dict | list)
        else (type(part), part) in scalars
        for part in parts
    )


def _same(one: Any, other: Any) -> bool:
    kinds = (str, bool, Decimal, type(None))
    return any(isinstance(one, kind) and isinstance(other, kind) for kind in kinds) and bool(one == other)


def has_key(document: str, key: str) -> bool:
    """`?`: a key of an object, a string in an array, or the string itself."""
    return key in _keys(document)


def has_any_key(document: str, keys: Sequence[str | None]) -> bool:
    return not _keys(document).isdisjoint(keys)


def has_all_keys(document: str, keys: Sequence[str | None]) -> bool:
    return _keys(document).issuperset(key for key in keys if key is not None)


def _keys(document: str) -> set[str]:
    value = parse_json(document)
    if isinstance(value, dict):
        return set(value)
    elements = value if isinstance(value, list) else [value]
    return {element for element in elements if isinstance(element, str)}


def concatenate(document: str, other: str) -> str:
    """`||`: objects are merged, with the second one's values; anything else is concatenated as arrays."""
    first, second = parse_json(document), parse_json(other)
    if isinstance(first, dict) and isinstance(second, dict):
        return show_json({**first, **second})
    elements = (first if isinstance(first, list) else [first]) + (second if isinstance(second, list) else [second])
    return show_json(elements)


def without_key(document: str, key: str) -> str:
    """`-` with a text."""
    return without_keys(document, (key,))


def without_keys(document: str, keys: Sequence[str | None]) -> str:
    """`-` with an array of texts."""
    value, dropped = _container(document), frozenset(keys)
    if isinstance(value, dict):
        return show_json({name: inner for name, inner in value.items() if name not in dropped})
    return show_json([element for element in value if not (isinstance(element, str) and element in dropped)])


def without_element(document: str, place: int) -> str:
    """`-` with a number."""
    value = _container(document)
    if isinstance(value, dict):
        raise errors.InvalidParameterValue(detail="cannot delete from object using integer index")
    if -len(value) <= place < len(value):
        del value[place]
    return show_json(value)


def without_path(document: str, path: Sequence[str | None]) -> str:
    """`#-`."""
    value = _container(document)
    holder = _follow(value, path[:-1])
    last = path[-1] if path else None
    if isinstance(holder, dict) and last is not None:
        holder.pop(last, None)
    elif isinstance(holder, list) and last is not None:
        _check_place(last, len(path))
        if (place := _place(holder, last)) is not None:
            del holder[place]
    return show_json(value)


def _container(document: str) -> Any:
    value = parse_json(document)
    if not isinstance(value, dict | list):
        raise errors.InvalidParameterValue(detail="cannot delete from scalar")
    return value


def type_name(text: str) -> str:
    """
    >>> type_name("[1]"), type_name('"x"'), type_name("1.5"), type_name("null")
    ('array', 'string', 'number', 'null')
    """
    match parse_json(text):
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "number"


def array_length(text: str) -> int:
    found = parse_json(text)
    if not isinstance(found, list):
        raise errors.InvalidParameterValue(detail="cannot get array length of a non-array")
    return len(found)


def set_path(document: str, path: Sequence[str | None], item: str) -> str:
    """jsonb_set: missing keys are added.

    >>> set_path('{"a": [1, 2]}', ["a", "0"], "9"), set_path("{}", ["x"], "null"), set_path("{}", ["x", "y"], "1")
    ('{"a": [9, 2]}', '{"x": null}', '{}')
    """
    return _set(document, path, item, create=True)


def replace_path(document: str, path: Sequence[str | None], item: str) -> str:
    """The same, but only for existing keys."""
    return _set(document, path, item, create=False)


def _set(document: str, path: Sequence[str | None], item: str, create: bool) -> str:
    value = parse_json(document)
    if not isinstance(value, dict | list):
        raise errors.InvalidParameterValue(detail="cannot set path in scalar")
    if None in path:
        raise errors.NullValueNotAllowed(detail="path element is null")
    steps = [step for step in path if step is not None]
    holder = _follow(value, steps[:-1]) if steps else _MISSING
    if isinstance(holder, dict) and (create or steps[-1] in holder):
        holder[steps[-1]] = parse_json(item)
    elif isinstance(holder, list):
        _check_place(steps[-1], len(steps))
        place = _place(holder, steps[-1])
        if place is not None:
            holder[place] = parse_json(item)
        elif create:
            holder.insert(0 if steps[-1].startswith("-") else len(holder), parse_json(item))
    return show_json(value)


def insert_before(document: str, path: Sequence[str | None], item: str) -> str:
    """jsonb_insert.

    >>> insert_before('{"a": [0, 1]}', ["a", "1"], '"x"'), insert_after('{"a": [0, 1]}', ["a", "1"], '"x"')
    ('{"a": [0, "x", 1]}', '{"a": [0, 1, "x"]}')
    """
    return _insert(document, path, item, behind=0)


def insert_after(document: str, path: Sequence[str | None], item: str) -> str:
    return _insert(document, path, item, behind=1)


def _insert(document: str, path: Sequence[str | None], item: str, behind: int) -> str:
    value = parse_json(document)
    last = path[-1] if path else None
    holder = _follow(value, path[:-1]) if last is not None else _MISSING
    if isinstance(holder, dict):
        if last in holder:
            raise errors.InvalidParameterValue(detail="cannot replace existing key")
        holder[last] = parse_json(item)
    elif isinstance(holder, list):
        place = _check_place(last or "", len(path))
        holder.insert((max(place + len(holder), 0) if place < 0 else place) + behind, parse_json(item))
    return show_json(value)


def strip_nulls(document: str) -> str:
    """
    >>> strip_nulls('{"a": null, "b": [null, {"c": null}]}')
    '{"b": [null, {}]}'
    """
    return show_json(_stripped(parse_json(document)))


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(item) for key, item in value.items() if item is not None}
    return [_stripped(item) for item in value] if isinstance(value, list) else value


def pretty(document: str) -> str:
    """
    >>> print(pretty('{"a": [1, {}], "b": []}'))
    {
        "a": [
            1,
            {
            }
        ],
        "b": [
        ]
    }
    """
    return _pretty(parse_json(document), "")


def _pretty(value: Any, indent: str) -> str:
    if not isinstance(value, dict | list):
        return show_json(value)
    inner = indent + "    "
    if isinstance(value, dict):
        ordered = parse_json(show_json(value))
        items = [f"{inner}{show_json(key)}: {_pretty(item, inner)}" for key, item in ordered.items()]
    else:
        items = [inner + _pretty(item, inner) for item in value]
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return "\n".join([opening, *([",\n".join(items)] if items else []), indent + closing])
