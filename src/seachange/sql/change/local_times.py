"""Time zone dependence in the expressions of DDL statements: resolved with the session's zone, or rejected.

Stored expressions are evaluated by any node, in UTC. So string constants become timestamps when the statement is run,
and local times in USING are those of the session that runs ALTER TABLE. Expressions of indexes and generated columns
must not depend on a session at all; this is checked once the types of the columns are known (`refuse_local_times`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import sqlglot
from sqlglot import exp

from seachange import errors
from seachange.model import statements
from seachange.model.schema.constraint import column_reference
from seachange.model.schema.descriptor import Table
from seachange.model.schema.enums import quote_text
from seachange.model.schema.expression import Expression
from seachange.sql.change.zone_dependence import ZONED, Typed, TypesOf, find_dependent, localize, resolve_literals
from seachange.sql.ddl.expression import CHECK, DOWN, GENERATED, INDEX, PREDICATE, TRANSFORM, UP, Use
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.sql.pgcatalog.deparse import print_expression
from seachange.sql.port.port import TransactionPort
from seachange.values.timezone import UTC, session_zone
from seachange.values.types import TEXT, Kind, SqlType, assignable

# Encloses the number of a column while its expression is examined; no expression may contain it.
_GAP: Final = "\x01"
_COLUMN: Final = re.compile(f'"{_GAP}k([0-9]+){_GAP}"')
# A label of an enum type that is not resolved yet, and the literal that replaces it meanwhile.
_LABEL: Final = re.compile(f"{_GAP}[^{_GAP}]*{_GAP}")
_HIDDEN_LABEL: Final = re.compile(f"'({_GAP}(?:[^{_GAP}']|'')*{_GAP})'")
_MAKES_MOMENTS: Final = re.compile(r"TIMESTAMPTZ|TIMESTAMP WITH TIME ZONE|TO_TIMESTAMP", re.IGNORECASE)
_INSTEAD: Final = "Say which zone is meant with AT TIME ZONE"


def resolve_local_times(
    statement: statements.DdlStatement, port: TransactionPort, duck: DuckSession, notices: list[str]
) -> statements.DdlStatement:
    match statement:
        case statements.CreateTable():
            resolver = _LocalTimes({c.name: c.type for c in statement.columns}, duck, notices)
            columns = tuple(map(resolver.column, statement.columns))
            return replace(statement, columns=columns, rules=resolver.rules(statement.rules))
        case statements.AlterTable():
            resolver = _LocalTimes(_types_of(statement, port), duck, notices)
            return replace(statement, actions=resolver.alter(statement.actions))
        case statements.CreateIndex():
            resolver = _LocalTimes(_types_of(statement, port), duck, notices)
            keys = [key if isinstance(key, str) else resolver.resolve(key, INDEX) for key in statement.columns]
            where = resolver.resolve(statement.where, PREDICATE) if statement.where is not None else None
            return replace(statement, columns=tuple(keys), where=where)
        case _:
            return statement


def _types_of(
    statement: statements.AlterTable | statements.CreateIndex, port: TransactionPort
) -> dict[str, statements.ColumnType]:
    """The existing columns and those that the statement adds."""
    types: dict[str, statements.ColumnType] = {}
    # The planner reports a missing table.
    with suppress(errors.UndefinedTable, errors.WrongObjectType):
        table = port.names.table(statement.table.schema, statement.table.name)
        types |= {column.name: column.type for column in table.columns}
    if isinstance(statement, statements.AlterTable):
        types |= {a.column.name: a.column.type for a in statement.actions if isinstance(a, statements.AddColumn)}
    return types


@dataclass(frozen=True, slots=True)
class _LocalTimes:
    types: Mapping[str, statements.ColumnType]
    duck: DuckSession
    notices: list[str]

    def alter(self, actions: Sequence[statements.AlterAction]) -> tuple[statements.AlterAction, ...]:
        """A conversion reads the columns' old types; everything else their new ones."""
        changed = {a.name: a.type for a in actions if isinstance(a, statements.AlterColumnType)}
        later = replace(self, types={**self.types, **changed}) if changed else self
        found = ((self if isinstance(a, statements.AlterColumnType) else later).action(a) for a in actions)
        return tuple(map(later.down, found))

    def down(self, action: statements.AlterAction) -> statements.AlterAction:
        if not isinstance(action, statements.DropColumn | statements.AlterColumnType) or action.down is None:
            return action
        return replace(action, down=self.resolve(action.down, DOWN))

    def column(self, column: statements.ColumnDefinition) -> statements.ColumnDefinition:
        if column.up is not None:
            column = replace(column, up=self.resolve(column.up, UP, column.type))
        if column.generated is None:
            return column
        return replace(column, generated=self.resolve(column.generated, GENERATED, column.type))

    def rules(self, rules: Sequence[statements.RuleDefinition]) -> tuple[statements.RuleDefinition, ...]:
        return tuple(map(self.rule, rules))

    def rule(self, rule: statements.RuleDefinition) -> statements.RuleDefinition:
        if not isinstance(rule, statements.CheckDefinition):
            return rule
        resolved = self.resolve(statements.ExpressionDefinition(rule.pieces, rule.columns), CHECK)
        return replace(rule, pieces=resolved.pieces, columns=resolved.columns)

    def action(self, action: statements.AlterAction) -> statements.AlterAction:
        match action:
            case statements.AddColumn():
                if action.column.up is None and action.column.generated is None and not action.rules:
                    return action
                return replace(action, column=self.column(action.column), rules=self.rules(action.rules))
            case statements.AddConstraint(constraint=statements.CheckDefinition() as rule):
                return replace(action, constraint=self.rule(rule))
            case statements.SetExpression():
                target = self.types.get(action.name)
                return replace(action, expression=self.resolve(action.expression, GENERATED, target))
            case statements.AlterColumnType(type=SqlType() as type_):
                return self._conversion(action, type_)
            case _:
                return action

    def _conversion(self, action: statements.AlterColumnType, target: SqlType) -> statements.AlterColumnType:
        if session_zone() == UTC:
            return action
        if action.using is not None:
            return replace(action, using=self.resolve(action.using, TRANSFORM, target))
        own = self.types.get(action.name)
        # The planner rejects a type that cannot be assigned.
        if not isinstance(own, SqlType) or own.kind is target.kind or not assignable(own, target):
            return action
        if Kind.TIMESTAMPTZ not in (own.kind, target.kind):
            return action
        cast = statements.ExpressionDefinition(("(CAST(", f" AS {target.duckdb}))"), (action.name,))
        return replace(action, using=self.resolve(cast, TRANSFORM))

    def resolve(
        self, definition: statements.ExpressionDefinition, use: Use, target: statements.ColumnType | None = None
    ) -> statements.ExpressionDefinition:
        columns = {name: self.types.get(name) for name in definition.columns}
        types = {name: type_ if isinstance(type_, SqlType) else TEXT for name, type_ in columns.items()}
        to = target.duckdb if isinstance(target, SqlType) else ""
        named = {_reference(number): type_.duckdb for number, type_ in enumerate(types.values())}
        if None in columns.values() or not _concerns_moments((*named.values(), to, *definition.pieces)):
            return definition
        types_of = _asker(named, self.duck)
        typed = _typed(_read(definition, tuple(types)), to, types_of)
        changed = False
        if session_zone() != UTC:
            changed = resolve_literals(typed)
            changed |= use is TRANSFORM and localize(typed, session_zone())
            typed = Typed(typed.tree, types_of)
        dependent = find_dependent(typed, strict=use is UP) if not use.invalid or use is UP else None
        if dependent is not None:
            self._object(dependent, tuple(types), use)
        return _cut(definition, typed.tree, tuple(types)) if changed else definition

    def _object(self, dependent: exp.Expr, names: Sequence[str], use: Use) -> None:
        shown = _shown(dependent, {_reference(number): name for number, name in enumerate(names)})
        if use is UP:
            raise _not_immutable(use, shown)
        if use is CHECK:
            notice = f"{shown} goes by the time zone of the session: a check constraint takes it in UTC. {_INSTEAD}."
            self.notices.append(notice)
        elif session_zone() != UTC:
            raise errors.FeatureNotSupported(
                feature=f"converting a column by {shown} in time zone {session_zone()}",
                instead=f"{_INSTEAD}, or SET timezone = 'UTC' first.",
            )


