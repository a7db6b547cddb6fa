"""JSON documents made from values: to_json and similar functions, from DuckDB's text of a value and its type.

DuckDB's own text of a document has other forms of timestamps, bytes and intervals, and numbers without trailing zeros.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final

from seachange import errors
from seachange.values.duck_text import SHOWN_TYPES, show_scalar
from seachange.values.json_text import parse_json, show_json
from seachange.values.names_text import depths

# Numbers have up to 38 digits; those of Python keep 28.
_WIDE: Final = Context(prec=100)
_DECODER: Final = json.JSONDecoder(parse_float=Decimal, parse_int=Decimal, parse_constant=str)
# A number in a document inside a row has passed through a double: with more digits it may have changed.
_DIGITS_MAX: Final = 15
_WORD: Final = re.compile(r'"((?:[^"]|"")*)"|([^\s(),\[\]]+)')
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),(\d+)\)")


@dataclass(frozen=True, slots=True)
class DuckType:
    """`name` is LIST, STRUCT, TUPLE, or that of a scalar with its modifiers; the fields of a struct have names."""

    name: str
    fields: tuple[tuple[str, DuckType], ...] = ()


def read_duck_type(text: str) -> DuckType:
    """
    >>> read_duck_type('STRUCT(m DECIMAL(10,2), "a b" TIMESTAMP[])').fields[1]
    ('a b', DuckType(name='LIST', fields=(('', DuckType(name='TIMESTAMP', fields=())),)))
    """
    type_ = text.strip()
    if type_.endswith("[]"):
        return DuckType("LIST", (("", read_duck_type(type_[:-2])),))
    if type_.startswith("STRUCT(") and type_.endswith(")"):
        return DuckType("STRUCT", tuple(_field(part) for part in _split(type_[7:-1])))
    if type_.startswith("TUPLE(") and type_.endswith(")"):
        parts = _split(type_[6:-1])
        return DuckType("TUPLE", tuple((f"f{n}", read_duck_type(part)) for n, part in enumerate(parts, 1)))
    return DuckType(type_)


def _field(text: str) -> tuple[str, DuckType]:
    name = _WORD.match(text.strip())
    assert name is not None
    quoted = name.group(1)
    return name.group(2) if quoted is None else quoted.replace('""', '"'), read_duck_type(text.strip()[name.end() :])


def _split(text: str) -> list[str]:
    """At commas outside of parentheses and quotes."""
    parts, start = [], 0
    for at, character, depth in depths(text):
        if character == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]] if text else []


def read_value(native: str, duck_type: str) -> Any:
    """The value for `show_json` and `write_plain`, from DuckDB's document of a value of that type."""
    return _shaped(_DECODER.decode(native), read_duck_type(duck_type))


def _shaped(value: Any, type_: DuckType) -> Any:
    if value is None:
        return None
    match type_.name:
        case "LIST":
            return [_shaped(item, type_.fields[0][1]) for item in value]
        case "STRUCT":
            return {name: _shaped(value[name], inner) for name, inner in type_.fields}
        case "TUPLE":
            return {name: _shaped(item, inner) for item, (name, inner) in zip(value, type_.fields, strict=True)}
        case "JSON":
            return _check_digits(value)
        case scalar:
            return _scalar(value, scalar)


def _scalar(value: Any, type_: str) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, Decimal):
        return _number(value, type_)
    if type_ in SHOWN_TYPES:
        return show_scalar(value, type_)
    if type_.startswith("TIMESTAMP"):
        moment = value.replace(" ", "T", 1)
        return moment + ":00" if type_.endswith("ZONE") and re.search(r"[+-]\d\d$", moment) else moment
    return value


def _number(value: Decimal, type_: str) -> Decimal:
    declared = _DECIMAL.fullmatch(type_)
    if declared is not None and type_ not in SHOWN_TYPES:
        return value.quantize(Decimal(1).scaleb(-int(declared[2])), context=_WIDE)
    return Decimal(show_scalar(f"{value:f}", type_)) if type_ in SHOWN_TYPES else value


def _check_digits(value: Any) -> Any:
    if isinstance(value, Decimal) and value.as_tuple().exponent and len(value.as_tuple().digits) > _DIGITS_MAX:
        raise errors.FeatureNotSupported(
            feature=f"a number of more than {_DIGITS_MAX} digits in a jsonb within a row",
            instead="Build the document with jsonb_build_object.",
        )
    if isinstance(value, dict):
        return {key: _check_digits(item) for key, item in value.items()}
    return [_check_digits(item) for item in value] if isinstance(value, list) else value


def write_plain(value: Any) -> str:
    """As json: keys in the given order, without spaces.

    >>> write_plain({"b": [1, None], "a": "x"})
    '{"b":[1,null],"a":"x"}'
    """
    if isinstance(value, dict):
        return "{" + ",".join(f"{show_json(key)}:{write_plain(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write_plain, value)) + "]"
    return show_json(value)


