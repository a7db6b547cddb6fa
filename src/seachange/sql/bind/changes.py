"""Binding of INSERT, UPDATE, DELETE and MERGE: a value has the type of the column that it is stored in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from sqlglot import exp

from seachange import errors
from seachange.sql.bind.conversions import check_stored
from seachange.sql.bind.expressions import Expressions, refuse_row_sets
from seachange.sql.bind.places import place_of
from seachange.sql.bind.scope import BoundColumn, NameScope, Source

AddSource: TypeAlias = Callable[[Expressions, exp.Expr, NameScope], None]
# The row that an upsert could not insert.
_EXCLUDED = "excluded"


def bind_insert(found: Expressions, tree: exp.Insert, scope: NameScope) -> NameScope:
    """Returns the names that RETURNING sees."""
    listed = tree.this if isinstance(tree.this, exp.Schema) else None
    node = listed.this if listed is not None else tree.this
    target = _target(found, node)
    columns = target.columns
    if listed is not None and columns is not None:
        by_name = {column.name: column for column in columns}
        columns = [by_name.get(item.name, BoundColumn(item.name, None)) for item in listed.expressions]
    for row in _rows(found, tree.expression, scope):
        if columns is not None:
            _check_width(row, columns, listed)
        for item, column in zip(row, columns or (), strict=False):
            _store(found, item, column)
    inner = NameScope(scope, [target])
    conflict = tree.args.get("conflict")
    if conflict is not None:
        with_excluded = NameScope(scope, [target, Source(_EXCLUDED, target.columns, _names(target))])
        _assign(found, conflict.expressions, target, with_excluded)
        if conflict.args.get("where") is not None:
            found.bind_condition(conflict.args["where"].this, with_excluded, "WHERE")
    return inner


def _check_width(row: Sequence[exp.Expr], columns: Sequence[BoundColumn], listed: exp.Schema | None) -> None:
    if len(row) > len(columns):
        error = errors.SyntaxProblem(detail="INSERT has more expressions than target columns")
        raise error.at(place_of(row[len(columns)]))
    if listed is not None and len(row) < len(columns):
        error = errors.SyntaxProblem(detail="INSERT has more target columns than expressions")
        raise error.at(place_of(listed.expressions[len(row)]))


def _rows(found: Expressions, source: exp.Expr | None, scope: NameScope) -> Iterator[Sequence[exp.Expr]]:
    """The expressions that give rows, whose constants have no type yet."""
    if isinstance(source, exp.Values):
        for row in source.expressions:
            items = row.expressions if isinstance(row, exp.Tuple) else [row]
            for item in items:
                if not isinstance(item, exp.Literal | exp.Parameter):
                    refuse_row_sets(item, "VALUES")
                found.bind(item, scope)
            yield items
    elif source is not None:
        found.bind_query(found, source, scope)
        if isinstance(source, exp.Select) and not source.is_star:
            yield [item.unalias() for item in source.expressions]


def bind_update(found: Expressions, tree: exp.Update, scope: NameScope, add: AddSource) -> NameScope:
    target = _target(found, tree.this)
    inner = NameScope(scope, [target])
    _add_others(found, tree.args.get("from_"), inner, add)
    _assign(found, tree.expressions, target, inner)
    if tree.args.get("where") is not None:
        found.bind_condition(tree.args["where"].this, inner, "WHERE")
    return inner


def bind_delete(found: Expressions, tree: exp.Delete, scope: NameScope, add: AddSource) -> NameScope:
    inner = NameScope(scope, [_target(found, tree.this)])
    _add_others(found, tree.args.get("using"), inner, add)
    if tree.args.get("where") is not None:
        found.bind_condition(tree.args["where"].this, inner, "WHERE")
    return inner


def bind_merge(found: Expressions, tree: exp.Merge, scope: NameScope, add: AddSource) -> NameScope:
    target = _target(found, tree.this)
    inner = NameScope(scope, [target])
    add(found, tree.args["using"], inner)
    found.bind_condition(tree.args["on"], inner, "MERGE ON")
    for branch in tree.args["whens"].expressions:
        if branch.args.get("condition") is not None:
            found.bind_condition(branch.args["condition"], inner, "MERGE WHEN AND")
        action = branch.args.get("then")
        if isinstance(action, exp.Update):
            _assign(found, action.expressions, target, inner)
        elif isinstance(action, exp.Insert) and isinstance(action.expression, exp.Tuple):
            names = [item.name for item in action.this.expressions] if action.this is not None else None
            by_name = {column.name: column for column in target.columns or ()}
            listed = [by_name[name] for name in (by_name if names is None else names) if name in by_name]
            for item in action.expression.expressions:
                found.bind(item, inner)
            for item, column in zip(action.expression.expressions, listed, strict=False):
                _store(found, item, column)
    return inner


def _target(found: Expressions, node: exp.Expr) -> Source:
    schema = node.args.get("db")
    return Source(node.alias_or_name, found.catalog.columns(schema.name if schema is not None else None, node.name))


def _names(source: Source) -> tuple[str, ...]:
    return tuple(column.name for column in source.columns or ())


def _add_others(found: Expressions, clause: object, scope: NameScope, add: AddSource) -> None:
    items = [clause.this] if isinstance(clause, exp.From) else clause if isinstance(clause, list) else []
    for item in items:
        add(found, item, scope)


def _assign(found: Expressions, items: Sequence[exp.Expr], target: Source, scope: NameScope) -> None:
    """SET column = value, or (columns) = (values)."""
    columns = {column.name: column for column in target.columns or ()}
    for item in items:
        if not isinstance(item, exp.EQ):
            continue
        left, right = item.this, item.expression
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
            pairs = list(zip(left.expressions, right.expressions, strict=False))
        else:
            pairs = [(left, right)]
        for column, value in pairs:
            refuse_row_sets(value, "UPDATE")
            found.bind(value, scope)
            if column.name in columns:
                _store(found, value, columns[column.name])


def _store(found: Expressions, value: exp.Expr, column: BoundColumn) -> None:
    check_stored(found.types.get(id(value)), column, value, found.shown)
    found.assign(value, column.type)
