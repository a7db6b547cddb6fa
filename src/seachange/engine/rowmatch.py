"""Conditions on single rows, without DuckDB.

**Invariant:** values compare as their encodings in keys do, which is how DuckDB compares values of one type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from seachange.engine.keyrange import narrow
from seachange.model.condition import Among, Condition
from seachange.model.descriptor import Column
from seachange.storage.keys import KeyCodec

Row = tuple[Any, ...]
Test = Callable[[Row], bool]


def keep_matching(rows: Sequence[Row], columns: Sequence[Column], conditions: Sequence[Condition]) -> list[Row]:
    """The rows, whose values are those of `columns`, that meet all conditions."""
    by_id = {column.id: position for position, column in enumerate(columns)}
    tests = [_test(by_id[c.column], columns[by_id[c.column]], c) for c in conditions]
    return [row for row in rows if all(test(row) for test in tests)]


def _test(position: int, column: Column, condition: Condition) -> Test:
    codec = KeyCodec([column.type])
    if isinstance(condition, Among):
        values = {codec.encode_at(0, value) for value in condition.values}
        return lambda row: codec.encode_at(0, row[position]) in values
    low, high = narrow(codec, 0, [condition])
    return lambda row: low <= codec.encode_at(0, row[position]) < high
