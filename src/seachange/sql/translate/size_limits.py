"""Size limits of functions whose result may be huge: neither DuckDB's memory limit nor an interrupt stops them, so the
size of the result is computed first.

**Invariant:** none of them makes a value of more than `VALUE_BYTES_MAX` bytes or a list of more than `LIST_ITEMS_MAX`
items, and none whose steps are the product of two lengths gets long arguments. It is an argument that is guarded, not
the call: DuckDB would compute a call of constants in any branch.

RE2 finds one match in linear time, but all matches of some patterns take time that grows with the square of the text:
each may be searched for up to the end. No bound of a useful size keeps that short, so a statement that is still in
such a value when it should end loses its connection (`seachange.cancel_grace`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from seachange import errors
from seachange.sql.translate.duck_errors import DISTANCE_PHRASE, LIMIT_PHRASE
from seachange.storage.duck_functions import COMPLAIN

VALUE_BYTES_MAX = 64 << 20
LIST_ITEMS_MAX = 8 << 20
DISTANCE_CHARS_MAX = 255
# A text in which all matches of a pattern are found, unless they take linear time.
MATCHED_BYTES_MAX = 1 << 20
# The product of its size and that of the pattern: a step of nested groups takes a tenth of a microsecond.
MATCH_STEPS_MAX = 1 << 28
# Constants of at most this size are no reason for a guard: they make neither values nor searches large.
_SHORT_BYTES = VALUE_BYTES_MAX // LIST_ITEMS_MAX
# The text of an argument is repeated in its guard.
_NESTED_MAX = 4
# DuckDB's functions that find all matches.
_MATCH_LISTS = frozenset({"regexp_extract_all", "regexp_split_to_array", "string_split_regex"})
# Ours, before a pattern: they are no steps.
_FLAGS = re.compile(r"\A\(\?[a-z]+\)")
_ONE = r"(?:\\[^\d]|\[\^?(?:\\.|[^\\\[\]])+\]|[^\\\[\](){}|*+?])"
_LINEAR = re.compile(rf"(?:\(\?[a-z]+\))?{_ONE}*(?:{_ONE}[*+])?", re.DOTALL)


def bound_sizes(tree: exp.Expr) -> exp.Expr:
    # From the inside out, so that a guard repeats its arguments with their own guards in place.
    nodes = [node for node in tree.walk() if type(node) in _GUARDS]
    for node in reversed(nodes):
        if _depth(node) > _NESTED_MAX:
            raise errors.StatementTooComplex()
    for node in reversed(nodes):
        _GUARDS[type(node)](node)
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.lower() in _MATCH_LISTS:
            _guard_matches(call, *call.expressions[:2])
    return tree


def drop_guards(holder: exp.Expr) -> None:
    """The opposite, for what is shown: leaves out every check before an argument, also those of values out of range.
    The holder itself is none."""
    for case in reversed(list(holder.find_all(exp.Case))):
        default = case.args.get("default")
        if case.this is None and default is not None and all(_complains(branch) for branch in case.args["ifs"]):
            case.replace(default.copy())


def _complains(branch: exp.Expr) -> bool:
    value = branch.args["true"]
    value = value.this if isinstance(value, exp.Cast) else value
    if not isinstance(value, exp.Anonymous):
        return False
    name = value.name.lower()
    return name == COMPLAIN or (name == "error" and LIMIT_PHRASE in value.expressions[0].name)


def _depth(node: exp.Expr) -> int:
    depth = 0
    above: exp.Expr | None = node
    while above is not None:
        depth += type(above) in _GUARDS
        above = above.parent
    return depth


def _size(node: exp.Expr) -> exp.Expr:
    """The bytes of a text, never NULL; wide enough for any product."""
    text = exp.cast(node.copy(), exp.DataType.build("TEXT"))
    return exp.cast(_call("coalesce", _call("strlen", text), exp.Literal.number(0)), exp.DataType.build("DOUBLE"))


def _number(node: exp.Expr) -> exp.Expr:
    return exp.cast(exp.paren(node.copy(), copy=False), exp.DataType.build("DOUBLE"))


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _guard(node: exp.Expr, key: str, size: exp.Expr, type_: str) -> None:
    """Puts a check of `size`, in bytes, before the argument `key`, which is of this type."""
    words = exp.Literal.string(f"a value {LIMIT_PHRASE} {VALUE_BYTES_MAX} bytes")
    _put_check(node, key, size, VALUE_BYTES_MAX, exp.cast(_call(COMPLAIN, words), exp.DataType.build(type_)))


def _put_check(node: exp.Expr, key: str, size: exp.Expr, limit: int, complaint: exp.Expr) -> None:
    argument = node.args[key]
    too_large = exp.GT(this=size, expression=exp.Literal.number(limit))
    node.set(key, exp.case().when(too_large, complaint).else_(argument.copy()))


def _guard_repeat(node: exp.Expr) -> None:
    _guard(node, "times", exp.Mul(this=_size(node.this), expression=_number(node.args["times"])), "INT")


def _guard_pad(node: exp.Expr) -> None:
    # A character has up to four bytes.
    _guard(node, "expression", exp.Mul(this=_number(node.expression), expression=exp.Literal.number(4)), "INT")


def _guard_space(node: exp.Expr) -> None:
    _guard(node, "this", _number(node.this), "INT")


def _guard_replace(node: exp.Expr) -> None:
    replacement = node.args.get("replacement")
    if replacement is None:
        return
    pattern: exp.Expr = exp.Literal.number(1)
    if isinstance(node, exp.Replace):
        pattern = _call("greatest", _size(node.expression), exp.Literal.number(1))
    found = exp.Div(this=_size(node.this), expression=pattern)
    _guard(node, "replacement", exp.Mul(this=exp.paren(found), expression=_size(replacement)), "TEXT")


def _guard_replacements(node: exp.Expr) -> None:
    _guard_replace(node)
    if "g" in (_constant(node.args.get("modifiers")) or ""):
        _guard_matches(node, node.this, node.expression)


def _guard_count(node: exp.Expr) -> None:
    _guard_matches(node, node.this, node.expression)


def _guard_matches(node: exp.Expr, text: exp.Expr, pattern: exp.Expr) -> None:
    """Checks the text in which all matches are found."""
    if is_linear(_constant(pattern)):
        return
    words = exp.Literal.string(f"a text to find all matches in {LIMIT_PHRASE} {MATCHED_BYTES_MAX} bytes")
    too_large = exp.GT(this=_size(text), expression=exp.Literal.number(MATCHED_BYTES_MAX))
    guarded = _with_steps(exp.case().when(too_large, _complaint(words)), text, pattern)
    text.replace(guarded.else_(text.copy()))


def _with_steps(case: exp.Case, text: exp.Expr, pattern: exp.Expr) -> exp.Case:
    """RE2 takes a step for each character of the text and of the pattern."""
    words = exp.Literal.string(f"the product of the sizes of a text and a pattern {LIMIT_PHRASE} {MATCH_STEPS_MAX}")
    steps = exp.Mul(this=_size(text), expression=_size(pattern))
    return case.when(exp.GT(this=steps, expression=exp.Literal.number(MATCH_STEPS_MAX)), _complaint(words))


def _guard_match(node: exp.Expr) -> None:
    """Checks the text in which one match is looked for."""
    if not _is_short(node.expression, _FLAGS):
        node.set("this", _with_steps(exp.case(), node.this, node.expression).else_(node.this.copy()))


def _guard_joined(node: exp.Expr) -> None:
    """Checks a list by what is put between its items, and in the place of those that are NULL. DuckDB takes constants
    for these alone, so the list is guarded."""
    joints = [node.args[key] for key in ("expression", "null") if node.args.get(key) is not None]
    if all(map(_is_short, joints)):
        return
    items = _call("coalesce", _call("len", node.this.copy()), exp.Literal.number(0))
    size = exp.Mul(this=items, expression=_call("greatest", *map(_size, joints)))
    # It may be a list of anything.
    words = exp.Literal.string(f"a value {LIMIT_PHRASE} {VALUE_BYTES_MAX} bytes")
    _put_check(node, "this", size, VALUE_BYTES_MAX, _call("error", words))


def _is_short(node: exp.Expr, without: re.Pattern[str] | None = None) -> bool:
    text = _constant(node)
    if text is not None and without is not None:
        text = without.sub("", text, count=1)
    return text is not None and len(text.encode()) <= _SHORT_BYTES


def _complaint(words: exp.Expr) -> exp.Expr:
    return exp.cast(_call(COMPLAIN, words), exp.DataType.build("TEXT"))


def _constant(node: exp.Expr | None) -> str | None:
    """The value of a constant, else None."""
    return node.name if isinstance(node, exp.Literal) and node.is_string else None


def is_linear(pattern: str | None) -> bool:
    """Whether the search for a match never goes far beyond it: nothing is repeated, or only the last character or class
    of a pattern without alternatives.

    >>> [is_linear(p) for p in (",", "\\\\s+", "a[b-d]*", "(?s)a.c", "a*b", "a|b+", "(ab)+", None)]
    [True, True, True, True, False, False, False, False]
    """
    return pattern is not None and _LINEAR.fullmatch(pattern) is not None


def _guard_series(node: exp.Expr) -> None:
    if isinstance(node.parent, exp.Table):
        # As a table it is a stream.
        return
    start, end = node.args["start"], node.args["end"]
    step = node.args.get("step") or exp.Literal.number(1)
    measure = _seconds if _is_interval(step) else _number
    reach = exp.paren(exp.Sub(this=measure(end), expression=measure(start)))
    items = exp.Div(this=reach, expression=_call("nullif", measure(step), exp.Literal.number(0)))
    # It may be a number or a moment: what DuckDB takes for either is volatile.
    words = exp.Literal.string(f"a list {LIMIT_PHRASE} {LIST_ITEMS_MAX} items")
    _put_check(node, "end", items, LIST_ITEMS_MAX, _call("error", words))


def _is_interval(node: exp.Expr) -> bool:
    return isinstance(node, exp.Interval) or (isinstance(node, exp.Cast) and node.to.is_type(exp.DType.INTERVAL))


def _seconds(node: exp.Expr) -> exp.Expr:
    return _call("epoch", node.copy())


def _guard_distance(node: exp.Expr) -> None:
    """It takes as many steps as the product of both lengths; PostgreSQL has the same limit."""
    lengths = [
        _call("length", exp.cast(text.copy(), exp.DataType.build("TEXT"))) for text in (node.this, node.expression)
    ]
    words = exp.Literal.string(f"levenshtein {DISTANCE_PHRASE} {DISTANCE_CHARS_MAX} characters")
    complaint = exp.cast(_call(COMPLAIN, words), exp.DataType.build("TEXT"))
    _put_check(node, "this", _call("greatest", *lengths), DISTANCE_CHARS_MAX, complaint)


_GUARDS: dict[type[exp.Expr], Callable[[exp.Expr], None]] = {
    exp.Repeat: _guard_repeat,
    exp.Pad: _guard_pad,
    exp.Space: _guard_space,
    exp.Replace: _guard_replace,
    exp.RegexpReplace: _guard_replacements,
    exp.RegexpCount: _guard_count,
    exp.RegexpLike: _guard_match,
    exp.RegexpILike: _guard_match,
    exp.ArrayToString: _guard_joined,
    exp.RegexpInstr: _guard_count,
    exp.Levenshtein: _guard_distance,
    exp.GenerateSeries: _guard_series,
    exp.ExplodingGenerateSeries: _guard_series,
}
