"""Comparisons with all or some elements of a list, `a <> ALL (array[1, 2])`, put by ANY, which DuckDB knows."""

from __future__ import annotations

from sqlglot import exp

from seachange import errors

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
    return tree
