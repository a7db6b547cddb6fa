"""Functions that DuckDB has under another name, or with another meaning, than PostgreSQL: by name, what they are there.

A function that is not named here means the same in both, as far as the suite that compares the two knows.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange.sql.guard import function_name
from seachange.sql.mapped import documents, lists, numbers, text, times
from seachange.sql.mapped.trees import Rewrite

_REWRITES: Final[dict[str, Rewrite]] = {
    **documents.REWRITES,
    **lists.REWRITES,
    **numbers.REWRITES,
    **text.REWRITES,
    **times.REWRITES,
}


def map_functions(tree: exp.Expr) -> exp.Expr:
    """From the inside out: an argument is what it is in DuckDB before the call around it is put."""
    for node in reversed(list(tree.find_all(exp.Func, exp.SimilarTo, exp.Like, exp.ILike, exp.DPipe))):
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
    if isinstance(node, exp.DPipe):
        return lists.append_item(node) or text.translate_concatenation(node)
    if isinstance(node, exp.Like | exp.ILike):
        return text.translate_like(node)
    assert isinstance(node, exp.Func)
    rewrite = _REWRITES.get(function_name(node))
    return rewrite(node) if rewrite is not None else None
