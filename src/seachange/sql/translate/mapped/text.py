"""Function mappings: text."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.bind.names import function_name
from seachange.sql.translate.duck_errors import ARGUMENT_PHRASES
from seachange.sql.translate.mapped.regexps import matched, translate_pattern
from seachange.sql.translate.mapped.trees import (
    IS_BYTES,
    Rewrite,
    call,
    number,
    our,
    spread_list,
    text_value,
    whole_value,
)
from seachange.sql.translate.quantified import is_quantified
from seachange.storage.duck_functions import COMPLAIN, PREFIX

# Longer than any.
_WHOLE: Final = 2**31 - 1
_TRIMS: Final = {"": "trim", "BOTH": "trim", "LEADING": "trim_start", "TRAILING": "trim_end"}


def translate_like(node: exp.Expr) -> exp.Expr | None:
    """A backslash escapes unless something else is said to; DuckDB has nothing that does."""
    if isinstance(node.parent, exp.Escape) or is_quantified(node):
        return None
    pattern = text_value(node.expression)
    if pattern is not None and "\\" not in pattern:
        return None
    return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))


def similar_pattern(pattern: str, escape: str = "\\") -> str:
    """
    >>> similar_pattern("(a|b)%_c.")
    '(?:a|b).*.c\\\\.'
    """
    made, at, bracket = [], 0, False
    while at < len(pattern):
        character = pattern[at]
        if character == escape and at + 1 < len(pattern):
            # A letter is the escape that it is in other patterns, as in \\m.
            made.append(f"\\{pattern[at + 1]}" if pattern[at + 1].isalnum() else re.escape(pattern[at + 1]))
            at += 2
            continue
        if bracket:
            bracket = character != "]"
            made.append(character)
        elif character == "[":
            bracket = True
            made.append(character)
        else:
            made.append({"%": ".*", "_": ".", ".": "\\.", "^": "\\^", "$": "\\$", "(": "(?:"}.get(character, character))
        at += 1
    return "".join(made)


def translate_similar(node: exp.SimilarTo) -> exp.Expr:
    pattern = text_value(node.expression)
    if pattern is None:
        raise errors.FeatureNotSupported(feature="SIMILAR TO a pattern that is computed", instead="Use ~.")
    flags = exp.Literal.string("s")
    return call(
        "regexp_full_match", node.this, exp.Literal.string(translate_pattern(similar_pattern(pattern), "n")), flags
    )


def _substring(node: exp.Func) -> exp.Expr:
    """From a place before the text, only what lies within it; from a pattern, what matches it."""
    pattern, escape = text_value(node.args.get("start")), text_value(node.args.get("length"))
    if pattern is not None:
        return matched(node.this, pattern if escape is None else _marked_pattern(pattern, escape))
    start, length = node.args.get("start"), node.args.get("length")
    known = whole_value(start)
    if length is not None and not isinstance(length, exp.Literal):
        length = _never_negative(length)
        node.set("length", length)
    if start is None or (known is not None and known >= 1):
        return node
    first = call("greatest", start, number(1))
    if length is None:
        return call("substring", node.this, first)
    ends = exp.Sub(
        this=exp.paren(exp.Add(this=exp.paren(start.copy()), expression=exp.paren(length.copy()))), expression=first
    )
    return call("substring", node.this, first, call("greatest", ends, number(0)))


def _never_negative(length: exp.Expr) -> exp.Expr:
    complaint = call(COMPLAIN, exp.Literal.string(ARGUMENT_PHRASES["substring"]))
    is_negative = exp.LT(this=exp.paren(length.copy()), expression=number(0))
    return exp.case().when(is_negative, complaint).else_(length.copy())


def _marked_pattern(pattern: str, escape: str) -> str:
    """The pattern of SQL for a part of a text, which stands between two escaped quotation marks.

    >>> _marked_pattern('%#"o_a#"_', "#")
    '^(?:.*?)(o.a)(?:.)$'
    """
    parts = pattern.split(f'{escape}"')
    if len(parts) != 3:
        raise errors.FeatureNotSupported(
            feature="substring by a pattern without two marks", instead="Use regexp_substr."
        )
    before, part, behind = (similar_pattern(each, escape) for each in parts)
    return f"^(?:{before.replace('.*', '.*?')})({part})(?:{behind})$"


def _initcap(node: exp.Func) -> exp.Expr:
    return call(PREFIX + "initcap", node.this)


def _encode(node: exp.Func) -> exp.Expr:
    form = (text_value(node.args.get("charset")) or "").lower()
    if form == "hex":
        return call("lower", call("hex", node.this))
    if form == "base64":
        return call("to_base64", node.this)
    if form == "escape":
        return call(PREFIX + "escaped_bytes", node.this)
    raise errors.InvalidParameterValue(detail=f'unrecognized encoding: "{form}"')


def _decode(node: exp.Func) -> exp.Expr:
    form = (text_value(node.args.get("charset")) or "").lower()
    if form == "hex":
        return call("unhex", node.this)
    if form == "base64":
        return call("from_base64", node.this)
    raise errors.InvalidParameterValue(detail=f'unrecognized encoding: "{form}"')


def _to_ascii(node: exp.Func) -> exp.Expr:
    raise errors.FeatureNotSupported(feature="to_ascii from UTF8", instead="Use normalize and translate.")


def _string_to_array(node: exp.Func) -> exp.Expr:
    text, separator, null = node.this, node.expression, node.args.get("null")
    if isinstance(separator, exp.Null):
        return call("string_split", text, exp.Literal.string(""))
    split: exp.Expr = call("string_split", text, separator)
    if not (isinstance(separator, exp.Literal) and separator.name):
        # An empty separator splits nothing, and NULL the characters.
        whole, characters = call("list_value", text), call("string_split", text, exp.Literal.string(""))
        is_empty = exp.EQ(this=separator.copy(), expression=exp.Literal.string(""))
        unknown = exp.Is(this=exp.paren(separator.copy()), expression=exp.null())
        split = exp.case().when(is_empty, whole).when(unknown, characters).else_(split)
    if null is not None:
        split = call(PREFIX + "without_null", split, null)
    empty = exp.cast(exp.Array(expressions=[]), exp.DataType.build("TEXT[]", dialect="postgres"))
    return exp.case().when(exp.EQ(this=text.copy(), expression=exp.Literal.string("")), empty).else_(split)


def _split_part(node: exp.Func) -> exp.Expr:
    delimiter, place = node.args["delimiter"], node.args["part_index"]
    if whole_value(place) == 0:
        raise errors.InvalidParameterValue(detail="field position must not be zero")
    if text_value(delimiter):
        return node
    # Without a delimiter the text is its first and last part.
    is_whole = exp.In(this=exp.paren(place.copy()), expressions=[number(1), number(-1)])
    whole = exp.case().when(is_whole, node.this.copy()).else_(call("left", node.this, number(0)))
    is_empty = exp.EQ(this=delimiter.copy(), expression=exp.Literal.string(""))
    return exp.case().when(is_empty, whole).else_(node.copy())


def _octet_length(node: exp.Func) -> exp.Expr:
    argument = node.expressions[0]
    return node if is_bytes(argument) else call("strlen", exp.cast(argument.copy(), exp.DType.TEXT))


def _length(node: exp.Func) -> exp.Expr:
    argument = node.this
    return call("octet_length", argument) if is_bytes(argument) or isinstance(argument, exp.Unhex) else node


def _shown(value: exp.Expr) -> exp.Expr:
    if isinstance(value, exp.Literal):
        return value.copy() if value.is_string else exp.cast(value.copy(), exp.DType.TEXT)
    return call(PREFIX + "shown", value)


def _concat(node: exp.Func) -> exp.Expr:
    listed = spread_list(node.expressions)
    if listed is not None:
        return call(PREFIX + "concatenated", exp.Literal.string(""), listed)
    node.set("expressions", [_shown(argument) for argument in node.expressions])
    return node


def _concat_ws(node: exp.Func) -> exp.Expr:
    separator, *values = node.expressions
    listed = spread_list(values)
    if listed is not None:
        return call(PREFIX + "concatenated", separator, listed)
    node.set("expressions", [separator.copy(), *[_shown(value) for value in values]])
    return node


def _format(node: exp.Func) -> exp.Expr:
    listed = spread_list(node.expressions)
    if listed is not None:
        return call(PREFIX + "format", node.this, call(PREFIX + "texts", listed))
    values = exp.Array(expressions=[_shown(argument) for argument in node.expressions])
    return call(PREFIX + "format", node.this, exp.cast(values, exp.DataType.build("TEXT[]", dialect="duckdb")))


# Constants have no type yet; the functions give nothing but texts.
_SHOWN_AS_THEY_ARE: Final = (exp.Literal, exp.Null, exp.Upper, exp.Lower)


def translate_concatenation(node: exp.DPipe) -> exp.Expr:
    """Beside what is a text for certain, other values are shown as PostgreSQL shows them."""
    for here, there in (("this", "expression"), ("expression", "this")):
        value = node.args[here]
        if _is_text(node.args[there]) and not (_is_text(value) or isinstance(value, _SHOWN_AS_THEY_ARE)):
            node.set(here, call(PREFIX + "text", value))
    return node


def _is_text(node: exp.Expr) -> bool:
    """Not if it may be a constant of another type."""
    inner = node.unnest()
    if isinstance(inner, exp.Literal):
        return inner.is_string and inner.name[:1] not in ("{", "[", "\\")
    if isinstance(inner, exp.DPipe):
        return _is_text(inner.this) or _is_text(inner.expression)
    if isinstance(inner, exp.Cast):
        return inner.to.is_type(*exp.DataType.TEXT_TYPES)
    return isinstance(inner, exp.Anonymous) and inner.name == PREFIX + "text"


def _bytes(node: exp.Expr) -> exp.Expr:
    return exp.cast(node.copy(), exp.DType.VARBINARY)


def _digest(node: exp.Func) -> exp.Expr:
    """sqlglot has one node for some of them, and keeps the others as they are called."""
    if isinstance(node, exp.Anonymous):
        return call(PREFIX + "digest", _bytes(node.expressions[0]), number(int(node.name[len("sha") :])))
    return call(PREFIX + "digest", _bytes(node.this), number(whole_value(node.args.get("length")) or 256))


def _get_byte(node: exp.Func) -> exp.Expr:
    data, place = node.expressions
    return call(PREFIX + "get_byte", _bytes(data), place)


def _get_bit(node: exp.Func) -> exp.Expr:
    return call(PREFIX + "get_bit", _bytes(node.this), node.expression)


def _set_bits(node: exp.Func) -> exp.Expr:
    data, place, value = node.expressions
    return call(PREFIX + function_name(node), _bytes(data), place, value)


def _convert_from(node: exp.Func) -> exp.Expr:
    _check_encoding(node)
    return call("decode", _bytes(node.expressions[0]))


def _convert_to(node: exp.Func) -> exp.Expr:
    _check_encoding(node)
    return call("encode", exp.cast(node.expressions[0].copy(), exp.DType.TEXT))


def _check_encoding(node: exp.Func) -> None:
    encoding = text_value(node.expressions[1])
    if encoding is None or encoding.replace("-", "").lower() not in ("utf8", "unicode"):
        raise errors.FeatureNotSupported(feature="an encoding but UTF8", instead="")


def _normalize(node: exp.Func) -> exp.Expr:
    form = node.args.get("form")
    name = form.name.upper() if isinstance(form, exp.Expr) else "NFC"
    return call(PREFIX + "normalize", node.this, exp.Literal.string(name))


def _string_parts(node: exp.Func) -> exp.Expr:
    text, separator, *null = node.expressions
    split = exp.StringToArray(this=text.copy(), expression=separator.copy(), null=null[0].copy() if null else None)
    return _string_to_array(split)


def _bit_count(node: exp.Func) -> exp.Expr:
    return call(PREFIX + "count_bits", _bytes(node.expressions[0]))


REWRITES: Final[dict[str, Rewrite]] = {
    "bit_count": _bit_count,
    "concat": _concat,
    "concat_ws": _concat_ws,
    "format": _format,
    "get_byte": _get_byte,
    **dict.fromkeys(("s_h_a2_digest", "sha224", "sha384", "sha512"), _digest),
    "decode": _decode,
    "encode": _encode,
    "hashtext": our("hashtext", of_text=True),
    "hex": our("hex"),
    "pg_size_bytes": our("size_bytes", of_text=True),
    "to_ascii": _to_ascii,
    "initcap": _initcap,
    "length": _length,
    "octet_length": _octet_length,
    "convert_from": _convert_from,
    "convert_to": _convert_to,
    "get_bit": _get_bit,
    "getbit": _get_bit,
    "normalize": _normalize,
    "parse_ident": our("parse_ident"),
    "set_bit": _set_bits,
    "set_byte": _set_bits,
    "unistr": our("unistr"),
    PREFIX + "string_parts": _string_parts,
    "split_part": _split_part,
    "string_to_array": _string_to_array,
    "substring": _substring,
}


def translate_bytes(node: exp.Func) -> exp.Expr | None:
    """A text function that has another meaning for bytea, where the argument is known to be one; None for texts."""
    match node:
        case exp.Substring() if is_bytes(node.this):
            length = node.args.get("length") or number(_WHOLE)
            return _call("substring", node.this, node.args.get("start") or number(1), length)
        case exp.StrPosition() if is_bytes(node.this):
            return exp.cast(_call("position", _as_bytes(node.args["substr"]), node.this), exp.DType.INT)
        case exp.Trim() if is_bytes(node.this) and node.expression is not None:
            return _call(_TRIMS[str(node.args.get("position") or "")], node.this, _as_bytes(node.expression))
        case exp.Overlay() if is_bytes(node.this):
            return _overlay(node.this, _as_bytes(node.expression), node.args["from_"], node.args.get("for_"))
        case exp.BitLength() if is_bytes(node.this):
            return exp.paren(exp.Mul(this=call("octet_length", node.this), expression=number(8)))
        case _:
            return None


def _overlay(data: exp.Expr, put: exp.Expr, start: exp.Expr, length: exp.Expr | None) -> exp.Expr:
    taken = length if length is not None else call("octet_length", put)
    before = _call("substring", data, number(1), exp.Sub(this=exp.paren(start.copy()), expression=number(1)))
    following = exp.Add(this=exp.paren(start.copy()), expression=exp.paren(taken.copy()))
    behind = _call("substring", data, following, number(_WHOLE))
    return exp.DPipe(this=exp.DPipe(this=before, expression=put.copy()), expression=behind)


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return call(f"{PREFIX}bytes_{name}", *arguments)


def _as_bytes(node: exp.Expr) -> exp.Expr:
    return node.copy() if is_bytes(node) else exp.cast(node.copy(), exp.DType.VARBINARY)


def is_bytes(node: exp.Expr) -> bool:
    inner = node.unnest()
    if node.meta_get(IS_BYTES) or inner.meta_get(IS_BYTES):
        return True
    if isinstance(inner, exp.Anonymous):
        return inner.name.startswith(f"{PREFIX}bytes_") and not inner.name.endswith("position")
    return isinstance(inner, exp.Cast) and bool(inner.to.is_type(exp.DType.VARBINARY))
