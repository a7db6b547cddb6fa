"""Functions of documents."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange import errors
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


def _as_jsonb(value: exp.Expr) -> exp.Expr:
    return exp.cast(value, exp.DataType.build("JSONB", dialect="postgres"))


def _set(node: exp.Func) -> exp.Expr:
    """A fourth argument tells whether what is not there is added."""
    document, path, item, *rest = arguments(node)
    if rest and not isinstance(rest[0], exp.Boolean):
        raise errors.FeatureNotSupported(feature="jsonb_set with a computed create_if_missing", instead="Use CASE.")
    name = "json_replace" if rest and not rest[0].this else "json_set"
    steps = exp.cast(path, exp.DataType.build("TEXT[]", dialect="postgres"))
    text = exp.DType.TEXT
    return _as_jsonb(call(PREFIX + name, exp.cast(document, text), steps, exp.cast(item, text)))


def _strip_nulls(node: exp.Func) -> exp.Expr:
    return _as_jsonb(call(PREFIX + "json_strip_nulls", exp.cast(node.expressions[0].copy(), exp.DType.TEXT)))


def _pretty(node: exp.Func) -> exp.Expr:
    return call(PREFIX + "json_pretty", exp.cast(node.expressions[0].copy(), exp.DType.TEXT))


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
    "json_strip_nulls": _strip_nulls,
    "jsonb_pretty": _pretty,
    "jsonb_set": _set,
    "jsonb_strip_nulls": _strip_nulls,
    "jsonb_typeof": _json_typeof,
    "to_json": _to_json,
    "to_jsonb": _to_json,
}
