"""Result types: functions whose result has another type in DuckDB are cast to PostgreSQL's, unless only compared.

What is compared keeps the form in which the conditions of indexes and checks have it.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange.sql.bind.names import function_name, postgres_name

# By the names that sqlglot gives them.
_INTEGERS: Final = frozenset(
    {
        *("array_lower", "array_ndims", "array_position", "array_size", "array_upper", "bit_length", "cardinality"),
        *("json_array_length", "jsonb_array_length", "length", "octet_length", "regexp_count", "regexp_instr"),
        "str_position",
    }
)
# Digits behind the point, as extract has them; of all other fields none.
_SCALES: Final = {
    "EPOCH": 6,
    "SECOND": 6,
    "SECONDS": 6,
    "MILLISECOND": 3,
    "MILLISECONDS": 3,
    "JULIAN": 12,
}
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)


def declare_results(tree: exp.Expr) -> exp.Expr:
    """A pass before functions are translated."""
    # The root is replaced like any other node, since there is always one above it.
    holder = exp.Paren(this=tree)
    for node in reversed(list(holder.find_all(exp.Func))):
        declared = _declared(node)
        if declared is not None and not isinstance(_above(node), _COMPARISONS):
            node.replace(exp.cast(node.copy(), declared))
    return holder.this.pop()  # type: ignore[no-any-return]


def drop_declared(holder: exp.Expr) -> None:
    """The opposite: leaves out the casts that PostgreSQL does not have. The holder itself is none."""
    for cast in list(holder.find_all(exp.Cast)):
        if isinstance(cast.this, exp.Func) and _declared(cast.this) == cast.to:
            cast.replace(cast.this.copy())


def _declared(node: exp.Func) -> exp.DataType | None:
    if isinstance(node, exp.Extract) and postgres_name(node) == "date_part":
        return exp.DataType.build("DOUBLE")
    if isinstance(node, exp.Extract):
        scale = _SCALES.get(node.this.name.upper(), 0)
        return exp.DataType.build(f"DECIMAL({max(18, scale + 8)},{scale})")
    return exp.DataType.build("INT") if function_name(node) in _INTEGERS else None


def _above(node: exp.Expr) -> exp.Expr | None:
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return above
