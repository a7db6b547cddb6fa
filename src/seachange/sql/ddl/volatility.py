"""Volatility of functions, by the names that sqlglot gives them.

A function that is not listed is immutable. Functions of time zones are, since stored expressions are evaluated in UTC.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange.model.statements.table_statements import Volatility
from seachange.sql.translate.guard import function_name

_STABLE: Final = """
    age current_catalog current_database current_date current_schema current_time current_timestamp current_user
    current_version localtime localtimestamp now session_user statement_timestamp transaction_timestamp
"""
_VOLATILE: Final = """
    clock_timestamp currval gen_random_uuid lastval nextval rand setval uuid
"""
VOLATILITIES: Final[dict[str, Volatility]] = {
    **dict.fromkeys(_STABLE.split(), Volatility.STABLE),
    **dict.fromkeys(_VOLATILE.split(), Volatility.VOLATILE),
}
# From the strictest to the least strict.
ORDER: Final = tuple(Volatility)


def most_volatile(tree: exp.Expr) -> tuple[Volatility, str | None]:
    """The volatility of an expression, and a function that causes it."""
    worst, due_to = Volatility.IMMUTABLE, None
    for node in tree.find_all(exp.Func):
        name = function_name(node)
        found = VOLATILITIES.get(name, Volatility.IMMUTABLE)
        if ORDER.index(found) > ORDER.index(worst):
            worst, due_to = found, name
    return worst, due_to
