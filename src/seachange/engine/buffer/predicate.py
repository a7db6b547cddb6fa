"""Conditions on the columns of a table, compiled to a predicate on its rows.

**Invariant:** the predicate is true for every row that meets the conditions of a statement. Values are compared by
their encoded form, which is also the order of indexes, so the answer equals that of an index lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from seachange.model.condition import Above, Among, Below, Condition, IsNull, MeetsCondition, StartsWith
from seachange.model.schema.descriptor import Column
from seachange.storage.keys import KeyCodec

Row = tuple[Any, ...]
Question = Callable[[Any], bool]
Predicate = Callable[[Row], bool]


def compile_predicate(columns: Sequence[Column], conditions: Sequence[Condition]) -> Predicate:
    """Compiles the conjunction of the conditions. A condition on a column that the rows do not have counts as met."""
    positions = {column.id: i for i, column in enumerate(columns)}
    known = [condition for condition in conditions if condition.column in positions]
    terms = [(positions[c.column], _compile(c, columns[positions[c.column]])) for c in known]

    def meets(row: Row) -> bool:
        return all(question(row[position]) for position, question in terms)

    return meets


def _compile(condition: Condition, column: Column) -> Question:
    codec = KeyCodec([column.type])

    def encode(value: Any) -> bytes:
        return codec.encode_at(0, value)

    match condition:
        case IsNull():
            return lambda value: value is None
        case Among(_, values):
            encoded = frozenset(map(encode, values))
            return lambda value: value is not None and encode(value) in encoded
        case Above(_, bound, inclusive):
            low = encode(bound)
            return lambda value: value is not None and (encode(value) > low or (inclusive and encode(value) == low))
        case Below(_, bound, inclusive):
            high = encode(bound)
            return lambda value: value is not None and (encode(value) < high or (inclusive and encode(value) == high))
        case StartsWith(_, prefix):
            return lambda value: value is not None and value.startswith(prefix)
        case MeetsCondition():
            return lambda _: True
