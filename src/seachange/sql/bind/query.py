"""Binding of queries: FROM, WITH, set operations, and the columns of results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.bind.binder import bind_node
from seachange.sql.bind.calls import called
from seachange.sql.bind.cast_types import cast_type
from seachange.sql.bind.changes import bind_delete, bind_insert, bind_merge, bind_update
from seachange.sql.bind.expressions import BindNode, Expressions
from seachange.sql.bind.output_names import output_name
from seachange.sql.bind.places import place_of
from seachange.sql.bind.scope import BindCatalog, BoundColumn, Columns, NameScope, Source
from seachange.sql.bind.sorting import bind_group, bind_order, check_distinct
from seachange.sql.bind.types import BIGINT, RECORD, TEXT, UNKNOWN, BoundType, element_of, named
from seachange.sql.text.scope import GIVEN, GIVEN_SCHEMA, WITH_HIDDEN

# Columns of functions that return several.
_RECORDS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "json_each": (("key", "text"), ("value", "json")),
    "jsonb_each": (("key", "text"), ("value", "jsonb")),
    "json_each_text": (("key", "text"), ("value", "text")),
    "jsonb_each_text": (("key", "text"), ("value", "text")),
}
# Functions whose one column has a name of its own.
_NAMED: Final = {
    "json_array_elements": "value",
    "jsonb_array_elements": "value",
    "json_array_elements_text": "value",
    "jsonb_array_elements_text": "value",
}


@dataclass(frozen=True, slots=True)
class Binding:
    """`columns` are those of the result, None if they are not known; `parameters` the types of parameters by number;
    `found` all else that was found."""

    columns: Columns
    parameters: dict[int, BoundType]
    found: Expressions


def bind_tree(
    tree: exp.Expr,
    catalog: BindCatalog,
    declared: Sequence[BoundType | None] = (),
    bind: BindNode = bind_node,
) -> Binding:
    """Names in the tree are folded. `declared` are the parameter types that the client has declared. `bind` sees every
    expression with its scope."""
    parameters = {number: type_ for number, type_ in enumerate(declared, 1) if type_ is not None}
    found = Expressions(catalog, bind_query, bind, parameters)
    columns = bind_query(found, tree, NameScope())
    return Binding(columns, found.parameters, found)


def bind_query(found: Expressions, query: exp.Expr, scope: NameScope) -> Columns:
    columns = _bind_open(found, query, scope)
    return None if columns is None else [replace(c, type=TEXT) if c.type == UNKNOWN else c for c in columns]


def _bind_open(found: Expressions, query: exp.Expr, scope: NameScope) -> Columns:
    """The columns of a query, of which constants may have no type yet."""
    scope = _with_queries(found, query, scope)
    match query:
        case exp.Subquery():
            columns = _bind_open(found, query.this, scope) if isinstance(query.this, exp.Query | exp.Values) else None
            _bind_clauses(found, query, NameScope(scope))
            return columns
        case exp.SetOperation():
            return _bind_compound(found, query, scope)
        case exp.Values():
            return _bind_values(found, query, scope)
        case exp.Select():
            return _bind_select(found, query, scope)
        case exp.Insert() | exp.Update() | exp.Delete() | exp.Merge():
            return _bind_change(found, query, scope)
        case _:
            return None


def _with_queries(found: Expressions, query: exp.Expr, scope: NameScope) -> NameScope:
    with_ = query.args.get("with_")
    if with_ is None:
        return scope
    inner = NameScope(scope, queries={})
    known: dict[str, Columns] = {}
    inner.queries = known
    for cte in with_.expressions:
        names = _column_names(cte)
        if with_.args.get("recursive") and isinstance(cte.this, exp.SetOperation):
            # The first part decides the types; the second sees them.
            first = _renamed(bind_query(found, cte.this.this, inner), names)
            known[cte.alias] = first
            bind_query(found, cte.this.expression, inner)
        else:
            known[cte.alias] = _renamed(bind_query(found, cte.this, inner), names)
    return inner


def _bind_compound(found: Expressions, query: exp.SetOperation, scope: NameScope) -> Columns:
    sides = [_bind_open(found, side, scope) for side in (query.this, query.expression)]
    inner = NameScope(scope)
    _bind_limits(found, query, inner)
    left, right = sides
    if left is None or right is None:
        return None
    word = type(query).__name__.upper()
    if len(left) != len(right):
        error = errors.SyntaxProblem(detail=f"each {word} query must have the same number of columns")
        raise error.at(next((place_of(item) for item in _items_at(query.expression, 0)), None))
    columns = []
    for place, (first, second) in enumerate(zip(left, right, strict=True)):
        met = found.meet(list(_items_at(query, place)), (first.type, second.type), word)
        is_unknown = first.type == UNKNOWN and second.type == UNKNOWN
        columns.append(BoundColumn(first.name, UNKNOWN if is_unknown else met))
    if query.args.get("order") is not None:
        bind_order(found, query.args["order"].expressions, inner, columns)
    return columns


def _items_at(query: exp.Expr, place: int) -> Iterator[exp.Expr]:
    """The expressions that give a column, in each of the queries that a query is made of."""
    match query:
        case exp.SetOperation():
            yield from _items_at(query.this, place)
            yield from _items_at(query.expression, place)
        case exp.Subquery():
            yield from _items_at(query.this, place)
        case exp.Select() if not query.is_star and place < len(query.expressions):
            yield query.expressions[place].unalias()


def _bind_values(found: Expressions, query: exp.Values, scope: NameScope) -> Columns:
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in query.expressions]
    types = [[found.bind(item, scope) for item in row] for row in rows]
    if not rows or len({len(row) for row in rows}) != 1:
        return None
    columns = []
    for place in range(len(rows[0])):
        listed = [row[place] for row in types]
        is_unknown = all(type_ == UNKNOWN for type_ in listed)
        met = UNKNOWN if is_unknown else found.meet([row[place] for row in rows], listed, "VALUES")
        columns.append(BoundColumn(f"column{place + 1}", met))
    _bind_limits(found, query, scope)
    return columns


def _bind_select(found: Expressions, query: exp.Select, scope: NameScope) -> Columns:
    inner = NameScope(scope)
    from_ = query.args.get("from_")
    if from_ is not None:
        _add_source(found, from_.this, inner)
    for join in query.args.get("joins") or ():
        _add_join(found, join, inner)
    for lateral in query.args.get("laterals") or ():
        _add_source(found, lateral, inner)
    columns: list[BoundColumn] | None = []
    for item in query.expressions:
        found_columns = _item(found, item, inner)
        columns = None if columns is None or found_columns is None else [*columns, *found_columns]
    for window in query.args.get("windows") or ():
        for item in window.args.get("partition_by") or ():
            found.bind(item, inner)
        if window.args.get("order") is not None:
            bind_order(found, window.args["order"].expressions, inner)
    for key, place in (("where", "WHERE"), ("having", "HAVING")):
        if query.args.get(key) is not None:
            found.bind_condition(query.args[key].this, inner, place)
    _bind_clauses(found, query, inner, columns)
    return columns


def _bind_change(found: Expressions, tree: exp.Expr, scope: NameScope) -> Columns:
    """The columns of RETURNING."""
    match tree:
        case exp.Insert():
            inner = bind_insert(found, tree, scope)
        case exp.Update():
            inner = bind_update(found, tree, scope, _add_source)
        case exp.Delete():
            inner = bind_delete(found, tree, scope, _add_source)
        case exp.Merge():
            inner = bind_merge(found, tree, scope, _add_source)
        case _:
            return None
    columns: list[BoundColumn] | None = []
    returning = tree.args.get("returning")
    for item in returning.expressions if returning is not None else ():
        found_columns = _item(found, item, inner)
        columns = None if columns is None or found_columns is None else [*columns, *found_columns]
    return columns


def _item(found: Expressions, item: exp.Expr, scope: NameScope) -> Columns:
    value = item.unalias()
    is_qualified = isinstance(value, exp.Column) and isinstance(value.this, exp.Star)
    if isinstance(item, exp.Star) or is_qualified:
        if any(item.args.values()) and not is_qualified:
            return None
        source = value.table if isinstance(value, exp.Column) else ""
        found.stars.append((item, scope.star_names(source)))
        return scope.all_columns(source)
    type_ = found.bind(value, scope)
    name = item.alias if isinstance(item, exp.Alias) else output_name(item)
    origin = None
    if isinstance(value, exp.Column) and isinstance(value.this, exp.Identifier):
        column = scope.find_column(value.table, value.name)
        origin = column.origin if column is not None else None
    return [BoundColumn(name or "", type_, origin)]


def _bind_clauses(found: Expressions, query: exp.Expr, scope: NameScope, columns: Columns = None) -> None:
    group, order = query.args.get("group"), query.args.get("order")
    if group is not None:
        bind_group(found, group.expressions, scope, columns)
    if order is not None:
        bind_order(found, order.expressions, scope, columns)
    check_distinct(query, scope, columns)
    _bind_limits(found, query, scope)


def _bind_limits(found: Expressions, query: exp.Expr, scope: NameScope) -> None:
    for key in ("limit", "offset"):
        clause = query.args.get(key)
        count = clause.args.get("expression") or clause.args.get("count") if clause is not None else None
        if count is not None:
            found.bind(count, scope)
            found.convert(count, BIGINT)


def _add_join(found: Expressions, join: exp.Join, scope: NameScope) -> None:
    before = len(scope.sources)
    _add_source(found, join.this, scope)
    names = [name.name for name in join.args.get("using") or ()]
    if join.method == "NATURAL":
        names = _shared_names(scope.sources[:before], scope.sources[before:])
    if names:
        _match_columns(found, scope, names, before)
    if join.args.get("on") is not None:
        found.bind_condition(join.args["on"], scope, "JOIN/ON")


def _shared_names(left: Sequence[Source], right: Sequence[Source]) -> list[str]:
    if any(source.columns is None for source in (*left, *right)):
        return []
    others = {column.name for source in right for column in source.columns or ()}
    return [c.name for source in left for c in source.columns or () if c.name in others and c.name not in source.merged]


def _match_columns(found: Expressions, scope: NameScope, names: Sequence[str], before: int) -> None:
    """JOIN USING compares columns of both sides; without a qualifier the name means the left one."""
    left, right = NameScope(sources=scope.sources[:before]), NameScope(sources=scope.sources[before:])
    for name in names:
        pair = [side.find_column("", name) for side in (left, right)]
        found.operate("=", (exp.Null(), exp.Null()), [c.type if c is not None else None for c in pair])
    for place in range(before, len(scope.sources)):
        source = scope.sources[place]
        scope.sources[place] = replace(source, merged=tuple(dict.fromkeys((*names, *source.merged))))


def _add_source(found: Expressions, node: exp.Expr, scope: NameScope) -> None:
    for source in _sources(found, node, scope):
        scope.sources.append(source)
    for join in node.args.get("joins") or ():
        _add_join(found, join, scope)


def _sources(found: Expressions, node: exp.Expr, scope: NameScope) -> Iterator[Source]:
    names = _column_names(node)
    match node:
        case exp.Table(this=exp.Identifier()):
            columns = _renamed(_relation(found, node, scope), names)
            yield Source(node.alias_or_name, columns, has_hidden=bool(node.meta_get(WITH_HIDDEN)))
        case exp.Table(this=exp.Func() as call):
            yield _function(found, node, call, scope)
        case exp.Table() if node.args.get("rows_from"):
            yield Source(node.alias, _renamed(_parallel(found, node, scope), names))
        case exp.Subquery(this=exp.Table()):
            _add_source(found, node.this, scope)
        case exp.Subquery() | exp.Values():
            yield Source(node.alias, _renamed(bind_query(found, _unnamed(node), scope.parent or NameScope()), names))
        case exp.Lateral(this=exp.Subquery() as query):
            yield Source(node.alias, _renamed(bind_query(found, query, scope), names))
        case exp.Lateral(this=exp.Unnest() as inner):
            yield Source(node.alias or "unnest", _unnest_columns(found, inner, scope, names))
        case exp.Lateral(this=exp.Func() as call):
            yield _function(found, node, call, scope)
        case exp.Unnest():
            yield Source(node.alias or "unnest", _unnest_columns(found, node, scope, names))
        case _:
            yield Source(node.alias, None)


def _unnamed(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Subquery) and not node.args.get("with_") else node


def _relation(found: Expressions, node: exp.Table, scope: NameScope) -> Columns:
    if node.meta_get(GIVEN):
        return found.catalog.columns(GIVEN_SCHEMA, node.name)
    if not node.args.get("db"):
        is_query, columns = scope.find_query(node.name)
        if is_query:
            return columns
    return found.catalog.columns(node.db or None, node.name)


def _function(found: Expressions, node: exp.Expr, call: exp.Func, scope: NameScope) -> Source:
    columns = _function_columns(found, node, call, scope)
    alone = columns[0].type if columns is not None and len(columns) == 1 else None
    return Source(node.alias or called(call), columns, row=alone or RECORD)


def _parallel(found: Expressions, node: exp.Table, scope: NameScope) -> Columns:
    """ROWS FROM: the columns of several functions."""
    columns: list[BoundColumn] = []
    for item in node.args["rows_from"]:
        for source in _sources(found, item, scope):
            if source.columns is None:
                return None
            columns += source.columns
    return [*columns, BoundColumn("ordinality", BIGINT)] if node.args.get("ordinality") else columns


def _function_columns(found: Expressions, node: exp.Expr, call: exp.Func, scope: NameScope) -> Columns:
    name, alias = called(call), node.args.get("alias")
    type_ = found.bind(call, scope)
    given = alias.columns if alias is not None else []
    if given and all(isinstance(item, exp.ColumnDef) for item in given):
        return [BoundColumn(item.name, cast_type(item.args["kind"], found.catalog)) for item in given]
    if name in _RECORDS:
        columns = [BoundColumn(column, named(kind)) for column, kind in _RECORDS[name]]
    elif name in _NAMED:
        columns = [BoundColumn(_NAMED[name], type_)]
    elif type_ is None or type_ == RECORD:
        return None
    else:
        columns = [BoundColumn(node.alias or name, type_)]
    if node.args.get("ordinality"):
        columns.append(BoundColumn("ordinality", BIGINT))
    return _renamed(columns, [item.name for item in given])


def _unnest_columns(found: Expressions, node: exp.Unnest, scope: NameScope, names: Sequence[str]) -> Columns:
    columns = []
    for item in node.expressions:
        type_ = found.bind(item, scope)
        element = element_of(type_) if type_ is not None else None
        alone = len(node.expressions) == 1
        columns.append(BoundColumn((node.alias if alone else "") or "unnest", element))
    offset = node.args.get("offset")
    renamed = _renamed(columns, names)
    if renamed is None or not offset:
        return renamed
    return [*renamed, BoundColumn(offset.name if isinstance(offset, exp.Identifier) else "ordinality", BIGINT)]


def _column_names(node: exp.Expr) -> list[str]:
    alias = node.args.get("alias")
    return [item.name for item in alias.columns] if isinstance(alias, exp.TableAlias) else []


def _renamed(columns: Columns, names: Sequence[str]) -> Columns:
    if columns is None or not names:
        return columns
    given = [replace(column, name=name) for column, name in zip(columns, names, strict=False)]
    return [*given, *columns[len(given) :]]
