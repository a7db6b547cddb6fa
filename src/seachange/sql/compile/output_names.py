"""The names of a query's result columns, as PostgreSQL chooses them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seachange.sql.translate.guard import function_name
from seachange.sql.translate.time_functions import NOW, is_now

UNNAMED = "?column?"
# Functions whose name in sqlglot differs from the user's.
_SPELLINGS: dict[str, str] = {
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
# Operators that sqlglot represents as functions.
_OPERATORS = (
    exp.Connector,
    exp.RegexpLike,
    exp.RegexpILike,
    exp.ArrayContainsAll,
    exp.ArrayContainedBy,
    exp.ArrayOverlaps,
    exp.JSONExtract,
    exp.JSONExtractScalar,
    exp.JSONBExtract,
    exp.JSONBExtractScalar,
    exp.JSONBContainsTopKey,
    exp.JSONBContainsAnyTopKeys,
    exp.JSONBContainsAllTopKeys,
    exp.JSONBDeleteAtPath,
)


def output_names(tree: exp.Expr) -> tuple[str | None, ...] | None:
    """One name per projection, None for a star or where DuckDB's own name is right; None if there is no select list."""
    query: exp.Expr | None = tree
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    if isinstance(query, exp.Values):
        first = query.expressions[0] if query.expressions else None
        width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
        return tuple(f"column{i}" for i in range(1, width + 1))
    if not isinstance(query, exp.Select):
        return None
    return tuple(_name(projection) for projection in query.expressions)


def _name(node: exp.Expr) -> str | None:
    if node.is_star:
        return None
    if isinstance(node, exp.Alias | exp.Column | exp.Dot):
        return node.output_name or node.name
    if isinstance(node, exp.Paren):
        return _name(node.this)
    if isinstance(node, exp.Cast):
        return _cast_name(node)
    if isinstance(node, exp.Case):
        return "case"
    if isinstance(node, exp.Subquery):
        inner = output_names(node.this)
        return inner[0] if inner else UNNAMED
    if isinstance(node, exp.Window | exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        return _name(node.this)
    if isinstance(node, _OPERATORS) or not isinstance(node, exp.Func):
        return UNNAMED
    name = NOW if is_now(node) else function_name(node)
    return _SPELLINGS.get(name, name)


def _cast_name(node: exp.Cast) -> str | None:
    inner = _name(node.this)
    if inner not in (None, UNNAMED):
        return inner
    return str(node.to.sql("postgres")).lower().split("(")[0]


def apply_names(chosen: Sequence[str | None] | None, found: Sequence[str]) -> list[str]:
    """PostgreSQL's names where the text decides them: before the first star and after the last."""
    names = list(found)
    if chosen is None:
        return names
    stars = [i for i, name in enumerate(chosen) if name is None]
    before = chosen if not stars else chosen[: stars[0]]
    after = () if not stars else chosen[stars[-1] + 1 :]
    names[: len(before)] = [str(name) for name in before]
    if after:
        names[-len(after) :] = [str(name) for name in after]
    return names
