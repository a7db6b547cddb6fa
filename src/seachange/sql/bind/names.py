"""Names of functions, and of result columns, as PostgreSQL has them: sqlglot gives functions other names."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange.sql.text.tree import WRITTEN

NOW: Final = "now"
# By the names that sqlglot gives them.
_SPELLINGS: Final[dict[str, str]] = {
    "group_concat": "string_agg",
    "rand": "random",
    "logical_and": "bool_and",
    "logical_or": "bool_or",
    "current_version": "version",
    "str_position": "position",
    "unix_to_time": "to_timestamp",
    "timestamp_trunc": "date_trunc",
    "pg_to_char": "to_char",
    "pg_to_date": "to_date",
    "pg_to_number": "to_number",
    "pg_to_timestamp": "to_timestamp",
    "pg_json_object": "json_object",
    "pg_date_add": "date_add",
    "pg_date_subtract": "date_subtract",
    "j_s_o_n_object_agg": "json_object_agg",
    "j_s_o_n_b_object_agg": "jsonb_object_agg",
    "j_s_o_n_strip_nulls": "json_strip_nulls",
    "j_s_o_n_array_agg": "json_agg",
    "array_concat": "array_cat",
    "regexp_split": "regexp_split_to_array",
    "hex": "to_hex",
    "explode": "unnest",
    "exploding_generate_series": "generate_series",
    "array_size": "array_length",
    "uuid": "gen_random_uuid",
    "if": "case",
}


def function_name(node: exp.Expr) -> str:
    """The name that sqlglot has for it."""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return node.name.lower()
    return type(node).sql_names()[0].lower() if isinstance(node, exp.Func) else str(node.key)


def postgres_name(node: exp.Expr) -> str:
    """The name by which it was called; of an operator, that of the function that does the same."""
    written = node.meta_get(WRITTEN)
    if written is not None:
        return str(written)
    name = function_name(node)
    return _SPELLINGS.get(name, name)


def is_call(node: exp.Expr) -> bool:
    """Whether it was written as a call, not as an operator of which sqlglot makes a function."""
    return node.meta_get(WRITTEN) is not None


def is_now(node: exp.Expr) -> bool:
    """Whether it was written as a call of now(), of which sqlglot makes CURRENT_TIMESTAMP."""
    return isinstance(node, exp.CurrentTimestamp) and node.meta_get(WRITTEN) == NOW
