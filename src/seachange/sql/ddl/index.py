"""CREATE INDEX, DROP INDEX and ALTER INDEX."""

from __future__ import annotations

from seachange import errors
from seachange.model.object_statements import ObjectKind, RenameObject
from seachange.model.statements import CreateIndex, DropIndex
from seachange.sql.ddl.constraint import read_nulls_distinct
from seachange.sql.ddl.names import read_relation, read_relations
from seachange.sql.ddl.object import take_cascade
from seachange.sql.tokens import Reader


def read_create_index(reader: Reader) -> CreateIndex:
    return _read_create(reader, unique=False)


def read_create_unique_index(reader: Reader) -> CreateIndex:
    return _read_create(reader, unique=True)


def _read_create(reader: Reader, unique: bool) -> CreateIndex:
    concurrently = reader.take("concurrently")
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
    return CreateIndex(table, columns, name, unique, include, if_not_exists, distinct, concurrently)


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
    concurrently = reader.take("concurrently")
    if_exists = reader.take("if", "exists")
    indexes = read_relations(reader)
    cascade = take_cascade(reader)
    if concurrently and (cascade or len(indexes) > 1):
        raise errors.FeatureNotSupported(
            feature="DROP INDEX CONCURRENTLY with several indexes or CASCADE", instead="Drop one at a time."
        )
    return DropIndex(indexes, if_exists, cascade, concurrently)


def read_alter_index(reader: Reader) -> RenameObject:
    if_exists = reader.take("if", "exists")
    name = read_relation(reader)
    if reader.take("rename", "to"):
        return RenameObject(ObjectKind.INDEX, name, reader.name(), if_exists)
    if any(reader.at(word) for word in ("set", "reset", "attach", "alter", "depends", "no")):
        raise errors.FeatureNotSupported(feature="this form of ALTER INDEX", instead="RENAME TO works.")
    raise reader.problem()
