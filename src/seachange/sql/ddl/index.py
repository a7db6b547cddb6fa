"""CREATE INDEX, DROP INDEX and ALTER INDEX."""

from __future__ import annotations

from dataclasses import dataclass

from seachange import errors
from seachange.model.object_kind import ObjectKind
from seachange.model.statements import BTREE, CreateIndex, DropIndex, ExpressionDefinition, RenameObject
from seachange.sql.ddl.constraint import read_nulls_distinct
from seachange.sql.ddl.expression import INDEX, PREDICATE, compile_expression
from seachange.sql.ddl.object import take_cascade
from seachange.sql.ddl.storage_parameters import take_storage
from seachange.sql.text.names import read_collation, read_relation, read_relations
from seachange.sql.text.tokens import Reader, TokenKind, Word

IndexKey = str | ExpressionDefinition
_METHODS = frozenset({BTREE, "hash", "brin", "gin", "gist", "spgist"})

_PLAIN_TYPES = (
    *("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bpchar", "bytea"),
    *("date", "time", "timestamp", "timestamptz", "interval", "uuid", "enum", "oid", "name", "inet", "cidr"),
)
# Operator classes with the order of keys here: that of the type, texts by their bytes. For a brin, those of minimum and
# maximum or of values.
_OPERATOR_CLASSES = frozenset(
    {
        *(f"{name}_ops" for name in _PLAIN_TYPES),
        *(f"{name}_pattern_ops" for name in ("text", "varchar", "bpchar")),
        *(f"{name}_{kind}_ops" for name in _PLAIN_TYPES for kind in ("minmax", "minmax_multi", "bloom")),
    }
)
# Operator classes that search inside values.
_OTHER_CLASSES = frozenset(
    {
        *("gin_trgm_ops", "gist_trgm_ops", "array_ops", "jsonb_ops", "jsonb_path_ops", "tsvector_ops", "tsquery_ops"),
        *("range_ops", "multirange_ops", "inet_ops", "cidr_ops", "hstore_ops", "gist_hstore_ops", "gin_hstore_ops"),
        *("box_ops", "circle_ops", "point_ops", "poly_ops", "quad_point_ops", "kd_point_ops", "ltree_ops"),
        *("gist_ltree_ops", "gist__ltree_ops", "gin__int_ops", "gist__int_ops", "gist_geometry_ops_2d"),
        *("vector_l2_ops", "vector_ip_ops", "vector_cosine_ops"),
    }
)
_ORDER_WORDS = frozenset({"asc", "desc", "nulls"})


@dataclass(frozen=True, slots=True)
class _Key:
    """`nulls_swapped`: NULLs sort at the other end than by default."""

    key: IndexKey
    descending: bool
    nulls_swapped: bool


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
    method = read_method(reader, unique) if reader.take("using") else BTREE
    keys = _read_keys(reader)
    include = reader.names() if reader.take("include") else ()
    distinct = read_nulls_distinct(reader)
    if kept := take_storage(reader):
        raise errors.UndefinedObject(kind="storage parameter of an index", name=kept[0][0])
    where = compile_expression(_rest(reader), PREDICATE) if reader.take("where") else None
    if not reader.at_end:
        raise errors.FeatureNotSupported(feature="an option of CREATE INDEX", instead="")
    return CreateIndex(
        table,
        tuple(each.key for each in keys),
        name,
        unique,
        include,
        if_not_exists,
        distinct,
        concurrently,
        tuple(position for position, each in enumerate(keys) if each.descending),
        where,
        tuple(position for position, each in enumerate(keys) if each.nulls_swapped),
        method,
    )


def _read_keys(reader: Reader) -> list[_Key]:
    reader.expect_symbol("(")
    keys = [_read_key(reader)]
    while reader.take_symbol(","):
        keys.append(_read_key(reader))
    reader.expect_symbol(")")
    return keys


def _read_key(reader: Reader) -> _Key:
    """A column, a function call, or an expression in parentheses; then the sort order."""
    first, following = reader.peek(), reader.peek(1)
    key: IndexKey
    if first is not None and first.kind is TokenKind.SYMBOL:
        key = _expression(reader.parenthesized())
    elif first is not None and following is not None and following == Word(TokenKind.SYMBOL, "("):
        reader.next()
        key = _expression(reader.text[first.start : first.end] + reader.parenthesized())
    else:
        key = reader.name()
    if reader.take("collate"):
        read_collation(reader)
    skip_operator_class(reader)
    descending = reader.take("desc")
    if not descending:
        reader.take("asc")
    nulls_first = descending
    if reader.take("nulls"):
        nulls_first = reader.take("first")
        if not nulls_first:
            reader.expect("last")
    return _Key(key, descending, nulls_first is not descending)


def _expression(text: str) -> IndexKey:
    """An expression that is only a column is that column."""
    found = compile_expression(text, INDEX)
    bare = len(found.columns) == 1 and all(not piece.strip("() ") for piece in found.pieces)
    return found.columns[0] if bare else found


def _rest(reader: Reader) -> str:
    """The rest of the statement, for another parser."""
    first = reader.peek()
    if first is None:
        raise reader.problem()
    while not reader.at_end:
        reader.next()
    return reader.text[first.start :]


def read_drop_index(reader: Reader) -> DropIndex:
    concurrently = reader.take("concurrently")
    if_exists = reader.take("if", "exists")
    indexes = read_relations(reader)
    cascade = take_cascade(reader)
    if concurrently and (cascade or len(indexes) > 1):
        raise errors.FeatureNotSupported(
            feature="DROP INDEX CONCURRENTLY with several indexes or CASCADE", instead="Drop one index at a time."
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


# USING of CREATE INDEX, and operator classes.
#
# All indexes are btrees. Other methods are accepted where a btree finds the same rows, by equality or by order. Methods
# that search inside a value (documents, words, trigrams, overlapping ranges) are rejected.
def read_method(reader: Reader, unique: bool) -> str:
    """After USING."""
    method = reader.name()
    if method not in _METHODS:
        raise errors.UndefinedObject(kind="access method", name=method)
    if unique and method != BTREE:
        raise errors.FeatureNotSupported(feature=f"a unique index by {method}", instead="Leave out USING.")
    return method


def skip_operator_class(reader: Reader) -> None:
    """After a key, if there is one."""
    word = reader.peek()
    if (
        word is None
        or word.kind not in (TokenKind.WORD, TokenKind.NAME)
        or (word.kind is TokenKind.WORD and word.text in _ORDER_WORDS)
    ):
        return
    # pg_dump writes its schema.
    name = read_relation(reader).name
    if name in _OTHER_CLASSES or name.endswith("_inclusion_ops"):
        raise errors.FeatureNotSupported(
            feature=f"an index with operator class {name}, which searches inside values,",
            instead="Omit the index; these queries use a table scan.",
        )
    if name not in _OPERATOR_CLASSES:
        raise errors.UndefinedObject(kind="operator class", name=name)
    if reader.at_symbol("("):
        # Parameters of a brin operator class.
        reader.parenthesized()
