"""Parameters that are compared with columns of type char: the spaces at their ends do not count.

Rows hold such values without them, and clients get them with as many as the column is wide, so they send them back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlglot import exp

from seachange.model.schema.descriptor import Table
from seachange.values.types import Kind

# A column by its name, and the number of the parameter.
Compared = tuple[tuple[str, int], ...]
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between)


def note_compared(tree: exp.Expr) -> Compared:
    found: list[tuple[str, int]] = []
    for node in tree.find_all(*_COMPARISONS):
        sides = list(node.iter_expressions())
        columns = [side.name for side in sides if isinstance(side, exp.Column)]
        numbers = [int(side.this.name) for side in sides if isinstance(side, exp.Parameter)]
        found += [(name, number) for name in columns for number in numbers]
    return tuple(dict.fromkeys(found))


def without_padding(compared: Compared, tables: Iterable[Table], values: Mapping[int, Any]) -> dict[int, Any]:
    """The parameters among these that are to be given otherwise."""
    padded = {n for _, n in compared if isinstance(values.get(n), str) and values[n].endswith(" ")}
    if not padded:
        return {}
    names = {column.name for table in tables for column in table.columns if column.type.kind is Kind.CHAR}
    return {number: values[number].rstrip(" ") for name, number in compared if number in padded and name in names}
