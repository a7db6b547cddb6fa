"""Calls of functions: PostgreSQL's function and its arguments, out of the nodes that sqlglot makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from seachange.sql.bind.names import postgres_name
from seachange.sql.bind.types import BoundType, named

# PostgreSQL's functions for those that the parser or sqlglot names otherwise.
_FUNCTIONS: Final[dict[str, str]] = {
    "ceil": "ceil",
    "variance": "var_samp",
    "variance_pop": "var_pop",
    "bitwise_and_agg": "bit_and",
    "bitwise_or_agg": "bit_or",
    "bitwise_xor_agg": "bit_xor",
    "unicode": "ascii",
    "byte_length": "octet_length",
    "s_h_a2_digest": "sha256",
    "getbit": "get_bit",
    "regexp_like": "regexp_like",
    "date_from_parts": "make_date",
    "time_from_parts": "make_time",
    "timestamp_from_parts": "make_timestamp",
    "j_s_o_n_b_path_exists": "jsonb_path_exists",
    "is_nan": "isnan",
}
# The types of what is no function in PostgreSQL's tables, or one without arguments.
RESULTS: Final[dict[str, BoundType]] = {
    name: named(type_)
    for names, type_ in (
        ("now current_timestamp transaction_timestamp statement_timestamp clock_timestamp", "timestamptz"),
        ("current_date", "date"),
        ("localtimestamp", "timestamp"),
        ("localtime current_time", "time"),
        ("current_user current_role session_user current_schema current_catalog current_database", "name"),
        ("version normalize", "text"),
        ("exists", "bool"),
        ("extract", "numeric"),
        ("date_part", "float8"),
        ("grouping", "int4"),
        ("row struct", "record"),
        # Privileges are texts here.
        ("acldefault", "_text"),
    )
    for name in names.split()
}
# Arguments that say how, not of what.
_UNITS: Final = (exp.Var, exp.Identifier, exp.DataType)


_SIDES: Final = {"LEADING": "ltrim", "TRAILING": "rtrim"}
# Classes whose arguments sqlglot has in another order, or adds to.
_ARGUMENTS: Final[dict[type[exp.Expr], tuple[str, ...]]] = {
    exp.ArrayPrepend: ("expression", "this"),
    exp.Initcap: ("this",),
    exp.SHA2Digest: ("this",),
}


def called(node: exp.Expr) -> str:
    name = trim_name(node) if isinstance(node, exp.Trim) else postgres_name(node)
    return _FUNCTIONS.get(name, name)


def trim_name(node: exp.Trim) -> str:
    """TRIM (... FROM ...) is a call of one of three functions."""
    return _SIDES.get(str(node.args.get("position") or ""), "btrim")


def arguments(node: exp.Expr) -> Iterator[exp.Expr]:
    """In the order of the call, but for a few functions whose arguments have one type."""
    keys = ("expression",) if called(node) == "log10" else _ARGUMENTS.get(type(node), node.arg_types)
    for key in keys:
        value = node.args.get(key)
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, exp.Order):
                item = item.this
            if isinstance(item, exp.Distinct):
                yield from item.expressions
            elif isinstance(item, exp.Expr) and not isinstance(item, _UNITS):
                yield item
