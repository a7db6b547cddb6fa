"""Sources and limits that DuckDB lacks or does differently: ROWS FROM, TABLESAMPLE, FETCH ... WITH TIES."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.translate.mapped.trees import call, number

_PERCENT: Final = 100


def expand_sources(tree: exp.Expr) -> exp.Expr:
    for table in list(tree.find_all(exp.Table)):
        if table.args.get("rows_from"):
            table.replace(_side_by_side(table))
        elif table.args.get("sample") is not None:
            table.replace(_sampled(table))
    for fetch in list(tree.find_all(exp.Fetch)):
        options = fetch.args.get("limit_options")
        if options is not None and options.args.get("with_ties"):
            _keep_ties(fetch)
    return tree


def _side_by_side(table: exp.Table) -> exp.Expr:
    """Rows of several functions, the first of each beside each other, and so on; what has ended is NULL."""
    first, *others = [_as_query(source) for source in table.args["rows_from"]]
    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=first))
    query.set("joins", [exp.Join(this=other, method="POSITIONAL") for other in others])
    alias = table.args.get("alias")
    if table.args.get("ordinality"):
        numbers = exp.Window(this=exp.RowNumber(), over="OVER")
        query.append("expressions", exp.alias_(numbers, "ordinality"))
    return exp.Subquery(this=query, alias=alias.copy() if alias is not None else None)


def _as_query(source: exp.Expr) -> exp.Expr:
    return exp.Subquery(this=exp.Select(expressions=[exp.Star()], from_=exp.From(this=source.copy())))


def _sampled(table: exp.Table) -> exp.Expr:
    """Each row with a probability; SYSTEM does the same here, since there are no pages."""
    sample = table.args["sample"]
    share = sample.args.get("percent") or sample.args.get("size")
    if sample.args.get("seed") is not None or share is None:
        raise errors.FeatureNotSupported(feature="TABLESAMPLE ... REPEATABLE", instead="Leave REPEATABLE out.")
    plain = table.copy()
    for key in ("sample", "alias"):
        plain.set(key, None)
    drawn = exp.Mul(this=call("random"), expression=number(_PERCENT))
    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=plain))
    query.set("where", exp.Where(this=exp.LT(this=drawn, expression=share.copy())))
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
    return exp.Subquery(this=query, alias=alias.copy())


def _keep_ties(fetch: exp.Fetch) -> None:
    """As many rows, and those behind that are equal to the last of them: all up to its rank."""
    query = fetch.parent
    order = query.args.get("order") if query is not None else None
    if order is None:
        raise errors.SyntaxProblem(detail="WITH TIES cannot be specified without ORDER BY clause")
    if not isinstance(query, exp.Select) or query.args.get("distinct") is not None:
        raise errors.FeatureNotSupported(feature="WITH TIES of UNION or DISTINCT", instead="Put that into FROM.")
    keys = exp.Order(expressions=[_resolved(key, query) for key in order.expressions])
    count = fetch.args.get("count") or number(1)
    offset = query.args.get("offset")
    rank = exp.Window(this=exp.Rank(), order=keys, over="OVER")
    kept: exp.Expr = exp.LTE(this=rank, expression=exp.paren(count.copy()))
    if offset is not None:
        skipped = exp.paren(offset.expression.copy())
        kept.set("expression", exp.Add(this=exp.paren(count.copy()), expression=skipped))
        place = exp.Window(this=exp.RowNumber(), order=keys.copy(), over="OVER")
        kept = exp.And(this=exp.GT(this=place, expression=skipped.copy()), expression=kept)
        query.set("offset", None)
    query.set("limit", None)
    query.set("qualify", exp.Qualify(this=kept))


def _resolved(key: exp.Ordered, query: exp.Select) -> exp.Expr:
    """A key that is the name or place of a column of the result is that column: a window knows neither."""
    made = key.copy()
    inner = made.this
    found: exp.Expr | None = None
    if isinstance(inner, exp.Literal) and not inner.is_string and inner.name.isdigit():
        place = int(inner.name)
        if not 0 < place <= len(query.expressions):
            raise errors.SyntaxProblem(detail=f"ORDER BY position {place} is not in select list")
        found = query.expressions[place - 1]
    elif isinstance(inner, exp.Column) and not inner.table:
        found = next((e for e in query.expressions if isinstance(e, exp.Alias) and e.alias == inner.name), None)
    if found is not None:
        made.set("this", found.unalias().copy())
    return made
