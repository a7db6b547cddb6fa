"""The order of jsonb documents in PostgreSQL, as bytes that have the same order.

Null, string, number, boolean, array, object; fewer elements come first. An empty array at the top comes before all
else, and a scalar there before an array with elements.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from seachange.values.json_text import parse_json

_NULL, _TEXT, _NUMBER, _TRUTH, _ARRAY, _OBJECT = (bytes([place]) for place in range(2, 8))
_EMPTY, _SCALAR = b"\x00", b"\x01"
_END: Final = b"\x00"
# Added to exponents, so that they are positive.
_BIAS: Final = 1 << 31
_COMPLEMENT: Final = bytes(255 - byte for byte in range(256))


def order_key(document: str) -> bytes:
    """
    >>> documents = ['{"b": 0}', "10", "[1]", '"x"', "2", "[]", "-1.5", "null", "[0, 1]", "2.5"]
    >>> sorted(documents, key=order_key)
    ['[]', 'null', '"x"', '-1.5', '2', '2.5', '10', '[1]', '[0, 1]', '{"b": 0}']
    """
    value = parse_json(document)
    if value == []:
        return _EMPTY
    return _written(value) if isinstance(value, list | dict) else _SCALAR + _written(value)


def _written(value: Any) -> bytes:
    match value:
        case None:
            return _NULL
        case bool():
            return _TRUTH + bytes([value])
        case str():
            return _TEXT + _text(value)
        case list():
            return _ARRAY + len(value).to_bytes(8) + b"".join(map(_written, value))
        case dict():
            # As jsonb keeps them: shorter keys first.
            keys = sorted((key.encode() for key in value), key=lambda key: (len(key), key))
            pairs = (key + _END + _written(value[key.decode()]) for key in keys)
            return _OBJECT + len(value).to_bytes(8) + b"".join(pairs)
        case _:
            return _NUMBER + _number(Decimal(value))


def _text(value: str) -> bytes:
    return value.encode() + _END


def _number(value: Decimal) -> bytes:
    """The sign, the place of the first digit, and the digits."""
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits)).strip("0")
    if not text or not isinstance(exponent, int):
        return b"\x01"
    first = len("".join(map(str, digits)).lstrip("0")) + exponent
    key = b"\x02" + (first + _BIAS).to_bytes(5) + text.encode() + _END
    return bytes([0]) + key.translate(_COMPLEMENT) if sign else key
