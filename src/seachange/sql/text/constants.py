"""Queries of nothing but constants, as clients send them to see whether anybody answers.

**Invariant:** what such a query gives depends on its text alone: on no setting, no parameter, no table, no moment.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

_CONSTANTS: Final = (exp.Literal, exp.Null, exp.Boolean, exp.Neg, exp.Alias, exp.Identifier)


def is_constant(tree: exp.Expr) -> bool:
    """
    >>> import sqlglot
    >>> [is_constant(sqlglot.parse_one(text)) for text in ("select 1, 'a' as b", "select now()", "select 1 from t")]
    [True, False, False]
    """
    if not isinstance(tree, exp.Select) or not tree.expressions:
        return False
    if any(value for name, value in tree.args.items() if name != "expressions"):
        return False
    return all(isinstance(node, _CONSTANTS) for item in tree.expressions for node in item.walk())
