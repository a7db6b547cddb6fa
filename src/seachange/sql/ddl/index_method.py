"""USING of CREATE INDEX, and operator classes.

All indexes are btrees. Other methods are accepted where a btree finds the same rows, by equality or by order. Methods
that search inside a value (documents, words, trigrams, overlapping ranges) are rejected.
"""

from __future__ import annotations

from seachange import errors
from seachange.model.statements.table_statements import BTREE
from seachange.sql.text.names import read_relation
from seachange.sql.text.tokens import Reader, TokenKind

_METHODS = frozenset({BTREE, "hash", "brin", "gin", "gist", "spgist"})

_PLAIN_TYPES = (
    *("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bpchar", "bytea"),
    *("date", "time", "timestamp", "timestamptz", "interval", "uuid", "enum", "oid", "name"),
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
