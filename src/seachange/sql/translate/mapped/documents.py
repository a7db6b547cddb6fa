"""Function mappings: JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.bind.names import function_name
from seachange.sql.translate.duck_errors import ARGUMENT_PHRASES
from seachange.sql.translate.mapped.trees import IS_JSON, Rewrite, arguments, call, our, spread_list, text_value
from seachange.storage.duck_functions import PREFIX


def _document(value: exp.Expr, kind: str) -> exp.Expr:
    """The text of a document of a value. What is seen to be one is taken as it is: a json has no type of its own."""
    given = value if isinstance(value, exp.Subquery) else value.unnest()
    if isinstance(given, exp.Cast) and given.to.is_type(exp.DType.JSON, exp.DType.JSONB):
        return exp.cast(given.copy(), exp.DType.TEXT)
    if isinstance(given, exp.Literal) and given.is_string:
        given = exp.cast(given.copy(), exp.DType.TEXT)
    return call(f"{PREFIX}to_{kind}", given)


def _to_json(node: exp.Func) -> exp.Expr:
    value, *_ = arguments(node)
    return as_document(_document(value, "jsonb" if function_name(node) == "to_jsonb" else "json"))


def _texts(values: Sequence[exp.Expr]) -> exp.Expr:
    return exp.cast(exp.Array(expressions=list(values)), exp.DataType.build("TEXT[]", dialect="duckdb"))


def _kind(node: exp.Func) -> str:
    return "jsonb" if function_name(node).startswith("jsonb") else "json"


def _build_array(node: exp.Func) -> exp.Expr:
    listed = spread_list(node.expressions)
    if listed is not None:
        return as_document(_document(listed, _kind(node)))
    items = [_document(value, _kind(node)) for value in arguments(node)]
    return as_document(call(PREFIX + "json_array", _texts(items)))


def _build_object(node: exp.Func) -> exp.Expr:
    values = arguments(node)
    if len(values) % 2:
        raise errors.InvalidParameterValue(detail="argument list must have even number of elements")
    keys = [exp.cast(key, exp.DType.TEXT) for key in values[::2]]
    items = [_document(value, _kind(node)) for value in values[1::2]]
    return as_document(call(f"{PREFIX}{_kind(node)}_object", _texts(keys), _texts(items)))


def _object_of_texts(node: exp.Func) -> exp.Expr:
    lists = [_text_list(given) for given in arguments(node)]
    return as_document(call(PREFIX + ("json_of_words" if len(lists) == 1 else "json_of_lists"), *lists))


def _text_list(given: exp.Expr) -> exp.Expr:
    return exp.cast(given, exp.DataType.build("TEXT[]", dialect="postgres"))


def _json_path(node: exp.Func) -> exp.Expr:
    document, *path = arguments(node)
    listed = spread_list(path)
    steps = _texts(path) if listed is None else _text_list(listed.copy())
    return call(PREFIX + "json_path", exp.cast(document, exp.DType.TEXT), steps)


def _json_path_document(node: exp.Func) -> exp.Expr:
    return as_document(_json_path(node))


def _json_path_text(node: exp.Func) -> exp.Expr:
    return call(PREFIX + "json_text", _json_path(node))


def _insert(node: exp.Func) -> exp.Expr:
    document, path, item, *rest = arguments(node)
    if rest and not isinstance(rest[0], exp.Boolean):
        raise errors.FeatureNotSupported(feature="jsonb_insert with a computed insert_after", instead="Use CASE.")
    name = "json_insert_after" if rest and rest[0].this else "json_insert"
    text = exp.DType.TEXT
    return as_document(call(PREFIX + name, exp.cast(document, text), _text_list(path), exp.cast(item, text)))


def as_document(text: exp.Expr) -> exp.Expr:
    """A text that is one of a document, as a value of that type."""
    made = exp.cast(text, exp.DataType.build("JSON", dialect="duckdb"))
    made.meta[IS_JSON] = True
    return made


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


_TREATMENTS: Final = frozenset({"raise_exception", "use_json_null", "delete_key", "return_target"})


def _set_lax(node: exp.Func) -> exp.Expr:
    """As jsonb_set, with something said about NULL."""
    document, path, item, *rest = arguments(node)
    treatment = text_value(rest[1]) if len(rest) > 1 else "use_json_null"
    if treatment not in _TREATMENTS:
        detail = "null_value_treatment must be one of " + ", ".join(sorted(_TREATMENTS))
        raise errors.InvalidParameterValue(detail=detail)
    new = exp.Anonymous(this="jsonb_set", expressions=[document.copy(), path.copy(), item.copy(), *rest[:1]])
    null = exp.Anonymous(
        this="jsonb_set", expressions=[document.copy(), path.copy(), exp.Literal.string("null"), *rest[:1]]
    )
    steps = _text_list(path.copy())
    without = as_document(call(PREFIX + "json_without_path", exp.cast(document.copy(), exp.DType.TEXT), steps))
    is_null = exp.Is(this=exp.paren(item.copy()), expression=exp.null())
    otherwise: dict[str, exp.Expr] = {
        "raise_exception": call("error", exp.Literal.string(ARGUMENT_PHRASES["json_null"])),
        "use_json_null": _set(null),
        "delete_key": without,
        "return_target": _as_jsonb(document.copy()),
    }
    return exp.paren(exp.case().when(is_null, otherwise[treatment or ""]).else_(_set(new)))


def _strip_nulls(node: exp.Func) -> exp.Expr:
    document = node.expressions[0] if node.expressions else node.this
    return _as_jsonb(call(PREFIX + "json_strip_nulls", exp.cast(document.copy(), exp.DType.TEXT)))


def _every(node: exp.Func) -> exp.Expr:
    return call("bool_and", *arguments(node))


def is_json_test(node: exp.Is) -> exp.Expr | None:
    """IS JSON, IS JSON ARRAY and the like."""
    wanted = node.expression
    if not isinstance(wanted, exp.JSON):
        return None
    kind = str(wanted.this or "VALUE").lower()
    unique = exp.Literal.number(1 if wanted.args.get("unique") and wanted.args.get("with_") is not False else 0)
    return call(PREFIX + "is_json", exp.cast(node.this.copy(), exp.DType.TEXT), exp.Literal.string(kind), unique)


# Paths of SQL/JSON.


def _path_call(name: str, document: exp.Expr, path: exp.Expr, rest: Sequence[exp.Expr]) -> exp.Expr:
    """With its variables, and whether it is silent about what is not there."""
    variables = rest[0] if rest else exp.Literal.string("{}")
    silent = rest[1] if len(rest) > 1 else exp.false()
    if not isinstance(silent, exp.Boolean):
        raise errors.FeatureNotSupported(feature="a path that is silent by an expression", instead="Use CASE.")
    name += "_silent" if silent.this else ""
    return call(PREFIX + name, *(exp.cast(each.copy(), exp.DType.TEXT) for each in (document, path, variables)))


def _path_truth(node: exp.Func) -> exp.Expr:
    document, path, *rest = arguments(node)
    return _path_call(function_name(node).removeprefix("jsonb_"), document, path, rest)


def path_items(node: exp.Func) -> exp.Expr:
    document, path, *rest = arguments(node)
    return _path_call("path_items", document, path, rest)


def _path_array(node: exp.Func) -> exp.Expr:
    return as_document(call(PREFIX + "json_array", path_items(node)))


def _path_first(node: exp.Func) -> exp.Expr:
    return as_document(call("list_extract", path_items(node), exp.Literal.number(1)))


def _path_operator(node: exp.Func) -> exp.Expr:
    """@? and @@, which say nothing about what is not there."""
    if isinstance(node, exp.MatchAgainst):
        name, document, path = "path_match", node.expressions[0], node.this
    else:
        name, document, path = "path_exists", node.this, node.expression
    return _path_call(name, document, path, [exp.Literal.string("{}"), exp.true()])


REWRITES: Final[dict[str, Rewrite]] = {
    "array_to_json": _to_json,
    "every": _every,
    "j_s_o_n_strip_nulls": _strip_nulls,
    "json_array_length": our("json_length", of_text=True),
    "json_build_array": _build_array,
    "json_build_object": _build_object,
    "json_extract_path": _json_path_document,
    "json_extract_path_text": _json_path_text,
    "json_typeof": our("json_typeof", of_text=True),
    "jsonb_array_length": our("json_length", of_text=True),
    "jsonb_build_array": _build_array,
    "jsonb_build_object": _build_object,
    "jsonb_extract_path": _json_path_document,
    "jsonb_extract_path_text": _json_path_text,
    "jsonb_insert": _insert,
    "json_strip_nulls": _strip_nulls,
    "jsonb_object": _object_of_texts,
    "j_s_o_n_b_path_exists": _path_operator,
    "jsonb_path_exists": _path_truth,
    "jsonb_path_match": _path_truth,
    "jsonb_path_query_array": _path_array,
    "jsonb_path_query_first": _path_first,
    "jsonb_pretty": our("json_pretty", of_text=True),
    "jsonb_set": _set,
    "jsonb_set_lax": _set_lax,
    "match_against": _path_operator,
    PREFIX + "path_items": path_items,
    "jsonb_strip_nulls": _strip_nulls,
    "jsonb_typeof": our("json_typeof", of_text=True),
    "pg_json_object": _object_of_texts,
    "row_to_json": _to_json,
    "to_json": _to_json,
    "to_jsonb": _to_json,
}
