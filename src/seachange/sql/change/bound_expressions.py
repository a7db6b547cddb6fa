"""Expressions of a definition, bound to the columns of its table: their types decide what operators mean, and whether
an expression is valid at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import is_
from typing import TypeVar

from sqlglot import exp

from seachange import errors
from seachange.model import statements
from seachange.model.relation import RelationName
from seachange.sql.bind.query import bind_tree
from seachange.sql.bind.scope import BoundColumn
from seachange.sql.bind.types import BoundType, array_type, bound
from seachange.sql.compile.bound_catalog import PortCatalog, relation_columns
from seachange.sql.ddl.expression import RowCatalog, bind_expression
from seachange.sql.pgcatalog.facts import quote_name
from seachange.sql.port.port import TransactionPort
from seachange.sql.text.tokens import split_script
from seachange.sql.text.tree import fold_names, parse_tree

_T = TypeVar("_T")


def bind_definitions(statement: statements.DdlStatement, port: TransactionPort) -> statements.DdlStatement:
    """The statement with its expressions translated by types."""
    catalog = PortCatalog(port)
    match statement:
        case statements.CreateTable():
            binder = _Binder(RowCatalog(_defined(statement.columns, catalog), catalog, statement.table.name))
            return replace(statement, columns=binder.columns(statement.columns), rules=binder.rules(statement.rules))
        case statements.CreateIndex():
            known = _known(statement.table, port)
            if known is None:
                return statement
            binder = _Binder(RowCatalog(known, catalog, statement.table.name))
            keys = tuple(key if isinstance(key, str) else binder.bind(key) for key in statement.columns)
            return replace(statement, columns=keys, where=binder.bind(statement.where))
        case statements.CreateView():
            return replace(statement, query=_without_stars(statement.query, catalog))
        case statements.CreateMaterializedView(view=view):
            return replace(statement, view=replace(view, query=_without_stars(view.query, catalog)))
        case statements.RevertChange():
            return replace(statement, values=tuple(_bind_since(each, port, catalog) for each in statement.values))
        case statements.AlterTable():
            return _bind_actions(statement, port, catalog)
        case _:
            return statement


def _bind_since(value: statements.SinceValue, port: TransactionPort, catalog: PortCatalog) -> statements.SinceValue:
    known = _known(value.table, port)
    if known is None:
        return value
    return replace(value, value=_Binder(RowCatalog(known, catalog, value.table.name)).bind(value.value))


def _without_stars(query: str, catalog: PortCatalog) -> str:
    """The columns for each star: relations may get more columns later."""
    (raw,) = split_script(query)
    stars = bind_tree(fold_names(parse_tree(raw)), catalog).found.stars
    text = raw.text
    for node, names in sorted(stars, key=lambda star: _place(star[0])[0], reverse=True):
        start, end = _place(node)
        if names and end > start:
            shown = ", ".join(".".join(quote_name(part) for part in name if part) for name in names)
            text = text[:start] + shown + text[end:]
    return text


def _place(node: exp.Expr) -> tuple[int, int]:
    places = [(each.meta["start"], each.meta["end"] + 1) for each in node.walk() if each.meta_get("start") is not None]
    return (min(start for start, _ in places), max(end for _, end in places)) if places else (0, 0)


def _bind_actions(
    statement: statements.AlterTable, port: TransactionPort, catalog: PortCatalog
) -> statements.AlterTable:
    before = _known(statement.table, port)
    if before is None:
        return statement
    added = [action.column for action in statement.actions if isinstance(action, statements.AddColumn)]
    changed = {action.name for action in statement.actions if isinstance(action, statements.AlterColumnType)}
    now = [replace(column, type=None) if column.name in changed else column for column in before]
    name = statement.table.name
    old = _Binder(RowCatalog(before, catalog, name))
    new = _Binder(RowCatalog([*now, *_defined(added, catalog)], catalog, name))
    left = _Binder(RowCatalog(_left(before, statement, added, catalog), catalog, name))
    actions = tuple(_bind_action(action, old, new, left) for action in statement.actions)
    return replace(statement, actions=actions) if _differ(actions, statement.actions) else statement


def _left(
    before: Sequence[BoundColumn],
    statement: statements.AlterTable,
    added: Sequence[statements.ColumnDefinition],
    catalog: PortCatalog,
) -> list[BoundColumn]:
    """The columns when the statement is done."""
    types = {a.name: a.type for a in statement.actions if isinstance(a, statements.AlterColumnType)}
    gone = {a.name for a in statement.actions if isinstance(a, statements.DropColumn)}
    kept = [column for column in before if column.name not in gone]
    retyped = [replace(c, type=_type(types[c.name], catalog), origin=None) if c.name in types else c for c in kept]
    return [*retyped, *_defined(added, catalog)]


def _bind_action(action: statements.AlterAction, old: _Binder, new: _Binder, left: _Binder) -> statements.AlterAction:
    """`old` are the rows as they were, `left` as they will be; `new` has all columns."""
    match action:
        case statements.AddColumn():
            (column,), rules = new.columns([action.column]), new.rules(action.rules)
            if action.column.up is not None:
                column = replace(column, up=old.bind(action.column.up))
            is_same = column is action.column and not _differ(rules, action.rules)
            return action if is_same else replace(action, column=column, rules=rules)
        case statements.AlterColumnType():
            return replace(action, using=old.bind(action.using), down=left.bind(action.down))
        case statements.DropColumn():
            return replace(action, down=left.bind(action.down))
        case statements.SetDefault():
            return replace(action, default=new.bind(action.default))
        case statements.SetExpression():
            return replace(action, expression=new.bind(action.expression))
        case statements.AddConstraint(constraint=statements.CheckDefinition() as check):
            return replace(action, constraint=new.rules([check])[0])
        case _:
            return action


def _differ(items: Sequence[object], before: Sequence[object]) -> bool:
    """Whether one of them is not the object that it was."""
    return not all(map(is_, items, before))


class _Binder:
    def __init__(self, row: RowCatalog) -> None:
        self._row = row

    def bind(self, definition: _T) -> _T:
        """What is no expression, or was made of a stored one, stays as it is."""
        if not isinstance(definition, statements.ExpressionDefinition) or definition.written is None:
            return definition
        return bind_expression(definition.written, self._row)  # type: ignore[return-value]

    def columns(self, columns: Sequence[statements.ColumnDefinition]) -> tuple[statements.ColumnDefinition, ...]:
        return tuple(map(self._column, columns))

    def _column(self, column: statements.ColumnDefinition) -> statements.ColumnDefinition:
        default, generated = self.bind(column.default), self.bind(column.generated)
        if default is column.default and generated is column.generated:
            return column
        return replace(column, default=default, generated=generated)

    def rules(self, rules: Sequence[statements.RuleDefinition]) -> tuple[statements.RuleDefinition, ...]:
        return tuple(self._rule(rule) for rule in rules)

    def _rule(self, rule: statements.RuleDefinition) -> statements.RuleDefinition:
        if not isinstance(rule, statements.CheckDefinition) or rule.written is None:
            return rule
        found = bind_expression(rule.written, self._row)
        return replace(rule, pieces=found.pieces, columns=found.columns)


def _defined(columns: Sequence[statements.ColumnDefinition], catalog: PortCatalog) -> list[BoundColumn]:
    return [BoundColumn(column.name, _type(column.type, catalog)) for column in columns]


def _type(type_: statements.ColumnType, catalog: PortCatalog) -> BoundType | None:
    if not isinstance(type_, statements.UserType):
        return bound(type_)
    element = catalog.user_type(type_.name.schema, type_.name.name)
    return array_type(element) if type_.is_array and element is not None else element


def _known(name: RelationName, port: TransactionPort) -> list[BoundColumn] | None:
    """None for a table that does not exist: the statement fails for that, or does nothing."""
    try:
        return list(relation_columns(port.names.table(name.schema, name.name)) or ())
    except errors.Error:
        return None
