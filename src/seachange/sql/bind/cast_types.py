"""The types that casts name, from sqlglot's nodes."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange.sql.bind.scope import BindCatalog
from seachange.sql.bind.types import BoundType, array_type, bound, named
from seachange.values.types import MOMENT_DIGITS_MAX, Kind, SqlType

TYPE_NAMES: Final[dict[exp.DType, str]] = {
    exp.DType.BOOLEAN: "bool",
    exp.DType.SMALLINT: "int2",
    exp.DType.INT: "int4",
    exp.DType.BIGINT: "int8",
    exp.DType.FLOAT: "float4",
    exp.DType.DOUBLE: "float8",
    exp.DType.DECIMAL: "numeric",
    exp.DType.TEXT: "text",
    exp.DType.VARCHAR: "varchar",
    exp.DType.CHAR: "bpchar",
    exp.DType.BPCHAR: "bpchar",
    exp.DType.NAME: "name",
    exp.DType.VARBINARY: "bytea",
    exp.DType.DATE: "date",
    exp.DType.TIME: "time",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamptz",
    exp.DType.INTERVAL: "interval",
    exp.DType.UUID: "uuid",
    exp.DType.JSON: "json",
    exp.DType.JSONB: "jsonb",
    exp.DType.UINT: "oid",
    exp.DType.INET: "inet",
    exp.DType.IPPREFIX: "cidr",
}
_REAL_DIGITS_MAX: Final = 24
_MODIFIED: Final = frozenset({Kind.NUMERIC, Kind.VARCHAR, Kind.CHAR, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})


def cast_type(node: exp.Expr, catalog: BindCatalog) -> BoundType | None:
    """None for a type that is not known."""
    if not isinstance(node, exp.DataType):
        return None
    if node.this is exp.DType.ARRAY:
        element = cast_type(node.expressions[0], catalog) if node.expressions else None
        return array_type(element) if element is not None else None
    if isinstance(node, exp.ObjectIdentifier):
        return named(str(node.this).lower())
    name = TYPE_NAMES.get(node.this)
    if name is None:
        return _user_type(node, catalog)
    found = named(name)
    kind = found.declared.kind if found.declared is not None else None
    sizes = [int(item.name) for item in node.expressions if item.name.isdigit()]
    if kind is Kind.DOUBLE and sizes and sizes[0] <= _REAL_DIGITS_MAX:
        return named("float4")
    if kind is None or kind not in _MODIFIED or not (sizes or node.this is exp.DType.CHAR):
        return found
    return bound(_modified(kind, sizes))


def _modified(kind: Kind, sizes: list[int]) -> SqlType:
    match kind:
        case Kind.NUMERIC:
            return SqlType(kind, sizes[0], sizes[1] if len(sizes) > 1 else 0)
        case Kind.VARCHAR | Kind.CHAR:
            return SqlType(kind, length=sizes[0] if sizes else 1)
        case _:
            digits = min(sizes[0], MOMENT_DIGITS_MAX)
            return SqlType(kind, digits if digits == MOMENT_DIGITS_MAX else 0, MOMENT_DIGITS_MAX - digits)


def _user_type(node: exp.DataType, catalog: BindCatalog) -> BoundType | None:
    match node.args.get("kind"):
        case exp.Identifier() as name:
            is_char = name.quoted and str(name.this) == "char"
            return named("char") if is_char else catalog.user_type(None, _folded(name))
        case exp.Dot(this=exp.Identifier() as schema, expression=exp.Identifier() as name):
            # As drivers write types: "pg_catalog"."int4", and "_int4" for an array.
            if _folded(schema) == "pg_catalog" and (found := named(_folded(name))).declared is not None:
                return found
            return catalog.user_type(_folded(schema), _folded(name))
        case _:
            return None


def _folded(name: exp.Identifier) -> str:
    return str(name.this) if name.quoted else str(name.this).lower()
