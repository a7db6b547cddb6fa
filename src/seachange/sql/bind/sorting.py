"""ORDER BY, DISTINCT and GROUP BY, whose items are names or positions of result columns, or expressions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.bind.expressions import Expressions
from seachange.sql.bind.overloads import Chosen
from seachange.sql.bind.places import place_of
from seachange.sql.bind.scope import Columns, NameScope
from seachange.sql.bind.types import BoundType

ORDER_BY: Final = "order by"
# Types whose values can be neither ordered nor compared.
_UNORDERED: Final = frozenset({"json"})
_EQUALITY, _ORDERING = "an equality", "an ordering"


def bind_order(found: Expressions, items: Sequence[exp.Expr], scope: NameScope, columns: Columns = None) -> None:
    """`columns` are those of the result, which names and positions may mean."""
    for item in items:
        value = item.this if isinstance(item, exp.Ordered) else item
        if columns is not None:
            _refuse_constant(value, "ORDER BY")
        type_ = _result_type(value, columns, "ORDER BY") or _bind(found, value, scope, columns)
        _check(type_, _ORDERING, value)
        found.note(item, ORDER_BY, (type_,), Chosen((type_,), type_))


def bind_group(found: Expressions, items: Sequence[exp.Expr], scope: NameScope, columns: Columns) -> None:
    for item in items:
        _refuse_constant(item, "GROUP BY")
        if isinstance(item, exp.Literal):
            _check(_result_type(item, columns, "GROUP BY"), _EQUALITY, item)
        elif isinstance(item, exp.Column):
            column = scope.find_column(item.table, item.name) if isinstance(item.this, exp.Identifier) else None
            _check(found.bind(item, scope) if column is not None else None, _EQUALITY, item)
        else:
            _check(found.bind(item, scope), _EQUALITY, item)


def check_distinct(query: exp.Expr, scope: NameScope, columns: Columns) -> None:
    """What is sorted by is among what distinguishes rows."""
    distinct, order = query.args.get("distinct"), query.args.get("order")
    if distinct is None:
        return
    for column in columns or ():
        _check(column.type, _EQUALITY, query)
    on = distinct.args.get("on")
    chosen = on.expressions if isinstance(on, exp.Tuple) else [on] if on is not None else []
    for each in chosen:
        _refuse_constant(each, "DISTINCT ON")
    if order is None or columns is None:
        return
    if on is not None:
        wanted = {_identity(item, query, scope) for item in chosen}
        first = [_identity(item.this, query, scope) for item in order.expressions[: len(wanted)]]
        if not wanted.issuperset(first):
            raise errors.InvalidColumnReference(
                detail="SELECT DISTINCT ON expressions must match initial ORDER BY expressions"
            ).at(place_of(chosen[0]))
        return
    listed = set(_listed(query, scope))
    names = {column.name for column in columns}
    for item in order.expressions:
        value = item.this
        is_name = isinstance(value, exp.Column) and not value.table and value.name in names
        if not is_name and not isinstance(value, exp.Literal) and _identity(value, query, scope) not in listed:
            raise errors.InvalidColumnReference(
                detail="for SELECT DISTINCT, ORDER BY expressions must appear in select list"
            ).at(place_of(value))


def _listed(query: exp.Expr, scope: NameScope) -> list[Hashable]:
    found: list[Hashable] = []
    for item in query.expressions:
        if item.is_star:
            found += [id(column) for column in scope.all_columns(getattr(item, "table", "")) or ()]
        else:
            found.append(_identity(item.unalias(), query, scope))
    return found


def _identity(item: exp.Expr, query: exp.Expr, scope: NameScope) -> Hashable:
    """The same for items that mean the same column, or are the same expression."""
    if isinstance(item, exp.Literal) and item.name.isdigit() and 0 < int(item.name) <= len(query.expressions):
        item = query.expressions[int(item.name) - 1].unalias()
    if not isinstance(item, exp.Column) or not isinstance(item.this, exp.Identifier):
        return item.sql()
    column = scope.find_column(item.table, item.name)
    if column is not None:
        return id(column)
    named = [each for each in query.expressions if each.alias == item.name and not item.table]
    return _identity(named[0].unalias(), query, scope) if named and named[0].unalias() is not item else item.sql()


def _result_type(item: exp.Expr, columns: Columns, place: str) -> BoundType | None:
    if not isinstance(item, exp.Literal) or item.is_string or columns is None:
        return None
    number = int(item.name) if item.name.isdigit() else 0
    if not 0 < number <= len(columns):
        error = errors.InvalidColumnReference(detail=f"{place} position {item.name} is not in select list")
        raise error.at(place_of(item))
    return columns[number - 1].type


def _refuse_constant(item: exp.Expr, place: str) -> None:
    if isinstance(item, exp.Literal) and not item.name.isdigit():
        raise errors.SyntaxProblem(detail=f"non-integer constant in {place}").at(place_of(item))


def _bind(found: Expressions, item: exp.Expr, scope: NameScope, columns: Columns) -> BoundType | None:
    if isinstance(item, exp.Column) and not item.table:
        named = [column for column in columns or () if column.name == item.name]
        if named:
            return named[0].type
    return found.bind(item, scope)


def _check(type_: BoundType | None, what: str, item: exp.Expr) -> None:
    if type_ is not None and type_.name in _UNORDERED:
        detail = f"could not identify {what} operator for type {type_}"
        raise errors.UndefinedFunction(detail=detail).at(place_of(item))
