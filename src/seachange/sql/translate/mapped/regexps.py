"""Function mappings: regular expressions. DuckDB uses RE2; constant patterns are rewritten to mean there what they mean
in PostgreSQL."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from seachange import errors
from seachange.sql.translate.mapped.trees import Rewrite, call, number, text_value, whole_value
from seachange.storage.duck_functions import PREFIX

# Escapes that are spelled otherwise: the edges of words and of the text.
_ESCAPES: Final = {"y": "\\b", "m": "\\b", "M": "\\b", "Y": "\\B", "Z": "\\z"}
# What they are called there; in PostgreSQL n, m, p and w are about lines.
_FLAGS: Final = {"i": "i", "c": "c", "g": "g", "s": "s", "n": "m", "m": "m"}
_LINES: Final = frozenset("nm")


def translate_pattern(pattern: str, flags: str = "") -> str:
    """
    >>> translate_pattern(r"\\mfoo\\M[.\\]]"), translate_pattern("a.b"), translate_pattern("a.b", "n")
    ('\\\\bfoo\\\\b[.\\\\]]', '(?s)a.b', 'a.b')
    """
    made, at, bracket, dot = [], 0, False, False
    while at < len(pattern):
        character = pattern[at]
        if character == "\\" and at + 1 < len(pattern):
            following = pattern[at + 1]
            made.append("\\" + following if bracket else _ESCAPES.get(following, "\\" + following))
            at += 2
            continue
        dot = dot or (character == "." and not bracket)
        bracket = character == "[" or (bracket and character != "]")
        made.append(character)
        at += 1
    # A point is any character, the end of a line too.
    return ("(?s)" if dot and _LINES.isdisjoint(flags) else "") + "".join(made)


def count_groups(pattern: str) -> int:
    try:
        return re.compile(re.sub(r"\\[mMyYZ]", "", pattern)).groups
    except re.error:
        raise errors.InvalidRegularExpression(detail=pattern) from None


def read_flags(node: exp.Expr | None, feature: str) -> str:
    """As they were given."""
    if node is None:
        return ""
    flags = text_value(node)
    if flags is None or any(flag not in _FLAGS for flag in flags):
        raise errors.FeatureNotSupported(feature=f"{feature} with these flags", instead="Those are i, c, g, n and s.")
    return flags


def _options(flags: str) -> list[exp.Expr]:
    plain = "".join(_FLAGS[flag] for flag in flags if flag != "g")
    return [exp.Literal.string(plain)] if plain else []


def _constant(node: exp.Expr | None, feature: str) -> str:
    pattern = text_value(node)
    if pattern is None:
        raise errors.FeatureNotSupported(feature=f"{feature} with a computed pattern", instead="Use a constant.")
    return pattern


def matched(text: exp.Expr, pattern: str) -> exp.Expr:
    """What `substring` gives: the first group of the first match, or all of it where there is none."""
    group = 1 if count_groups(pattern) else 0
    literal = exp.Literal.string(translate_pattern(pattern))
    found = call("regexp_extract", text, literal, number(group))
    return exp.case().when(call("regexp_matches", text, literal), found)


def _match(text: exp.Expr, pattern: str, flags: str) -> exp.Expr:
    """A list of the groups, or of the whole match; NULL if there is none."""
    literal, options = exp.Literal.string(translate_pattern(pattern, flags)), _options(flags)
    found = [call("regexp_extract", text, literal, number(n), *options) for n in _places(pattern)]
    return exp.case().when(call("regexp_matches", text, literal, *options), exp.Array(expressions=found))


def _places(pattern: str) -> range:
    count = count_groups(pattern)
    return range(1, count + 1) if count else range(1)


def _regexp_match(node: exp.Func) -> exp.Expr:
    text, pattern, *rest = node.expressions
    flags = read_flags(rest[0] if rest else None, "regexp_match")
    if "g" in flags:
        raise errors.InvalidParameterValue(detail='regexp_match() does not support the "global" option')
    return _match(text, _constant(pattern, "regexp_match"), flags)


def _regexp_all(node: exp.Func) -> exp.Expr:
    """regexp_matches: a list for each match, or for the first only."""
    text, given, *rest = node.expressions
    flags = read_flags(rest[0] if rest else None, "regexp_matches")
    pattern = _constant(given, "regexp_matches")
    if "g" not in flags:
        found = _match(text, pattern, flags)
        one = exp.Array(expressions=[found])
        return exp.case().when(exp.Not(this=exp.Is(this=exp.paren(found.copy()), expression=exp.null())), one)
    literal = exp.Literal.string(translate_pattern(pattern, flags))
    lists = [call("regexp_extract_all", text, literal, number(n), *_options(flags)) for n in _places(pattern)]
    return call(PREFIX + "turned", exp.Array(expressions=lists))


def _regexp_parts(node: exp.Func) -> exp.Expr:
    text, given, *rest = node.expressions
    flags = read_flags(rest[0] if rest else None, "regexp_split_to_table")
    return call("regexp_split_to_array", text, _translated(given, flags), *_options(flags))


def _translated(pattern: exp.Expr, flags: str = "") -> exp.Expr:
    text = text_value(pattern)
    return pattern.copy() if text is None else exp.Literal.string(translate_pattern(text, flags))


def _regexp_substr(node: exp.Func) -> exp.Expr:
    start, group = node.args.get("position"), whole_value(node.args.get("group")) or 0
    flags = read_flags(node.args.get("parameters"), "regexp_substr")
    text = call("substring", node.this, start) if start is not None else node.this
    literal = _translated(node.expression, flags)
    every = call("regexp_extract_all", text, literal, number(group), *_options(flags))
    return call("list_extract", every, node.args.get("occurrence") or number(1))


def _regexp_instr(node: exp.Func) -> exp.Expr:
    if whole_value(node.args.get("group")):
        raise errors.FeatureNotSupported(feature="regexp_instr of a group", instead="Use regexp_substr.")
    return _with_pattern(node)


def _regexp_replace(node: exp.Func) -> exp.Expr:
    """The first match, or all: with `g`, or as the match of number 0."""
    flags = read_flags(node.args.get("modifiers"), "regexp_replace")
    occurrence = node.args.get("occurrence")
    if whole_value(occurrence) == 0:
        flags += "g"
    elif occurrence is not None and whole_value(occurrence) != 1:
        raise errors.FeatureNotSupported(feature="regexp_replace of one match behind the first", instead="")
    start = node.args.get("position")
    replacement = text_value(node.args.get("replacement"))
    if replacement is not None:
        node.set("replacement", exp.Literal.string(replacement.replace("\\&", "\\0")))
    node.set("expression", _translated(node.expression, flags))
    for key in ("position", "occurrence"):
        node.set(key, None)
    plain = "".join(dict.fromkeys(_FLAGS[flag] for flag in flags))
    node.set("modifiers", exp.Literal.string(plain) if plain else None)
    if start is None or whole_value(start) == 1:
        return node
    before = exp.Left(this=node.this.copy(), expression=exp.Sub(this=exp.paren(start.copy()), expression=number(1)))
    rest = node.copy()
    rest.set("this", call("substring", node.this, start))
    return exp.DPipe(this=before, expression=rest)


def _with_pattern(node: exp.Func) -> exp.Expr:
    flags = text_value(node.args.get("flag") or node.args.get("parameters")) or ""
    node.set("expression", _translated(node.expression, flags))
    return node


REWRITES: Final[dict[str, Rewrite]] = {
    "regexp_count": _with_pattern,
    "regexp_i_like": _with_pattern,
    "regexp_instr": _regexp_instr,
    "regexp_like": _with_pattern,
    "regexp_match": _regexp_match,
    "regexp_replace": _regexp_replace,
    "regexp_split": _with_pattern,
    "regexp_split_to_array": _regexp_parts,
    "regexp_substr": _regexp_substr,
    PREFIX + "regexp_all": _regexp_all,
    PREFIX + "regexp_parts": _regexp_parts,
}
