"""Operators of json and jsonb, translated to calls of our functions in DuckDB.

DuckDB's own would read every number as one with a fraction of sixteen digits, and contain otherwise. What they give of
texts and whole numbers is the same, and much faster, so they are asked first where a key is a constant.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.translate.mapped.trees import IS_JSON
from seachange.storage.duck_functions import PREFIX
from seachange.values.array_text import parse_array
from seachange.values.coercion import coerce
from seachange.values.json_text import parse_json
from seachange.values.types import Kind, SqlType

_JSON = SqlType(Kind.JSON)
_JSONB = SqlType(Kind.JSONB)
# Of these types DuckDB gives what is in the text.
_ALIKE = ("VARCHAR", "BOOLEAN", "BIGINT", "UBIGINT")
_KEYED: dict[type[exp.Expr], str] = {
    exp.JSONBContainsTopKey: "json_has",
    exp.JSONBContainsAnyTopKeys: "json_has_any",
    exp.JSONBContainsAllTopKeys: "json_has_all",
}
_DOCUMENTS = (exp.DType.JSON, exp.DType.JSONB)
# Texts that a date may be compared with.
_MOMENTS = frozenset({"now", "today", "yesterday", "tomorrow", "epoch", "infinity"})


_ARRAYED: Final[tuple[type[exp.Expr], ...]] = (exp.ArrayOverlaps, exp.ArrayContainsAll, exp.ArrayContainedBy)
# What may be translated.
_CONCERNED: Final[tuple[type[exp.Expr], ...]] = (
    *_KEYED,
    *_ARRAYED,
    *(exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar, exp.JSONBDeleteAtPath),
    *(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.DPipe, exp.Sub, exp.Cast),
)


def translate_json(tree: exp.Expr) -> exp.Expr:
    """Innermost first: what an operator is may depend on what its operands are."""
    for node in reversed(list(tree.find_all(*_CONCERNED))):
        translated = _translate(node)
        if translated is not None and translated is not node:
            if node is tree:
                tree = translated
            else:
                node.replace(translated)
    return tree


def _translate(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, _ARRAYED):
        _name_arrays(node)
    match node:
        case exp.Cast() if node.to.is_type(*_DOCUMENTS):
            return _cast(node)
        case exp.JSONExtractScalar() | exp.JSONExtract():
            return _extract(node)
        case exp.JSONBExtractScalar() | exp.JSONBExtract():
            found = _call("json_path", _text(node.this), _texts(node.expression))
            return _as_text(found) if isinstance(node, exp.JSONBExtractScalar) else _as_json(found)
        case exp.JSONBDeleteAtPath():
            return _as_json(_call("json_without_path", _text(node.this), _texts(node.expression)))
        case exp.JSONBContainsTopKey():
            return _call(_KEYED[type(node)], _text(node.this), _text(node.expression))
        case exp.JSONBContainsAnyTopKeys() | exp.JSONBContainsAllTopKeys():
            return _call(_KEYED[type(node)], _text(node.this), _texts(node.expression))
        case exp.ArrayContainsAll() | exp.ArrayContainedBy():
            return _contains(node)
        case exp.EQ() | exp.NEQ() | exp.NullSafeEQ() | exp.NullSafeNEQ():
            return _compare(node)
        case exp.DPipe():
            return _concatenate(node)
        case exp.Sub():
            return _without(node)
        case _:
            return None


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=PREFIX + name, expressions=list(arguments))


def _as_text(value: exp.Expr) -> exp.Expr:
    return _call("json_text", value)


def _as_json(value: exp.Expr) -> exp.Expr:
    made = exp.cast(value, exp.DataType.build("JSON"))
    made.meta[IS_JSON] = True
    return made


def _text(value: exp.Expr) -> exp.Expr:
    return exp.cast(value.copy(), exp.DataType.build("TEXT"))


def _texts(value: exp.Expr) -> exp.Expr:
    """A path or list of keys; a literal is one in braces."""
    if isinstance(value, exp.Literal) and value.is_string:
        return array_literal(parse_array(value.name), "TEXT")
    return exp.cast(value.copy(), exp.DataType.build("TEXT[]", dialect="duckdb"))


def array_literal(elements: list[str | None], element_type: str) -> exp.Expr:
    values = [exp.null() if element is None else exp.Literal.string(element) for element in elements]
    return exp.cast(exp.Array(expressions=values), exp.DataType.build(f"{element_type}[]", dialect="duckdb"))


def is_json(node: exp.Expr) -> bool:
    if node.meta_get(IS_JSON):
        return True
    node = node.unnest()
    return bool(node.meta_get(IS_JSON)) or (isinstance(node, exp.Cast) and node.to.is_type(*_DOCUMENTS))


def _cast(node: exp.Cast) -> exp.Expr | None:
    if node.meta_get(IS_JSON):
        return None
    binary = node.to.is_type(exp.DType.JSONB)
    if isinstance(node.this, exp.Literal) and node.this.is_string:
        value: exp.Expr = exp.Literal.string(coerce(_JSONB if binary else _JSON, node.this.name))
    else:
        value = _call("jsonb" if binary else "json", _text(node.this))
    if binary:
        return _as_json(value)
    made = exp.cast(value, exp.DataType.build("TEXT"))
    made.meta[IS_JSON] = True
    return made


def _extract(node: exp.Expr) -> exp.Expr:
    scalar = isinstance(node, exp.JSONExtractScalar)
    found = _step(node)
    whole = _as_text(found) if scalar else _as_json(found)
    path = _constant_path(node)
    if path is None:
        return whole
    document = _text(node.this)
    type_ = exp.Anonymous(this="json_type", expressions=[document, path])
    native = exp.Anonymous(
        this="json_extract_string" if scalar else "json_extract", expressions=[document.copy(), path.copy()]
    )
    alike = exp.In(this=type_.copy(), expressions=[exp.Literal.string(name) for name in _ALIKE])
    made = exp.case().when(alike, native)
    if isinstance(node.expression.expressions[-1], exp.JSONPathSubscript):
        # A scalar counts as an array of one, which DuckDB does not know.
        made = made.else_(whole)
    else:
        made = made.when(exp.Not(this=exp.Is(this=type_, expression=exp.null())), whole)
    made.meta[IS_JSON] = not scalar
    return exp.Paren(this=made) if scalar else _marked(exp.Paren(this=made))


def _marked(node: exp.Expr) -> exp.Expr:
    node.meta[IS_JSON] = True
    return node


def _step(node: exp.Expr) -> exp.Expr:
    """One key or place, as PostgreSQL has it: a text is a key, whatever it looks like."""
    document, key = _text(node.this), node.expression
    if isinstance(key, exp.JSONPath):
        if len(key.expressions) > 2:
            # json_extract_path: the first is the root.
            return _call("json_path", document, array_literal([str(step.this) for step in key.expressions[1:]], "TEXT"))
        last = key.expressions[-1]
        if isinstance(last, exp.JSONPathSubscript):
            return _call("json_element", document, exp.Literal.number(int(last.this)))
        return _call("json_field", document, exp.Literal.string(str(last.this)))
    if isinstance(key, exp.Neg) or (isinstance(key, exp.Literal) and not key.is_string):
        return _call("json_element", document, key.copy())
    if isinstance(key, exp.Cast) and key.to.is_type(*exp.DataType.INTEGER_TYPES):
        return _call("json_element", document, key.copy())
    return _call("json_field", document, _text(key))


def _constant_path(node: exp.Expr) -> exp.Expr | None:
    key = node.expression
    if not isinstance(key, exp.JSONPath) or len(key.expressions) != 2:
        return None
    last = key.expressions[-1]
    if isinstance(last, exp.JSONPathSubscript):
        place = int(last.this)
        return exp.Literal.string(f"$[{place}]") if place >= 0 else None
    name = str(last.this)
    return exp.Literal.string(f'$."{name}"') if name.isascii() and name.isidentifier() else None


def _compare(node: exp.Expr) -> exp.Expr | None:
    """Documents are equal if their values are: 1 and 1.0, whatever their texts."""
    if not any(map(is_json, (node.this, node.expression))):
        return None
    for key in ("this", "expression"):
        side = node.args[key]
        is_constant = isinstance(side, exp.Literal) and side.is_string
        text = exp.Literal.string(coerce(_JSONB, side.name)) if is_constant else _text(side)
        node.set(key, _call("json_value", text))
    return node


_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def _name_arrays(node: exp.Expr) -> None:
    """A constant beside an array is the text of one, unless it is one of a document."""
    for key in ("this", "expression"):
        side = node.args[key]
        is_text = isinstance(side, exp.Literal) and side.is_string and side.name.strip()[:1] == "{"
        if is_text and (isinstance(node, exp.ArrayOverlaps) or not _is_document(side)):
            items = parse_array(side.name)
            are_numbers = bool(items) and all(item is not None and _NUMBER.fullmatch(item) for item in items)
            make = exp.Literal.number if are_numbers else exp.Literal.string
            node.set(key, exp.Array(expressions=[exp.null() if item is None else make(item) for item in items]))


def _contains(node: exp.Expr) -> exp.Expr | None:
    """Of arrays that are seen to be ones, DuckDB's own operator; all others may be documents, and if they are arrays,
    those contain alike."""
    sides = [node.this, node.expression]
    if any(map(_is_array, sides)):
        return None
    whole, part = sides if isinstance(node, exp.ArrayContainsAll) else reversed(sides)
    return _call("json_contains", _document(whole), _document(part))


def _is_array(node: exp.Expr) -> bool:
    node = node.unnest()
    return isinstance(node, exp.Array) or (isinstance(node, exp.Cast) and node.to.is_type(exp.DType.ARRAY))


def _document(node: exp.Expr) -> exp.Expr:
    if is_json(node) or isinstance(node, exp.Literal):
        return _text(node)
    type_ = exp.Anonymous(this="typeof", expressions=[node.copy()])
    is_text = exp.In(this=type_, expressions=[exp.Literal.string("VARCHAR"), exp.Literal.string("JSON")])
    made = exp.Anonymous(this="to_json", expressions=[node.copy()])
    return exp.Paren(this=exp.case().when(is_text, _text(node)).else_(_text(made)))


def _concatenate(node: exp.DPipe) -> exp.Expr | None:
    sides = [node.this, node.expression]
    if any(map(is_json, sides)):
        return _as_json(_call("json_concat", _text(node.this), _text(node.expression)))
    if not any(map(_is_document, sides)):
        return None
    # A document if what it is put to is one, else a text like any other.
    other = sides[1] if _is_document(sides[0]) else sides[0]
    type_ = exp.Anonymous(this="typeof", expressions=[other.copy()])
    is_document = exp.EQ(this=type_, expression=exp.Literal.string("JSON"))
    texts = exp.DPipe(this=_text(node.this), expression=_text(node.expression))
    concatenated = _call("json_concat", _text(node.this), _text(node.expression))
    return exp.Paren(this=exp.case().when(is_document, concatenated).else_(texts))


def _is_document(node: exp.Expr) -> bool:
    """A literal that is the text of an object or array."""
    if not isinstance(node, exp.Literal) or not node.is_string or node.name.strip()[:1] not in ("{", "["):
        return False
    try:
        parse_json(node.name)
    except errors.Error:
        return False
    return True


def _without(node: exp.Sub) -> exp.Expr | None:
    key = node.expression
    if _is_array(key) and not _is_array(node.this):
        return _as_json(_call("json_without_all", _text(node.this), _texts(key)))
    if is_json(node.this):
        number = isinstance(key.unnest(), exp.Neg) or (isinstance(key, exp.Literal) and not key.is_string)
        name = "json_without_element" if number else "json_without"
        return _as_json(_call(name, _text(node.this), key.copy() if number else _text(key)))
    if isinstance(key, exp.Literal) and key.is_string and key.name.isidentifier() and key.name not in _MOMENTS:
        return _as_json(_call("json_without", _text(node.this), _text(key)))
    return None
