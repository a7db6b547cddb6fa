"""Time functions, whose value is the same throughout a transaction or statement.

The session passes the times as parameters, in microseconds since 1970.

**Invariant:** the calls are bound as parameters from the transaction; only what a descriptor stores keeps them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import sqlglot
from sqlglot import exp

from seachange.sql.bind.names import NOW, is_now

TRANSACTION: Final = "transaction_us"
STATEMENT: Final = "statement_us"
CLOCK: Final = "clock_us"


def _moment(parameter: str) -> str:
    return f"make_timestamptz(${parameter})"


_NOW: Final = _moment(TRANSACTION)
_LOCAL: Final = f"CAST({_NOW} AS TIMESTAMP)"

# By the names that functions and keywords have in DuckDB's text, what they stand for.
MOMENTS: Final[dict[str, str]] = {
    NOW: _NOW,
    "current_timestamp": _NOW,
    "transaction_timestamp": _NOW,
    "statement_timestamp": _moment(STATEMENT),
    "clock_timestamp": _moment(CLOCK),
    "localtimestamp": _LOCAL,
    "current_date": f"CAST({_LOCAL} AS DATE)",
    "localtime": f"CAST({_LOCAL} AS TIME)",
    "current_time": f"CAST({_LOCAL} AS TIME)",
}
_NODES: Final[dict[type[exp.Expr], str]] = {
    exp.CurrentTimestamp: "current_timestamp",
    exp.Localtimestamp: "localtimestamp",
    exp.CurrentDate: "current_date",
    exp.Localtime: "localtime",
    exp.CurrentTime: "current_time",
}


def spell_now(tree: exp.Expr) -> None:
    """Below its root: now() stays what it was written as."""
    for node in [found for found in tree.find_all(exp.CurrentTimestamp) if is_now(found)]:
        node.replace(exp.Anonymous(this=NOW))


def name_moments(tree: exp.Expr) -> set[str]:
    """Puts parameters in the place of functions of time; gives the parameters."""
    used: set[str] = set()
    for node in list(tree.find_all(*_NODES, exp.Anonymous)):
        name = _NODES.get(type(node))
        if name is None and not node.expressions:
            name = node.name.lower()
        if name in MOMENTS:
            moment = _tree(MOMENTS[name]).copy()
            used |= {parameter.name for parameter in moment.find_all(exp.Placeholder)}
            node.replace(moment)
    return used


@lru_cache(maxsize=len(MOMENTS))
def _tree(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect="duckdb")