def refuse_local_times(
    expression: Expression, table: Table, duck: DuckSession, use: Use, target: SqlType | None = None
) -> None:
    """Rejects an expression that must be immutable and is not; `target` is the type of the target column."""
    used = {column_reference(c): table.column_by_id[c] for c in expression.columns}
    types = {reference: column.type.duckdb for reference, column in used.items()}
    to = target.duckdb if target is not None else ""
    if _concerns_moments((*types.values(), to, expression.text)):
        tree = exp.paren(sqlglot.parse_one(expression.text, dialect="duckdb").unnest())
        dependent = find_dependent(_typed(tree, to, _asker(types, duck)), strict=True)
        if dependent is not None:
            shown = _shown(dependent, {reference: column.name for reference, column in used.items()})
            raise _not_immutable(use, shown)


def _not_immutable(use: Use, shown: str) -> errors.Error:
    detail = f"{use.name} must be immutable, and {shown} goes by the time zone of the session. {_INSTEAD}."
    return errors.InvalidObjectDefinition(detail=detail)


def _concerns_moments(texts: Iterable[str]) -> bool:
    return any(map(_MAKES_MOMENTS.search, texts))


def _asker(types: Mapping[str, str], duck: DuckSession) -> TypesOf:
    nulls = ", ".join(f"CAST(NULL AS {type_}) AS {reference}" for reference, type_ in types.items()) or "1"

    def ask(nodes: Sequence[exp.Expr]) -> list[str]:
        texts = ", ".join(node.sql("duckdb") for node in nodes)
        sql = f"SELECT {texts} FROM (SELECT {nulls}) WHERE false"  # noqa: S608 - generated from a checked tree
        try:
            return list(duck.rows(DuckQuery(sql, {}, {})).types)
        except errors.Error:
            # A part that cannot be bound alone has no type; errors are reported when the whole expression is bound.
            return [""] if len(nodes) == 1 else [ask([node])[0] for node in nodes]

    return ask


