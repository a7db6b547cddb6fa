"""Quantified comparisons, `a <> ALL (array[1, 2])`: expressed with ANY, which DuckDB supports; patterns with list
functions."""

from __future__ import annotations

from sqlglot import exp

from seachange import errors
from seachange.sql.text.list_places import LONG_LIST
from seachange.storage.duck_functions import PREFIX
from seachange.values.array_text import parse_array

_OPPOSITES: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
}
_EXPRESSIONS = (exp.RegexpLike, exp.RegexpILike)
# Names for the rows of patterns, which no column has.
_ROWS = "pattern rows"
_ROW = "pattern row"


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
    for quantifier in list(tree.find_all(exp.Any)):
        if not _stands_for_list(quantifier.this.unnest()):
            _keep_null_unknown(quantifier)
    return tree


def join_long_lists(tree: exp.Expr) -> exp.Expr:
    """DuckDB compares with each element of a list, but finds a row of a query by its hash. A long list is not NULL."""
    for comparison in list(tree.find_all(exp.EQ)):
        quantifier = comparison.expression
        listed = quantifier.this.unnest() if isinstance(quantifier, exp.Any) else None
        if listed is not None and _stands_for_list(listed) and _is_in_where(comparison):
            query = exp.Select(expressions=[exp.Explode(this=listed.copy())])
            comparison.replace(exp.In(this=comparison.this.copy(), query=exp.Subquery(this=query)))
    return tree


def _is_in_where(comparison: exp.Expr) -> bool:
    clause = comparison.find_ancestor(exp.Where, exp.Select, exp.Join)
    return isinstance(clause, exp.Where) and not isinstance(clause.parent, exp.Filter)


def _stands_for_list(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Cast) else node
    return bool(inner.meta_get(LONG_LIST))


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


def match_patterns(tree: exp.Expr) -> exp.Expr:
    """Comparisons with several patterns, before single ones are translated."""
    for comparison in list(tree.find_all(exp.Like, exp.ILike, *_EXPRESSIONS)):
        if is_quantified(comparison):
            _match_patterns(comparison)
    return tree


def _match_patterns(comparison: exp.Expr) -> None:
    quantifier = comparison.expression
    called = isinstance(quantifier, exp.Anonymous)
    patterns = quantifier.expressions[0] if called else quantifier.this.unnest()
    some = isinstance(quantifier, exp.Any) or (called and quantifier.name.lower() == "some")
    # What is not like any is like none of all.
    negated = bool(comparison.args.get("negate"))
    some = some is not negated
    if isinstance(patterns, exp.Query):
        made = _match_rows(comparison, patterns, some)
    elif isinstance(comparison, _EXPRESSIONS) and not _is_written_out(patterns):
        unknown = exp.Is(this=exp.paren(patterns.copy()), expression=exp.null())
        made = exp.paren(exp.case().when(unknown, exp.null()).else_(_match_rows(comparison, patterns, some)))
    elif isinstance(comparison, _EXPRESSIONS):
        made = _match_each(comparison, patterns, some)
    else:
        name = f"{PREFIX}{'ilike' if isinstance(comparison, exp.ILike) else 'like'}_{'any' if some else 'all'}"
        made = exp.Anonymous(this=name, expressions=[comparison.this.copy(), patterns.copy()])
    comparison.replace(exp.Paren(this=exp.Not(this=made)) if negated else made)


def _is_written_out(patterns: exp.Expr) -> bool:
    return isinstance(patterns, exp.Array) or (isinstance(patterns, exp.Literal) and patterns.is_string)


def _match_each(comparison: exp.Expr, patterns: exp.Expr, some: bool) -> exp.Expr:
    """Regular expressions that are written out: each is translated."""
    items = list(patterns.expressions)
    if isinstance(patterns, exp.Literal):
        texts = parse_array(patterns.name)
        items = [exp.null() if text is None else exp.Literal.string(text) for text in texts]
    kind = type(comparison)
    matches = [kind(this=comparison.this.copy(), expression=item.copy()) for item in items]
    return exp.paren((exp.or_ if some else exp.and_)(*matches)) if matches else exp.convert(not some)


def _match_rows(comparison: exp.Expr, patterns: exp.Expr, some: bool) -> exp.Expr:
    """With each row of a query, or each element of an array: true for some or false for one decides; else it is unknown
    if that of any row is."""
    inner = patterns.copy()
    if not isinstance(inner, exp.Query):
        inner = exp.Select(expressions=[exp.Explode(this=inner)])
    names = exp.TableAlias(this=exp.to_identifier(_ROWS, quoted=True), columns=[exp.to_identifier(_ROW, quoted=True)])
    row = exp.column(_ROW, table=_ROWS, quoted=True)
    match: exp.Expr = type(comparison)(this=comparison.this.copy(), expression=row)
    match = exp.paren(match)
    decides = exp.LogicalOr(this=match if some else exp.Not(this=match.copy()))
    are_known = exp.EQ(this=exp.Count(this=exp.Star()), expression=exp.Count(this=match.copy()))
    found = exp.case().when(decides, exp.convert(some)).when(are_known, exp.convert(not some))
    query = exp.Select(expressions=[found], from_=exp.From(this=exp.Subquery(this=inner, alias=names)))
    return exp.Subquery(this=query)
