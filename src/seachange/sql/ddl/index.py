"""CREATE INDEX and DROP INDEX."""

from __future__ import annotations

from seachange import errors
from seachange.model.statements import CreateIndex, DropIndex
from seachange.sql.ddl.constraint import read_nulls_distinct
from seachange.sql.ddl.names import read_relation
from seachange.sql.tokens import Reader


def read_create_index(reader: Reader, unique: bool) -> CreateIndex:
    if reader.at("concurrently"):
        raise errors.FeatureNotSupported(
            feature="CREATE INDEX CONCURRENTLY", instead="CREATE INDEX works on an empty table."
        )
    if_not_exists = reader.take("if", "not", "exists")
    name = None if reader.at("on") else reader.name()
    reader.expect("on")
    reader.take("only")
    table = read_relation(reader)
    if reader.take("using") and reader.name() not in ("btree",):
        raise errors.FeatureNotSupported(feature="an index that is not a btree", instead="")
    columns = _read_columns(reader)
    include = reader.names() if reader.take("include") else ()
    distinct = read_nulls_distinct(reader)
    if reader.at("where"):
        raise errors.FeatureNotSupported(feature="a partial index", instead="")
    if not reader.at_end:
        raise errors.FeatureNotSupported(feature="an option of CREATE INDEX", instead="")
    return CreateIndex(table, columns, name, unique, include, if_not_exists, distinct)


def _read_columns(reader: Reader) -> tuple[str, ...]:
    reader.expect_symbol("(")
    columns = [_read_key_column(reader)]
    while reader.take_symbol(","):
        columns.append(_read_key_column(reader))
    reader.expect_symbol(")")
    return tuple(columns)


def _read_key_column(reader: Reader) -> str:
    if reader.take_symbol("("):
        raise errors.FeatureNotSupported(feature="an index on an expression", instead="")
    name = reader.name()
    if reader.take_symbol("("):
        raise errors.FeatureNotSupported(feature="an index on an expression", instead="")
    if reader.at("desc") or reader.at("nulls"):
        raise errors.FeatureNotSupported(feature="a descending index", instead="Leave the order out.")
    reader.take("asc")
    return name


def read_drop_index(reader: Reader) -> DropIndex:
    if reader.at("concurrently"):
        raise errors.FeatureNotSupported(feature="DROP INDEX CONCURRENTLY", instead="Use DROP INDEX.")
    if_exists = reader.take("if", "exists")
    indexes = [read_relation(reader)]
    while reader.take_symbol(","):
        indexes.append(read_relation(reader))
    reader.take_any("cascade", "restrict")
    reader.expect_end()
    return DropIndex(tuple(indexes), if_exists)
