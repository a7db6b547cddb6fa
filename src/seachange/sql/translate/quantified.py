"""Quantified comparisons, `a <> ALL (array[1, 2])`: expressed with ANY, which DuckDB supports; patterns with list
functions."""

from __future__ import annotations

from sqlglot import exp

from seachange import errors
from seachange.storage.duck_functions import PREFIX

_OPPOSITES: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
}


def translate_quantifiers(tree: exp.Expr) -> exp.Expr:
    """The parser reads both as calls of functions unless a query stands in them."""
    for like in list(tree.find_all(exp.Like, exp.ILike)):
        _match_patterns(like)
    for call in list(tree.find_all(exp.Anonymous)):
        name, comparison = call.name.lower(), call.parent
        if name not in ("all", "some"):
            continue
        if type(comparison) not in _OPPOSITES or call.arg_key != "expression" or len(call.expressions) != 1:
            raise errors.SyntaxProblem(detail=f'at or near "{name}"')
        assert comparison is not None
        listed = exp.Any(this=exp.Paren(this=call.expressions[0].copy()))
        if name == "some":
            call.replace(listed)
            continue
        # NULLs are unknown on both sides, so what does not hold for any element holds for all.
        opposite = _OPPOSITES[type(comparison)](this=comparison.this.copy(), expression=listed)
        comparison.replace(exp.Paren(this=exp.Not(this=exp.Paren(this=opposite))))
    for quantifier in list(tree.find_all(exp.Any)):
        _keep_null_unknown(quantifier)
    return tree


def _keep_null_unknown(quantifier: exp.Any) -> None:
    """DuckDB takes a list that is NULL for an empty one, of which no comparison holds: it is unknown. Where only rows
    are chosen for which a condition holds, that is the same."""
    listed, comparison = quantifier.this.unnest(), quantifier.parent
    is_list = not isinstance(listed, exp.Query | exp.Array | exp.Tuple) and type(comparison) in _OPPOSITES
    if not is_list or comparison is None or _only_chooses(comparison):
        return
    unknown = exp.Is(this=exp.Paren(this=listed.copy()), expression=exp.Null())
    known = exp.case().when(unknown, exp.Null()).else_(comparison.copy())
    comparison.replace(exp.Paren(this=known))


def _only_chooses(condition: exp.Expr) -> bool:
    above = condition.parent
    while isinstance(above, exp.And | exp.Or | exp.Paren):
        above = above.parent
    return isinstance(above, exp.Where | exp.Having | exp.Join)


def is_quantified(comparison: exp.Expr) -> bool:
    quantifier = comparison.expression
    if isinstance(quantifier, exp.Anonymous):
        return quantifier.name.lower() in ("all", "some") and len(quantifier.expressions) == 1
    return isinstance(quantifier, exp.Any | exp.All)


def _match_patterns(like: exp.Expr) -> None:
    if not is_quantified(like):
        return
    if isinstance(like.parent, exp.Not):
        # The parser does not tell NOT a LIKE ANY (...) from a NOT LIKE ANY (...), which means something else.
        raise errors.FeatureNotSupported(feature="NOT before LIKE ANY", instead="Write NOT (a LIKE ANY (...)).")
    quantifier = like.expression
    called = isinstance(quantifier, exp.Anonymous)
    patterns = quantifier.expressions[0] if called else quantifier.this.unnest()
    if isinstance(patterns, exp.Query):
        raise errors.FeatureNotSupported(feature="LIKE ANY of a query", instead="Use EXISTS.")
    some = isinstance(quantifier, exp.Any) or (called and quantifier.name.lower() == "some")
    name = f"{PREFIX}{'ilike' if isinstance(like, exp.ILike) else 'like'}_{'any' if some else 'all'}"
    like.replace(exp.Anonymous(this=name, expressions=[like.this.copy(), patterns.copy()]))
