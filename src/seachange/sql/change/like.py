"""CREATE TABLE ... (LIKE other INCLUDING ...): the clause expands to definitions from the current version of the other
table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import TokenType

from seachange.model import statements
from seachange.model.relation import RelationName
from seachange.model.schema.defaults import is_constant
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.expression import Expression
from seachange.model.schema.objects import Sequence
from seachange.model.states import State
from seachange.planner.elements.registry import COLUMN_SETTINGS
from seachange.sql.port.port import TransactionPort

_DUCKDB: Final = DuckDB()
_COLUMN: Final = re.compile(r"c[0-9]+")
_CONSTANT: Final = re.compile(r"'((?:[^']|'')*)'::.*", re.DOTALL)


def expand_likes(statement: statements.DdlStatement, port: TransactionPort) -> list[statements.DdlStatement]:
    """The statements that it expands to: one, and one for each copied index."""
    if not isinstance(statement, statements.CreateTable) or not statement.likes:
        return [statement]
    columns = list(statement.columns)
    expanded = replace(statement, likes=())
    indexes: list[statements.DdlStatement] = []
    # From the last, so that the positions of the others stay valid.
    for like in reversed(statement.likes):
        table = port.names.table(like.source.schema, like.source.name)
        port.rights.check_access(table, "SELECT")
        columns[like.position : like.position] = _columns(table, like, port)
        if "constraints" in like.including:
            expanded = replace(expanded, rules=(*_checks(table), *expanded.rules))
        if "indexes" in like.including:
            expanded = _with_keys(expanded, table)
            plain = [i for i in table.secondary if i.state is State.PUBLIC and not i.constraint]
            indexes += [_index(statement.table, table, index) for index in plain]
    return [replace(expanded, columns=tuple(columns)), *indexes]


def _columns(table: Table, like: statements.LikeClause, port: TransactionPort) -> Iterator[statements.ColumnDefinition]:
    for column in table.visible_columns:
        nullable = column.nullable or column.not_null is not State.PUBLIC
        definition = statements.ColumnDefinition(column.name, column.type, nullable)
        if column.generated is not None:
            if "generated" in like.including:
                definition = replace(definition, generated=_expression(table, column.generated))
        elif column.identity is not None:
            if "identity" in like.including:
                definition = replace(definition, identity=_identity(column, port))
        elif "defaults" in like.including:
            definition = replace(definition, default=_default(column, port))
        copied = {name: getattr(column, name) for name in COLUMN_SETTINGS if name in like.including}
        settings = tuple((name, value) for name, value in copied.items() if value is not None)
        yield replace(definition, settings=settings)


def _default(column: Column, port: TransactionPort) -> statements.Default | None:
    text = column.default
    if text is None:
        return None
    if is_constant(text):
        found = _CONSTANT.fullmatch(text)
        assert found is not None
        return statements.ConstantDefault(found[1].replace("''", "'"), quoted=True)
    names = []
    for id_ in column.default_sequences:
        sequence = port.schema.object_by_id(id_)
        assert isinstance(sequence, Sequence)
        names.append(RelationName(sequence.schema, sequence.name))
        text = text.replace(f"nextval({id_})", statements.sequence_call(names[-1]))
    return statements.ExpressionDefinition((text,), (), statements.Volatility.VOLATILE, tuple(names))


def _identity(column: Column, port: TransactionPort) -> statements.IdentityDefinition:
    assert column.identity is not None
    sequence = port.schema.object_by_id(column.identity.sequence_id)
    assert isinstance(sequence, Sequence)
    options = statements.SequenceOptions(
        type=sequence.type,
        increment=sequence.increment,
        minimum=sequence.minimum,
        maximum=sequence.maximum,
        start=sequence.start,
        cache=sequence.cache,
        cycle=sequence.cycle,
    )
    return statements.IdentityDefinition(column.identity.always, options)


def _checks(table: Table) -> Iterator[statements.CheckDefinition]:
    for check in table.checks:
        if check.state is State.PUBLIC:
            found = _expression(table, Expression(check.expression, check.columns))
            yield statements.CheckDefinition(found.pieces, found.columns, check.name)


def _with_keys(statement: statements.CreateTable, table: Table) -> statements.CreateTable:
    unique = tuple(
        statements.KeyDefinition(_names(table, index), nulls_distinct=index.nulls_distinct)
        for index in table.secondary
        if index.constraint and index.state is State.PUBLIC
    )
    statement = replace(statement, unique=(*statement.unique, *unique))
    if not table.primary.constraint or statement.primary_key is not None:
        return statement
    return replace(statement, primary_key=statements.KeyDefinition(_names(table, table.primary)))


def _names(table: Table, index: Index) -> tuple[str, ...]:
    return tuple(table.column_by_id[c].name for c in index.key)


def _index(name: RelationName, table: Table, index: Index) -> statements.CreateIndex:
    keys = [table.column_by_id[c] for c in index.key]
    return statements.CreateIndex(
        name,
        tuple(c.name if c.generated is None or not c.virtual else _expression(table, c.generated) for c in keys),
        unique=index.unique,
        include=tuple(table.column_by_id[c].name for c in index.include),
        nulls_distinct=index.nulls_distinct,
        descending=tuple(i for i, c in enumerate(index.key) if c in index.descending),
        nulls_swapped=tuple(i for i, c in enumerate(index.key) if c in index.nulls_swapped),
        where=_expression(table, index.where) if index.where is not None else None,
    )


def _expression(table: Table, expression: Expression) -> statements.ExpressionDefinition:
    """With gaps in place of columns. Columns are found as tokens, since a string literal may look like one."""
    text, pieces, names, end = expression.text, [], [], 0
    known = {f"c{c}": table.column_by_id[c].name for c in expression.columns}
    for token in _DUCKDB.tokenize(text):
        if token.token_type is TokenType.IDENTIFIER and _COLUMN.fullmatch(token.text) and token.text in known:
            pieces.append(text[end : token.start])
            names.append(known[token.text])
            end = token.end + 1
    return statements.ExpressionDefinition((*pieces, text[end:]), tuple(names))
