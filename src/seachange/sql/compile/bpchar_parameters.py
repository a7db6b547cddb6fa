"""Parameters that are compared with char columns."""

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
    """Trailing spaces of parameters that are compared with char columns are insignificant.

    Rows store char values without padding and clients receive them padded, so they send padded values back.
    """
    found: list[tuple[str, int]] = []
    for node in tree.find_all(*_COMPARISONS):
        sides = list(node.iter_expressions())
        columns = [side.name for side in sides if isinstance(side, exp.Column)]
        numbers = [int(side.this.name) for side in sides if isinstance(side, exp.Parameter)]
        found += [(name, number) for name in columns for number in numbers]
    return tuple(dict.fromkeys(found))


def without_padding(compared: Compared, tables: Iterable[Table], values: Mapping[int, Any]) -> dict[int, Any]:
    """Those of the parameters that must be passed without their padding."""
    padded = {n for _, n in compared if isinstance(values.get(n), str) and values[n].endswith(" ")}
    if not padded:
        return {}
    names = {column.name for table in tables for column in table.columns if column.type.kind is Kind.CHAR}
    return {number: values[number].rstrip(" ") for name, number in compared if number in padded and name in names}
