"""CREATE TABLE, DROP TABLE, TRUNCATE, UNDROP TABLE."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from seachange import errors
from seachange.model import statements
from seachange.model.relation import RelationName
from seachange.model.schema.temporary import OWN_SCHEMA
from seachange.sql.ddl.column import read_column
from seachange.sql.ddl.constraint import TABLE_CONSTRAINTS, Constraints, read_table_constraint
from seachange.sql.ddl.object import take_cascade, take_data_clause
from seachange.sql.ddl.storage_parameters import take_storage
from seachange.sql.text.names import read_list, read_relation, read_relations
from seachange.sql.text.tokens import Reader, TokenKind

# Options of LIKE; the last two have no effect here.
_LIKE_OPTIONS = (
    "defaults",
    "generated",
    "identity",
    "constraints",
    "indexes",
    "comments",
    "compression",
    "storage",
    "statistics",
)
_INTO = re.compile(r"\binto\b", re.IGNORECASE)
# What ends the search for the INTO of a query.
_BEFORE_INTO = frozenset({"into", "from", "where", "insert", "update", "delete", "merge", "values", "union"})
# Forms of CREATE TABLE that are not supported, with hints.
_FORMS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("partition",), "a partitioned table", "Create a table without partitions."),
    (("inherits",), "a table that inherits", "List all columns."),
    (("of",), "a table of a type", "List the columns."),
    (("using",), "a table access method", "Leave it out."),
    (("tablespace",), "a tablespace", "Leave it out."),
    (("on", "commit"), "ON COMMIT for a table that is not temporary", "Create a temporary table."),
)


def read_create_temporary(reader: Reader) -> statements.CreateTemporary:
    actions: list[statements.OnCommit] = []
    create = _read_table(reader, lambda: actions.extend(_take_on_commit(reader)))
    own = replace(create, table=_own_name(create.table))
    return statements.CreateTemporary(own, actions[0] if actions else statements.OnCommit.PRESERVE)


def _take_on_commit(reader: Reader) -> list[statements.OnCommit]:
    if not reader.take("on", "commit"):
        return []
    action = statements.OnCommit.DROP if reader.take("drop") else None
    if action is None:
        word = reader.take_any("preserve", "delete")
        if word is None:
            raise reader.problem()
        reader.expect("rows")
        action = statements.OnCommit(word)
    return [action]


def read_create_table(reader: Reader) -> statements.CreateTable | statements.CreateTableAs:
    return _read_table(reader, lambda: None)


def _read_table(reader: Reader, take_option: Callable[[], None]) -> statements.CreateTable | statements.CreateTableAs:
    """`take_option` reads what may follow the list of columns."""
    if_not_exists = reader.take("if", "not", "exists")
    table = read_relation(reader)
    take_option()
    if reader.at("as") or _is_name_list(reader):
        return _read_create_as(reader, table, if_not_exists)
    if not reader.at_symbol("("):
        raise _refuse_form(reader)
    columns, constraints, likes = _read_elements(reader)
    parameters = take_storage(reader)
    take_option()
    if not reader.at_end:
        raise _refuse_form(reader)
    primary = constraints.primary
    if len(primary) > 1:
        raise errors.InvalidTableDefinition(name=table, detail="more than one primary key")
    return statements.CreateTable(
        table,
        _key_columns_not_null(columns, primary),
        replace(primary[0], primary=False) if primary else None,
        tuple(constraints.unique),
        if_not_exists,
        tuple(constraints.rules),
        tuple(likes),
        parameters,
    )


def _is_name_list(reader: Reader) -> bool:
    """Whether names in parentheses follow, and then AS."""
    at = 0
    while (opening := reader.peek(at)) is not None and opening.text == ("," if at else "("):
        at += 2
    closing, following = reader.peek(at), reader.peek(at + 1)
    is_closed = at > 0 and closing is not None and closing.text == ")"
    return is_closed and following is not None and following.text == "as"


def _read_create_as(reader: Reader, table: RelationName, if_not_exists: bool) -> statements.CreateTableAs:
    columns = reader.names() if reader.at_symbol("(") else ()
    reader.expect("as")
    query, with_data = take_data_clause(reader.rest())
    return statements.CreateTableAs(table, query, columns, if_not_exists, with_data)


def _read_elements(
    reader: Reader,
) -> tuple[list[statements.ColumnDefinition], Constraints, list[statements.LikeClause]]:
    columns: list[statements.ColumnDefinition] = []
    constraints = Constraints()
    likes: list[statements.LikeClause] = []
    reader.expect_symbol("(")
    if reader.take_symbol(")"):
        return columns, constraints, likes
    while True:
        if reader.take("like"):
            likes.append(_read_like(reader, len(columns)))
        elif any(reader.at(word) for word in TABLE_CONSTRAINTS) or reader.at("not", "null"):
            read_table_constraint(reader, constraints)
            # Of a new table, all rows are checked.
            reader.take("not", "valid")
        else:
            columns.append(_without_up(read_column(reader, constraints)))
        if not reader.take_symbol(","):
            break
    reader.expect_symbol(")")
    return columns, constraints, likes


def _without_up(column: statements.ColumnDefinition) -> statements.ColumnDefinition:
    if column.up is not None:
        raise errors.SyntaxProblem(detail=f'UP USING of column "{column.name}" of a new table')
    return column


def _read_like(reader: Reader, position: int) -> statements.LikeClause:
    source = read_relation(reader)
    chosen: set[str] = set()
    while (verb := reader.take_any("including", "excluding")) is not None:
        option = reader.take_any("all", *_LIKE_OPTIONS)
        if option is None:
            raise reader.problem()
        named = set(_LIKE_OPTIONS) if option == "all" else {option}
        chosen = chosen | named if verb == "including" else chosen - named
    return statements.LikeClause(position, source, frozenset(chosen))


def _refuse_form(reader: Reader) -> errors.Error:
    for words, feature, instead in _FORMS:
        if reader.at(*words):
            return errors.FeatureNotSupported(feature=feature, instead=instead)
    return reader.problem()


def _key_columns_not_null(
    columns: list[statements.ColumnDefinition], primary: list[statements.KeyDefinition]
) -> tuple[statements.ColumnDefinition, ...]:
    key = {name for definition in primary for name in definition.columns}
    return tuple(replace(c, nullable=c.nullable and c.name not in key) for c in columns)


def read_drop_table(reader: Reader) -> statements.DropTable:
    if_exists = reader.take("if", "exists")
    tables = read_relations(reader)
    return statements.DropTable(tables, if_exists, take_cascade(reader))


def read_truncate(reader: Reader) -> statements.TruncateTables:
    reader.take("table")
    tables = read_list(reader, _read_truncated)
    restart = reader.take("restart", "identity")
    if not restart:
        reader.take("continue", "identity")
    return statements.TruncateTables(tables, take_cascade(reader), restart)


def _read_truncated(reader: Reader) -> RelationName:
    reader.take("only")
    table = read_relation(reader)
    reader.take_symbol("*")
    return table


def read_undrop_table(reader: Reader) -> statements.UndropTable:
    return statements.UndropTable(read_relation(reader))


def read_select_into(reader: Reader) -> statements.CreateTableAs | statements.CreateTemporary | None:
    """SELECT ... INTO t ... as CREATE TABLE t AS SELECT ...; None for any other statement."""
    start = _find_into(reader) if _INTO.search(reader.text) else None
    if start is None:
        return None
    scope = reader.take_any("temp", "temporary", "unlogged")
    reader.take("table")
    name = read_relation(reader)
    query = " ".join([reader.text[:start], *([] if reader.at_end else [reader.rest()])])
    if scope in (None, "unlogged"):
        return statements.CreateTableAs(name, query)
    return statements.CreateTemporary(statements.CreateTableAs(_own_name(name), query))


def _find_into(reader: Reader) -> int | None:
    """Reads up to the INTO of a query, and returns its place in the text; None if it has none."""
    depth = 0
    while not reader.at_end:
        word = reader.next()
        if word.kind is TokenKind.SYMBOL:
            depth += {"(": 1, ")": -1}.get(word.text, 0)
        elif word.kind is TokenKind.WORD and not depth and word.text in _BEFORE_INTO:
            return word.start if word.text == "into" else None
    return None


def _own_name(name: RelationName) -> RelationName:
    """In the temporary schema of the session."""
    if name.schema not in (None, OWN_SCHEMA):
        raise errors.InvalidTableDefinition(name=name, detail="a temporary table cannot be created in another schema")
    return RelationName(OWN_SCHEMA, name.name)
