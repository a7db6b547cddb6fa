"""Functions that DuckDB has under another name, or with another meaning, than PostgreSQL: by name, what they are there.

A function that is not named here means the same in both, as far as the suite that compares the two knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.duck_errors import ARGUMENT_PHRASES
from seachange.sql.guard import function_name
from seachange.sql.quantified import is_quantified
from seachange.storage.duck_functions import PREFIX

_Rewrite = Callable[[exp.Func], exp.Expr]


def map_functions(tree: exp.Expr) -> exp.Expr:
    """From the inside out: an argument is what it is in DuckDB before the call around it is put."""
    for node in reversed(list(tree.find_all(exp.Func, exp.SimilarTo, exp.Like, exp.ILike, exp.DPipe))):
        made = _rewrite(node)
        if made is not None and made is not node:
            if node is tree:
                tree = made
            else:
                node.replace(made)
    return tree


def _rewrite(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.SimilarTo):
        return _similar(node)
    if isinstance(node, exp.DPipe):
        return _concatenation(node)
    if isinstance(node, exp.Like | exp.ILike):
        return _like(node)
    assert isinstance(node, exp.Func)
    rewrite = _REWRITES.get(function_name(node))
    return rewrite(node) if rewrite is not None else None


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def _number(value: float) -> exp.Expr:
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))


def _whole(node: exp.Expr | None) -> int | None:
    """The value of a literal that is a whole number."""
    if isinstance(node, exp.Neg):
        inner = _whole(node.this)
        return None if inner is None else -inner
    is_number = isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()
    return int(node.name) if is_number and node is not None else None


def _text(node: exp.Expr | None) -> str | None:
    return node.name if isinstance(node, exp.Literal) and node.is_string else None


def _arguments(node: exp.Func) -> list[exp.Expr]:
    return [argument.copy() for argument in node.expressions]


# Texts.


def _like(node: exp.Expr) -> exp.Expr | None:
    """A backslash escapes unless something else is said to; DuckDB has nothing that does."""
    if isinstance(node.parent, exp.Escape) or is_quantified(node):
        return None
    pattern = _text(node.expression)
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
            made.append(re.escape(pattern[at + 1]))
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


def _similar(node: exp.SimilarTo) -> exp.Expr:
    pattern = _text(node.expression)
    if pattern is None:
        raise errors.FeatureNotSupported(feature="SIMILAR TO a pattern that is computed", instead="Use ~.")
    flags = exp.Literal.string("s")
    return _call("regexp_full_match", node.this, exp.Literal.string(similar_pattern(pattern)), flags)


def _substring(node: exp.Func) -> exp.Expr:
    """From a place before the text, only what lies within it; from a pattern, what matches it."""
    pattern = _text(node.args.get("start"))
    if pattern is not None:
        return _matched(node.this, pattern)
    start, length = node.args.get("start"), node.args.get("length")
    known = _whole(start)
    if start is None or (known is not None and known >= 1):
        return node
    first = _call("greatest", start, _number(1))
    if length is None:
        return _call("substring", node.this, first)
    ends = exp.Sub(
        this=exp.paren(exp.Add(this=exp.paren(start.copy()), expression=exp.paren(length.copy()))), expression=first
    )
    return _call("substring", node.this, first, _call("greatest", ends, _number(0)))


def _matched(text: exp.Expr, pattern: str) -> exp.Expr:
    """The first group of the first match, or all of it where there is none."""
    group = 1 if _groups(pattern) else 0
    literal = exp.Literal.string(pattern)
    found = _call("regexp_extract", text, literal, _number(group))
    return exp.case().when(_call("regexp_matches", text, literal), found)


def _groups(pattern: str) -> int:
    try:
        return re.compile(pattern).groups
    except re.error:
        raise errors.InvalidRegularExpression(detail=pattern) from None


def _regexp_match(node: exp.Func) -> exp.Expr:
    """A list of the groups, or of the whole match."""
    text, pattern = node.expressions[0], _text(node.expressions[1]) if len(node.expressions) > 1 else None
    if pattern is None or len(node.expressions) > 2:
        raise errors.FeatureNotSupported(
            feature="regexp_match with flags or a computed pattern", instead="Use regexp_replace."
        )
    literal, count = exp.Literal.string(pattern), _groups(pattern)
    places = range(1, count + 1) if count else (0,)
    found = exp.Array(expressions=[_call("regexp_extract", text, literal, _number(n)) for n in places])
    return exp.case().when(_call("regexp_matches", text, literal), found)


def _regexp_substr(node: exp.Func) -> exp.Expr:
    literal = node.expression
    found = _call("regexp_extract", node.this, literal)
    return exp.case().when(_call("regexp_matches", node.this, literal), found)


def _initcap(node: exp.Func) -> exp.Expr:
    return _call(PREFIX + "initcap", node.this)


def _encode(node: exp.Func) -> exp.Expr:
    form = (_text(node.args.get("charset")) or "").lower()
    if form == "hex":
        return _call("lower", _call("hex", node.this))
    if form == "base64":
        return _call("to_base64", node.this)
    raise errors.InvalidParameterValue(detail=f'unrecognized encoding: "{form}"')


def _decode(node: exp.Func) -> exp.Expr:
    form = (_text(node.args.get("charset")) or "").lower()
    if form == "hex":
        return _call("unhex", node.this)
    if form == "base64":
        return _call("from_base64", node.this)
    raise errors.InvalidParameterValue(detail=f'unrecognized encoding: "{form}"')


def _to_hex(node: exp.Func) -> exp.Expr:
    return _call("lower", _call("to_hex", node.this))


def _string_to_array(node: exp.Func) -> exp.Expr:
    text, separator, null = node.this, node.expression, node.args.get("null")
    if isinstance(separator, exp.Null):
        return _call("string_split", text, exp.Literal.string(""))
    split: exp.Expr = _call("string_split", text, separator)
    if null is not None:
        split = _call(PREFIX + "without_null", split, null)
    empty = exp.cast(exp.Array(expressions=[]), exp.DataType.build("TEXT[]", dialect="postgres"))
    return exp.case().when(exp.EQ(this=text.copy(), expression=exp.Literal.string("")), empty).else_(split)


def _split_part(node: exp.Func) -> exp.Expr:
    if _whole(node.args.get("part_index")) == 0:
        raise errors.InvalidParameterValue(detail="field position must not be zero")
    return node


def _octet_length(node: exp.Func) -> exp.Expr:
    argument = node.expressions[0]
    is_bytes = isinstance(argument, exp.Cast) and argument.to.is_type(exp.DType.VARBINARY)
    return node if is_bytes else _call("strlen", exp.cast(argument.copy(), exp.DType.TEXT))


def _length(node: exp.Func) -> exp.Expr:
    argument = node.this
    is_bytes = isinstance(argument, exp.Cast) and argument.to.is_type(exp.DType.VARBINARY)
    return _call("octet_length", argument) if is_bytes or isinstance(argument, exp.Unhex) else node


# Numbers.


def _guarded(node: exp.Func, key: str, wrong: Callable[[exp.Expr], exp.Expr], phrase: str) -> exp.Expr:
    """Puts a check before an argument: DuckDB answers NaN where there is no value."""
    argument = node.args[key]
    known = _whole(argument)
    if known is not None and known > 0 and wrong is not _is_no_sine:
        return node
    complaint = _call("error", exp.Literal.string(phrase))
    node.set(key, exp.case().when(wrong(argument.copy()), complaint).else_(argument.copy()))
    return node


def _is_negative(argument: exp.Expr) -> exp.Expr:
    return exp.LT(this=exp.paren(argument), expression=_number(0))


def _is_not_positive(argument: exp.Expr) -> exp.Expr:
    return exp.LTE(this=exp.paren(argument), expression=_number(0))


def _is_no_sine(argument: exp.Expr) -> exp.Expr:
    return exp.GT(this=_call("abs", argument), expression=_number(1))


def _sqrt(node: exp.Func) -> exp.Expr:
    return _guarded(node, "this", _is_negative, ARGUMENT_PHRASES["sqrt"])


def _ln(node: exp.Func) -> exp.Expr:
    return _guarded(node, "this", _is_not_positive, ARGUMENT_PHRASES["ln"])


def _log(node: exp.Func) -> exp.Expr:
    return _guarded(
        node, "expression" if node.args.get("expression") else "this", _is_not_positive, ARGUMENT_PHRASES["ln"]
    )


def _arc(node: exp.Func) -> exp.Expr:
    return _guarded(node, "this", _is_no_sine, ARGUMENT_PHRASES["arc"])


def _power(node: exp.Func) -> exp.Expr:
    """Zero has no negative powers."""
    base, exponent = node.this, node.expression
    known = _whole(exponent)
    base_known = _whole(base)
    if (known is not None and known >= 0) or (base_known is not None and base_known > 0):
        return node
    is_wrong = exp.And(
        this=exp.EQ(this=exp.paren(base.copy()), expression=_number(0)), expression=_is_negative(exponent.copy())
    )
    complaint = _call("error", exp.Literal.string(ARGUMENT_PHRASES["power"]))
    node.set("this", exp.case().when(is_wrong, complaint).else_(base.copy()))
    return node


def _round(node: exp.Func) -> exp.Expr:
    """Numbers in binary are rounded to the nearest even one."""
    argument = node.this
    is_binary = isinstance(argument, exp.Cast) and argument.to.is_type(exp.DType.DOUBLE, exp.DType.FLOAT)
    if is_binary and node.args.get("decimals") is None:
        return _call("round_even", argument, _number(0))
    return node


def _count_nulls(node: exp.Func) -> exp.Expr:
    return _sum_of(exp.Is(this=exp.paren(a), expression=exp.null()) for a in _arguments(node))


def _count_values(node: exp.Func) -> exp.Expr:
    return _sum_of(exp.Not(this=exp.Is(this=exp.paren(a), expression=exp.null())) for a in _arguments(node))


def _sum_of(conditions: Iterable[exp.Expr]) -> exp.Expr:
    total: exp.Expr | None = None
    for condition in conditions:
        one = exp.cast(exp.paren(condition), exp.DType.INT)
        total = one if total is None else exp.Add(this=total, expression=one)
    return exp.paren(total) if total is not None else _number(0)


# Times.

_FRACTIONS: Final = {"SECOND": 1_000_000, "SECONDS": 1_000_000, "MILLISECOND": 1_000, "MILLISECONDS": 1_000}


def _extract(node: exp.Func) -> exp.Expr:
    """Seconds have a fraction."""
    divisor = _FRACTIONS.get(node.this.name.upper())
    if divisor is None or not isinstance(node, exp.Extract):
        return node
    micros = exp.Extract(this=exp.Var(this="MICROSECOND"), expression=node.expression.copy())
    return exp.paren(exp.Div(this=micros, expression=exp.Literal.number(f"{divisor}.0"), typed=False))


def _to_char(node: exp.Func) -> exp.Expr:
    return _call(PREFIX + "to_char", *_arguments(node))


def _to_date(node: exp.Func) -> exp.Expr:
    return exp.cast(_call(PREFIX + "read_moment", *_arguments(node)), exp.DType.DATE)


def _to_timestamp(node: exp.Func) -> exp.Expr:
    if len(node.expressions) == 1:
        return _call("to_timestamp", exp.cast(node.expressions[0].copy(), exp.DType.DOUBLE))
    return exp.cast(_call(PREFIX + "read_moment", *_arguments(node)), exp.DType.TIMESTAMPTZ)


# Lists.


def _concatenation(node: exp.DPipe) -> exp.Expr | None:
    """A list with an item before or behind it, where the text tells that one side is a list and the other none."""
    left, right = _is_list(node.this), _is_list(node.expression)
    if left and right is False:
        return _call("list_append", node.this, node.expression)
    if right and left is False:
        return _call("list_prepend", node.this, node.expression)
    return None


def _is_list(node: exp.Expr) -> bool | None:
    """None if it cannot be told."""
    inner = node.unnest()
    if isinstance(inner, exp.Array) or (isinstance(inner, exp.Cast) and inner.to.is_type(exp.DType.ARRAY)):
        return True
    return False if isinstance(inner, exp.Literal | exp.Boolean) and not getattr(inner, "is_string", False) else None


def _array_length(node: exp.Func) -> exp.Expr:
    return _call("nullif", _call("len", node.this), _number(0))


def _array_cat(node: exp.Func) -> exp.Expr:
    return _call("list_concat", node.this, *node.expressions)


def _array_lower(node: exp.Func) -> exp.Expr:
    length = _call("len", node.expressions[0])
    return exp.case().when(exp.GT(this=length, expression=_number(0)), _number(1))


def _array_ndims(node: exp.Func) -> exp.Expr:
    return _array_lower(node)


def _trim_array(node: exp.Func) -> exp.Expr:
    listed, count = node.expressions
    kept = exp.Sub(this=_call("len", listed), expression=exp.paren(count.copy()))
    return _call("list_slice", listed, _number(1), kept)


def _array_positions(node: exp.Func) -> exp.Expr:
    return _call(PREFIX + "positions", *_arguments(node))


def _array_replace(node: exp.Func) -> exp.Expr:
    return _call(PREFIX + "replaced", *_arguments(node))


def _array_fill(node: exp.Func) -> exp.Expr:
    value, sizes = node.expressions
    return _call(PREFIX + "filled", value, _call("list_extract", sizes, _number(1)))


# JSON.


def _json_typeof(node: exp.Func) -> exp.Expr:
    return _call(PREFIX + "json_typeof", exp.cast(node.expressions[0].copy(), exp.DType.TEXT))


def _json_array_length(node: exp.Func) -> exp.Expr:
    return _call(PREFIX + "json_length", exp.cast(node.expressions[0].copy(), exp.DType.TEXT))


def _json_array(node: exp.Func) -> exp.Expr:
    return _call("json_array", *_arguments(node))


def _to_json(node: exp.Func) -> exp.Expr:
    return _call("to_json", *_arguments(node))


def _json_path_text(node: exp.Func) -> exp.Expr:
    document, *path = _arguments(node)
    keys = exp.Array(expressions=[exp.cast(key, exp.DType.TEXT) for key in path])
    found = _call(PREFIX + "json_path", exp.cast(document, exp.DType.TEXT), keys)
    return _call(PREFIX + "json_text", found)


def _json_agg(node: exp.Func) -> exp.Expr:
    argument = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    listed = exp.ArrayAgg(this=argument.copy())
    if isinstance(node.parent, exp.Filter | exp.Window):
        return _call("json_group_array", argument)
    return exp.case().when(exp.Not(this=exp.Is(this=listed, expression=exp.null())), _call("to_json", listed))


def _every(node: exp.Func) -> exp.Expr:
    return _call("bool_and", *_arguments(node))


_REWRITES: Final[dict[str, _Rewrite]] = {
    "array_concat": _array_cat,
    "array_fill": _array_fill,
    "array_lower": _array_lower,
    "array_ndims": _array_ndims,
    "array_positions": _array_positions,
    "array_replace": _array_replace,
    "array_size": _array_length,
    "acos": _arc,
    "asin": _arc,
    "decode": _decode,
    "encode": _encode,
    "every": _every,
    "extract": _extract,
    "hex": _to_hex,
    "initcap": _initcap,
    "j_s_o_n_array_agg": _json_agg,
    "json_array_length": _json_array_length,
    "json_build_array": _json_array,
    "json_typeof": _json_typeof,
    "jsonb_agg": _json_agg,
    "jsonb_array_length": _json_array_length,
    "jsonb_build_array": _json_array,
    "jsonb_extract_path_text": _json_path_text,
    "jsonb_typeof": _json_typeof,
    "length": _length,
    "ln": _ln,
    "log": _log,
    "num_nonnulls": _count_values,
    "num_nulls": _count_nulls,
    "octet_length": _octet_length,
    "power": _power,
    "regexp_match": _regexp_match,
    "regexp_substr": _regexp_substr,
    "round": _round,
    "split_part": _split_part,
    "sqrt": _sqrt,
    "string_to_array": _string_to_array,
    "substring": _substring,
    "pg_to_char": _to_char,
    "pg_to_date": _to_date,
    "to_json": _to_json,
    "to_jsonb": _to_json,
    "pg_to_timestamp": _to_timestamp,
    "trim_array": _trim_array,
}
# Those that only this module makes something of.
MAPPED_FUNCTIONS: Final[frozenset[str]] = frozenset(_REWRITES)
