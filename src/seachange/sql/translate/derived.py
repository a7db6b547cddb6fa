"""Origins of subquery columns: the kind of a number follows from what it was computed from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import exp

from seachange.sql.text.scope import is_cte_reference

# The search ends after this many nodes: an origin may name other columns twice, and these again.
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
    return _in_source(sources[0], column.name)


def _in_source(source: exp.Expr, name: str) -> exp.Expr | None:
    rows, names = _rows(source)
    return None if rows is None else _item(rows, name, names)


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    from_ = select.args.get("from_")
    if from_ is not None:
        yield from_.this
    for join in select.args.get("joins") or ():
        yield join.this


def _rows(source: exp.Expr) -> tuple[exp.Expr | None, Sequence[str]]:
    """The query that gives the rows of a source, if it is one, and the names that their columns are given."""
    names = _column_names(source)
    if isinstance(source, exp.Lateral):
        return (source.this.this if isinstance(source.this, exp.Subquery) else None), names
    if isinstance(source, exp.Subquery | exp.Values):
        return (source.this if isinstance(source, exp.Subquery) else source), names
    if not isinstance(source, exp.Table) or not is_cte_reference(source):
        return None, names
    query: exp.Expr | None = source.parent
    while query is not None:
        with_ = query.args.get("with_")
        found = [cte for cte in with_.expressions if cte.alias == source.name] if with_ is not None else []
        if with_ is not None and found:
            return (None if with_.args.get("recursive") else found[0].this), names or _column_names(found[0])
        query = query.parent
    return None, names


def _column_names(source: exp.Expr) -> list[str]:
    alias = source.args.get("alias")
    return [each.name for each in alias.columns] if alias else []


def _item(rows: exp.Expr, name: str, names: Sequence[str]) -> exp.Expr | None:
    """What gives the column of that name; `names` are those that the source gives to the columns of its rows."""
    own = _names(rows)
    found = [*names, *own[len(names) :]]
    if name in found:
        return _at(rows, found.index(name)) if found.count(name) == 1 else None
    return _starred(rows, name) if isinstance(rows, exp.Select) and not names else None


def _starred(rows: exp.Select, name: str) -> exp.Expr | None:
    """A column of a query that lists all of some table: what it names itself, or if it has one table, one of that."""
    sources = list(_sources(rows))
    named = [item for item in rows.expressions if not item.is_star and item.alias_or_name == name]
    if named:
        return named[0].unalias() if len(named) == 1 else None
    if not rows.is_star or len(sources) != 1:
        return None
    is_table = isinstance(sources[0], exp.Table) and not is_cte_reference(sources[0])
    if is_table and isinstance(sources[0].this, exp.Identifier) and not _column_names(sources[0]):
        return exp.column(name, table=sources[0].alias_or_name, quoted=True)
    return _in_source(sources[0], name)


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
        case exp.Select(expressions=[exp.Star()]):
            # So the parser represents VALUES in a WITH.
            sources = list(_sources(rows))
            inner = _rows(sources[0])[0] if len(sources) == 1 else None
            return _at(inner, place) if inner is not None else None
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
