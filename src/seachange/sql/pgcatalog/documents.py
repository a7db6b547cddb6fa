"""Operators of json and jsonb, out of the calls that stored expressions have in their place."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from seachange.storage.duck_functions import PREFIX
from seachange.values.array_text import show_array

_STEPS: Final = frozenset({f"{PREFIX}json_field", f"{PREFIX}json_element"})
_PATH: Final = f"{PREFIX}json_path"
_TEXT: Final = f"{PREFIX}json_text"
_TYPE: Final = "json_type"
# By their functions: operators whose operands are a document and a text, or two documents.
_OPERATORS: Final[dict[str, type[exp.Binary]]] = {
    f"{PREFIX}json_has": exp.JSONBContainsTopKey,
    f"{PREFIX}json_contains": exp.ArrayContainsAll,
    f"{PREFIX}json_concat": exp.DPipe,
    f"{PREFIX}json_without": exp.Sub,
}


def name_operators(holder: exp.Expr) -> None:
    """From the inside out. The holder itself is none."""
    for node in reversed(list(holder.find_all(exp.Case, exp.Anonymous))):
        made = _whole(node) if isinstance(node, exp.Case) else None
        made = _operator(node) if isinstance(node, exp.Anonymous) else made
        if made is None:
            continue
        above = node.parent
        # Documents are passed as texts, and what gives one is declared.
        while isinstance(above, exp.Cast) and isinstance(above.parent, exp.Cast) and above.to.is_type(exp.DType.JSON):
            node, above = above, above.parent
        if isinstance(above, exp.Cast) and above.to.is_type(exp.DType.JSON):
            node = above
        node.replace(made)


def _whole(node: exp.Case) -> exp.Expr | None:
    """The last branch of a choice between DuckDB's function and ours."""
    first = node.args["ifs"][0].this
    asked = first.this if isinstance(first, exp.In) else None
    if not isinstance(asked, exp.Anonymous | exp.JSONType) or asked.sql("duckdb").lower()[: len(_TYPE)] != _TYPE:
        return None
    last: exp.Expr = node.args.get("default") or node.args["ifs"][-1].args["true"]
    return last.copy()


def _operator(node: exp.Anonymous) -> exp.Expr | None:
    name = node.name.lower()
    if name in _STEPS or name == _PATH:
        return None if _is_text(node.parent) else _taken(node, is_text=False)
    if name == _TEXT and isinstance(node.expressions[0], exp.Anonymous):
        return _taken(node.expressions[0], is_text=True)
    kind = _OPERATORS.get(name)
    if kind is None or len(node.expressions) != 2:
        return None
    key = node.expressions[1]
    other = _document(key) if kind in (exp.ArrayContainsAll, exp.DPipe) else _plain(key)
    return kind(this=_document(node.expressions[0]), expression=other)


def _is_text(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == _TEXT


def _taken(node: exp.Anonymous, is_text: bool) -> exp.Expr | None:
    document, key = node.expressions
    if node.name.lower() == _PATH:
        listed = key.this if isinstance(key, exp.Cast) else key
        if not isinstance(listed, exp.Array):
            return None
        path = show_array([_plain(item).name for item in listed.expressions])
        wanted = exp.cast(exp.Literal.string(path), exp.DataType.build("TEXT[]", dialect="postgres"))
        kind: type[exp.Binary] = exp.JSONBExtractScalar if is_text else exp.JSONBExtract
        return kind(this=_document(document), expression=wanted)
    made: exp.Expr = (exp.JSONExtractScalar if is_text else exp.JSONExtract)(
        this=_document(document), expression=_plain(key), only_json_types=True
    )
    return made


def _document(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Cast) and node.to.is_type(exp.DType.TEXT, exp.DType.JSON):
        node = node.this
    if isinstance(node, exp.Literal):
        return exp.cast(node.copy(), exp.DType.JSONB)
    return node.copy()


def _plain(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Cast) and node.to.is_type(exp.DType.TEXT):
        node = node.this
    return node.copy()
