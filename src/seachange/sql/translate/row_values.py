"""Row comparisons, `(a, b) > (1, 2)`, rewritten as comparisons of their columns.

DuckDB compares rows as values, in which NULLs are equal and last. In SQL a comparison that comes down to a NULL is
unknown, and a row is NULL if all of its columns are.
"""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from seachange import errors
from seachange.storage.duck_functions import PREFIX

# The comparison of columns that decides where all before them are equal, and the one that decides earlier.
_ORDERS: dict[type[exp.Expr], type[exp.Binary]] = {exp.GT: exp.GT, exp.GTE: exp.GT, exp.LT: exp.LT, exp.LTE: exp.LT}
# DuckDB takes long to plan many alternatives. In a list of more rows than this it compares rows as values where no
# column is NULL; where one is, the answer is unknown, though it may be certain that no row of the list is equal.
_ROWS_MAX = 32
_COMPARISONS: tuple[type[exp.Binary], ...] = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


def show_rows(tree: exp.Expr) -> exp.Expr:
    """Rows in the list of the statement, or cast to text, are shown as PostgreSQL writes them."""
    selects: list[exp.Expr] = [tree]
    items: list[exp.Expr] = []
    while selects:
        query = selects.pop()
        if isinstance(query, exp.SetOperation):
            selects += [query.this.unnest(), query.expression.unnest()]
        elif isinstance(query, exp.Select):
            items += [item.unalias() for item in query.expressions]
    for cast in tree.find_all(exp.Cast):
        if cast.to.is_type(*exp.DataType.TEXT_TYPES):
            items.append(cast.this)
    for item in items:
        columns = _columns(item)
        if columns is not None:
            texts = [exp.Anonymous(this=f"{PREFIX}shown", expressions=[column.copy()]) for column in columns]
            listed = exp.cast(exp.Array(expressions=texts), exp.DataType.build("TEXT[]", dialect="duckdb"))
            item.replace(exp.Anonymous(this=f"{PREFIX}record", expressions=[listed]))
    return tree


def expand_rows(tree: exp.Expr) -> exp.Expr:
    """The root is a statement, which is no comparison itself."""
    for node in list(tree.find_all(*_COMPARISONS, exp.In, exp.Is)):
        expanded = _expand(node)
        if expanded is not None:
            node.replace(exp.Paren(this=expanded))
    return tree


def _expand(node: exp.Expr) -> exp.Expr | None:
    columns = _columns(node.this)
    if columns is None:
        return None
    match node:
        case exp.In() if node.expressions and all(_columns(value) is not None for value in node.expressions):
            return _is_among(node, columns)
        case exp.Is() if isinstance(node.expression, exp.Null):
            negated = node.args.get("negate")
            return _all_of([exp.Is(this=c.copy(), expression=exp.Null(), negate=negated) for c in columns])
        case exp.Binary() if isinstance(node, _COMPARISONS) and _columns(node.expression) is not None:
            return _compare(type(node), node.this, node.expression)
        case exp.EQ() | exp.NEQ() if isinstance(node.expression, exp.Subquery):
            return _compare_found(node, columns)
        case _:
            return None


def _compare_found(node: exp.Binary, columns: list[exp.Expr]) -> exp.Expr | None:
    """With the row that a subquery finds: as values, unless a column is NULL."""
    query = node.expression.this
    if not isinstance(query, exp.Select) or len(query.expressions) != len(columns):
        return None
    found = query.copy()
    found.set("expressions", [exp.Anonymous(this="row", expressions=[e.unalias() for e in found.expressions])])
    row = exp.Anonymous(this="row", expressions=[column.copy() for column in columns])
    known = _all_of([exp.Is(this=c.copy(), expression=exp.Null(), negate=True) for c in columns])
    return exp.Case(ifs=[exp.If(this=known, true=type(node)(this=row, expression=exp.Subquery(this=found)))])


def _is_among(node: exp.In, columns: list[exp.Expr]) -> exp.Expr:
    long = len(node.expressions) > _ROWS_MAX
    whole = [value for value in node.expressions if long and not value.find(exp.Null)]
    terms = [_compare(exp.EQ, node.this, value) for value in node.expressions if not long or value.find(exp.Null)]
    if whole:
        known = _all_of([exp.Is(this=c.copy(), expression=exp.Null(), negate=True) for c in columns])
        among = exp.In(this=node.this.copy(), expressions=[value.copy() for value in whole])
        terms.append(exp.Case(ifs=[exp.If(this=known, true=among)]))
    return _any_of(terms)


def _columns(node: exp.Expr) -> list[exp.Expr] | None:
    """The columns of a row that is written out."""
    node = node.unnest()
    is_row = isinstance(node, exp.Tuple) or (isinstance(node, exp.Anonymous) and node.name.lower() == "row")
    return list(node.expressions) if is_row and node.expressions else None


def _compare(comparison: type[exp.Expr], one: exp.Expr, other: exp.Expr) -> exp.Expr:
    columns, others = _columns(one), _columns(other)
    if columns is None or others is None:
        return comparison(this=one.copy(), expression=other.copy())
    if len(columns) != len(others):
        raise errors.SyntaxProblem(detail="rows that are compared have different numbers of columns")
    pairs = list(zip(columns, others, strict=True))
    if comparison not in _ORDERS:
        terms = [_compare(comparison, c, o) for c, o in pairs]
        return _any_of(terms) if comparison is exp.NEQ else _all_of(terms)
    decided = _compare(comparison, *pairs[-1])
    for column, value in reversed(pairs[:-1]):
        same = _all_of([_compare(exp.EQ, column, value), decided])
        decided = _any_of([_compare(_ORDERS[comparison], column, value), same])
    return decided


def _all_of(terms: list[exp.Expr]) -> exp.Expr:
    return exp.Paren(this=reduce(lambda one, other: exp.And(this=one, expression=other), terms))


def _any_of(terms: list[exp.Expr]) -> exp.Expr:
    return exp.Paren(this=reduce(lambda one, other: exp.Or(this=one, expression=other), terms))