def to_jsonb(native: str, duck_type: str) -> str:
    """
    >>> to_jsonb('{"m":1.1,"at":"2024-01-01 10:00:00"}', "STRUCT(m DECIMAL(10,2), at TIMESTAMP)")
    '{"m": 1.10, "at": "2024-01-01T10:00:00"}'
    """
    return show_json(read_value(native, duck_type))


def to_json(native: str, duck_type: str) -> str:
    return write_plain(read_value(native, duck_type))


def write_array(native: str, duck_type: str) -> str:
    """The result of json_agg for a list: arrays and objects start on a new line."""
    items = read_value(native, duck_type)
    nested = any(isinstance(item, dict | list) for item in items)
    return "[" + (", \n " if nested else ", ").join(map(write_plain, items)) + "]"


def _pairs(keys: Sequence[str | None], items: Sequence[str | None]) -> list[tuple[str, str]]:
    if None in keys:
        raise errors.InvalidParameterValue(detail=f"argument {2 * keys.index(None) + 1}: key must not be null")
    return [(str(key), item or "null") for key, item in zip(keys, items, strict=True)]


def build_object(keys: Sequence[str | None], items: Sequence[str | None]) -> str:
    """A jsonb from keys and the texts of documents.

    >>> build_object(["bb", "a", "a"], ["1", None, '"x"'])
    '{"a": "x", "bb": 1}'
    """
    return show_json({key: parse_json(item) for key, item in _pairs(keys, items)})


def write_object(keys: Sequence[str | None], items: Sequence[str | None]) -> str:
    """A json from keys and the texts of documents.

    >>> write_object(["bb", "a"], ["1", None])
    '{"bb" : 1, "a" : null}'
    """
    return "{" + ", ".join(f"{show_json(key)} : {item}" for key, item in _pairs(keys, items)) + "}"


def _taken(keys: Sequence[str | None], array: str, refused: type[errors.Error]) -> list[tuple[str, Any]]:
    if None in keys:
        raise refused(detail="field name must not be null")
    return list(zip(map(str, keys), _DECODER.decode(array), strict=True))


def gather_object(keys: Sequence[str | None], array: str) -> str:
    """The result of jsonb_object_agg for keys and an array of items; the last of several equal keys counts."""
    return show_json(dict(_taken(keys, array, errors.InvalidParameterValue)))


def gather_plain_object(keys: Sequence[str | None], array: str) -> str:
    """
    >>> gather_plain_object(["a", "b"], '[1, {"x": 2}]')
    '{ "a" : 1, "b" : {"x":2} }'
    """
    taken = _taken(keys, array, errors.NullValueNotAllowed)
    return "{ " + ", ".join(f"{show_json(key)} : {write_plain(item)}" for key, item in taken) + " }"


def pair_texts(words: Sequence[str | None]) -> str:
    """jsonb_object of one array: alternating keys and values."""
    if len(words) % 2:
        raise errors.ArraySubscriptError(detail="array must have even number of elements")
    return pair_lists(words[::2], words[1::2])


def pair_lists(keys: Sequence[str | None], texts: Sequence[str | None]) -> str:
    """jsonb_object of two arrays."""
    if len(keys) != len(texts):
        raise errors.ArraySubscriptError(detail="mismatched array dimensions")
    if None in keys:
        raise errors.NullValueNotAllowed(detail="null value not allowed for object key")
    return show_json(dict(zip(map(str, keys), texts, strict=True)))


def _expect(document: str, kind: type, message: str) -> Any:
    value = parse_json(document)
    if not isinstance(value, kind):
        raise errors.InvalidParameterValue(detail=message)
    return value


def elements(document: str) -> list[str]:
    return [show_json(item) for item in _expect(document, list, "cannot extract elements from an object")]


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else show_json(value)


def element_texts(document: str) -> list[str | None]:
    return [_text(item) for item in _expect(document, list, "cannot extract elements from an object")]


def _members(document: str, show: Callable[[Any], str | None]) -> list[dict[str, str | None]]:
    found = _expect(document, dict, "cannot deconstruct an array as an object")
    return [{"key": key, "value": show(item)} for key, item in found.items()]


def members(document: str) -> list[dict[str, str | None]]:
    """
    >>> members('{"b": 1, "a": null}')
    [{'key': 'b', 'value': '1'}, {'key': 'a', 'value': 'null'}]
    """
    return _members(document, show_json)


def member_texts(document: str) -> list[dict[str, str | None]]:
    return _members(document, _text)


def keys(document: str) -> list[str]:
    return list(_expect(document, dict, "cannot call jsonb_object_keys on an array"))
