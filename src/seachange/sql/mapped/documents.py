"""Functions of documents."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange.sql.mapped.trees import Rewrite, arguments, call
from seachange.storage.duck_functions import PREFIX


def _json_typeof(node: exp.Func) -> exp.Expr:
    return call(PREFIX + "json_typeof", exp.cast(node.expressions[0].copy(), exp.DType.TEXT))


def _json_array_length(node: exp.Func) -> exp.Expr:
    return call(PREFIX + "json_length", exp.cast(node.expressions[0].copy(), exp.DType.TEXT))


def _json_array(node: exp.Func) -> exp.Expr:
    return call("json_array", *arguments(node))


def _to_json(node: exp.Func) -> exp.Expr:
    return call("to_json", *arguments(node))


def _json_path_text(node: exp.Func) -> exp.Expr:
    document, *path = arguments(node)
    keys = exp.Array(expressions=[exp.cast(key, exp.DType.TEXT) for key in path])
    found = call(PREFIX + "json_path", exp.cast(document, exp.DType.TEXT), keys)
    return call(PREFIX + "json_text", found)


def _json_agg(node: exp.Func) -> exp.Expr:
    argument = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    listed = exp.ArrayAgg(this=argument.copy())
    if isinstance(node.parent, exp.Filter | exp.Window):
        return call("json_group_array", argument)
    return exp.case().when(exp.Not(this=exp.Is(this=listed, expression=exp.null())), call("to_json", listed))


def _every(node: exp.Func) -> exp.Expr:
    return call("bool_and", *arguments(node))


REWRITES: Final[dict[str, Rewrite]] = {
    "every": _every,
    "j_s_o_n_array_agg": _json_agg,
    "json_array_length": _json_array_length,
    "json_build_array": _json_array,
    "json_typeof": _json_typeof,
    "jsonb_agg": _json_agg,
    "jsonb_array_length": _json_array_length,
    "jsonb_build_array": _json_array,
    "jsonb_extract_path_text": _json_path_text,
    "jsonb_typeof": _json_typeof,
    "to_json": _to_json,
    "to_jsonb": _to_json,
}
