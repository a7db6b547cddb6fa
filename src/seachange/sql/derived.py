"""What columns of subqueries are made of: the kind of a number is told by what it was computed from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import exp

from seachange.sql.scope import is_cte_reference

# Beyond so many nodes nobody looks further: what a column is made of may name others twice, and these others.
_NODES_MAX: Final = 300


def resolve_columns(node: exp.Expr) -> exp.Expr:
    """A copy, in which expressions stand for columns that a subquery, WITH or VALUES of the query around computes. What
    is not certain stays a column."""
    return _resolve(node, [_NODES_MAX])


def _resolve(node: exp.Expr, left: list[int]) -> exp.Expr:
    made = node.copy()
    for column, place in zip(list(node.find_all(exp.Column)), list(made.find_all(exp.Column)), strict=True):
        found = _made_of(column) if left[0] > 0 else None
        if found is None:
            continue
        left[0] -= sum(1 for _ in found.walk())
        meant = exp.paren(_resolve(found, left), copy=False)
        if place is made:
            return meant
        place.replace(meant)
    return made


def _made_of(column: exp.Column) -> exp.Expr | None:
    select = column.find_ancestor(exp.Select)
    if select is None or not isinstance(column.this, exp.Identifier):
        return None
    sources = list(_sources(select))
    if column.table:
        sources = [source for source in sources if source.alias_or_name == column.table]
    if len(sources) != 1:
        return None
    rows = _rows(sources[0])
    alias = sources[0].args.get("alias")
    return None if rows is None else _item(rows, column.name, [each.name for each in alias.columns] if alias else [])


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    from_ = select.args.get("from_")
    if from_ is not None:
        yield from_.this
    for join in select.args.get("joins") or ():
        yield join.this


def _rows(source: exp.Expr) -> exp.Expr | None:
    """The query that gives the rows of a source, if it is one."""
    if isinstance(source, exp.Subquery | exp.Values):
        return source.this if isinstance(source, exp.Subquery) else source
    if not isinstance(source, exp.Table) or not is_cte_reference(source):
        return None
    query: exp.Expr | None = source.parent
    while query is not None:
        with_ = query.args.get("with_")
        found = [cte for cte in with_.expressions if cte.alias == source.name] if with_ is not None else []
        if with_ is not None and found:
            return None if with_.args.get("recursive") or found[0].args["alias"].columns else found[0].this
        query = query.parent
    return None


def _item(rows: exp.Expr, name: str, names: Sequence[str]) -> exp.Expr | None:
    """What gives the column of that name; `names` are those that the source gives to the columns of its rows."""
    own = _names(rows)
    found = [*names, *own[len(names) :]]
    return _at(rows, found.index(name)) if found.count(name) == 1 else None


def _names(rows: exp.Expr) -> list[str]:
    while isinstance(rows, exp.SetOperation | exp.Subquery):
        rows = rows.this
    if not isinstance(rows, exp.Select) or rows.is_star:
        return []
    return [projection.alias_or_name for projection in rows.expressions]


def _at(rows: exp.Expr, place: int) -> exp.Expr | None:
    """What gives a column; of several queries or rows all of them together."""
    match rows:
        case exp.Select() if not rows.is_star and place < len(rows.expressions):
            found: exp.Expr = rows.expressions[place]
            return found.unalias()
        case exp.SetOperation():
            either = [_at(rows.this, place), _at(rows.expression, place)]
        case exp.Values():
            listed = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in rows.expressions]
            either = [row[place] if place < len(row) else None for row in listed]
        case _:
            return None
    known = [item for item in either if item is not None]
    if len(known) != len(either) or not known:
        return None
    # Of what stands in several queries each column has its own place.
    meant = [_resolve(item, [_NODES_MAX]) for item in known]
    return exp.Coalesce(this=meant[0], expressions=meant[1:])