def _reference(number: int) -> str:
    return f'"{_GAP}k{number}{_GAP}"'


def _read(definition: statements.ExpressionDefinition, names: Sequence[str]) -> exp.Expr:
    pieces = [_LABEL.sub(lambda found: quote_text(found[0]), piece) for piece in definition.pieces]
    gaps = [*(_reference(names.index(name)) for name in definition.columns), ""]
    text = "".join(piece + gap for piece, gap in zip(pieces, gaps, strict=True))
    return exp.paren(sqlglot.parse_one(text, dialect="duckdb").unnest())


def _typed(tree: exp.Expr, target: str, types_of: TypesOf) -> Typed:
    """With the assignment to a column: a conversion from or to timestamptz also depends on the zone."""
    typed = Typed(tree, types_of)
    if not target or (ZONED in target) == typed.is_zoned(tree):
        return typed
    tree.set("this", exp.cast(tree.this.copy(), exp.DataType.build(target, dialect="duckdb")))
    return Typed(tree, types_of)


def _shown(part: exp.Expr, names: Mapping[str, str]) -> str:
    """As PostgreSQL would print it."""
    holder = exp.paren(part.copy())
    for column in list(holder.find_all(exp.Column)):
        name = names.get(column.sql("duckdb"))
        if name is not None:
            column.replace(exp.column(exp.to_identifier(name, quoted=not name.isidentifier())))
    return print_expression(holder.this, pretty=True)


def _write(tree: exp.Expr, names: Sequence[str]) -> statements.ExpressionDefinition:
    text = _HIDDEN_LABEL.sub(lambda found: found[1].replace("''", "'"), tree.sql("duckdb"))
    parts = _COLUMN.split(text)
    return statements.ExpressionDefinition(tuple(parts[0::2]), tuple(names[int(number)] for number in parts[1::2]))


def _cut(
    definition: statements.ExpressionDefinition, tree: exp.Expr, names: Sequence[str]
) -> statements.ExpressionDefinition:
    written = _write(tree, names)
    return replace(definition, pieces=written.pieces, columns=written.columns)
