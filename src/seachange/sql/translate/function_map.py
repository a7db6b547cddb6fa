"""The function map: functions whose name or meaning differs between PostgreSQL and DuckDB, and their equivalents.

A function that is not named here means the same in both, as far as the suite that compares the two knows.

**Invariant:** a function with another meaning in DuckDB is translated by this table, in queries and in stored
expressions alike.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.bind.names import function_name
from seachange.sql.translate.mapped import documents, lists, numbers, regexps, text, times
from seachange.sql.translate.mapped.trees import Rewrite

_OPERATORS: Final = (exp.SimilarTo, exp.Like, exp.ILike, exp.DPipe, exp.Overlaps, exp.IntDiv, exp.Is)
# How a translation stumbles over arguments that are not there, or too many.
_INCOMPLETE: Final = (AttributeError, LookupError, TypeError, ValueError)
_REWRITES: Final[dict[str, Rewrite]] = {
    **documents.REWRITES,
    **lists.REWRITES,
    **numbers.REWRITES,
    **regexps.REWRITES,
    **text.REWRITES,
    **times.REWRITES,
}


def map_functions(tree: exp.Expr) -> exp.Expr:
    """From the inside out: an argument is what it is in DuckDB before the call around it is put."""
    for node in reversed(list(tree.find_all(exp.Func, *_OPERATORS))):
        made = _rewrite(node)
        if made is not None and made is not node:
            if node is tree:
                tree = made
            else:
                node.replace(made)
    return tree


def _rewrite(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.SimilarTo):
        return text.translate_similar(node)
    if isinstance(node, exp.Overlaps):
        return times.translate_overlaps(node)
    if isinstance(node, exp.Is):
        return documents.is_json_test(node)
    if isinstance(node, exp.IntDiv):
        return numbers.divide_whole(node)
    if isinstance(node, exp.DPipe):
        return text.translate_concatenation(node)
    if isinstance(node, exp.Like | exp.ILike):
        return text.translate_like(node)
    assert isinstance(node, exp.Func)
    of_bytes = text.translate_bytes(node)
    if of_bytes is not None:
        return of_bytes
    name = function_name(node)
    rewrite = _REWRITES.get(name)
    if rewrite is None:
        return None
    try:
        return rewrite(node)
    except _INCOMPLETE:
        detail = f"function {name} does not exist with so many arguments"
        raise errors.UndefinedFunction(detail=detail) from None
