"""Syntax rewrites: forms of PostgreSQL's grammar that sqlglot does not parse become equivalent tokens that it does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from seachange import errors
from seachange.sql.text.keywords import KEYWORDS, RESERVED
from seachange.sql.text.tokens import DIALECT

_TYPE_TOKENS: Final = frozenset(DIALECT.parser_class.TYPE_TOKENS)
# The prefix of the column name that replaces `IS NFD NORMALIZED` and similar forms; no other column name contains a
# space.
NORMALIZED: Final = "normalized "
_NORMAL_FORMS: Final = frozenset({"nfc", "nfd", "nfkc", "nfkd"})
_SIDES: Final = {"both": "btrim", "leading": "ltrim", "trailing": "rtrim"}
_OPEN, _CLOSE = Token(TokenType.L_PAREN, "("), Token(TokenType.R_PAREN, ")")
_ARRAY_NAME: Final = re.compile(
    r"\b_(?:int[248]|text|varchar|bpchar|bool|float[48]|numeric|date|time|timestamptz?|interval|uuid|jsonb?|bytea)\b",
    re.IGNORECASE,
)
# Tokens that continue a value.
_JOINTS: Final = frozenset(
    {
        *(TokenType.DOT, TokenType.DCOLON, TokenType.L_PAREN, TokenType.DASH, TokenType.PLUS),
        *(TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.CARET),
    }
)
_FROM, _FOR = Token(TokenType.FROM, "from"), Token(TokenType.FOR, "for")


def _words(tokens: list[Token]) -> list[str]:
    """Words in lower case; quoted ones are left out."""
    quoted = (TokenType.STRING, TokenType.IDENTIFIER)
    return ["" if token.token_type in quoted else token.text.lower() for token in tokens]


def read_normal_forms(tokens: list[Token]) -> list[Token]:
    """`IS [NOT] [NFC] NORMALIZED`: the two words become one name."""
    words, found, at = _words(tokens), [], 0
    while at < len(tokens):
        follows = at > 0 and words[at - 1] in ("is", "not")
        if follows and words[at] == "normalized":
            found.append(Token(TokenType.IDENTIFIER, f"{NORMALIZED}nfc"))
        elif follows and words[at] in _NORMAL_FORMS and words[at + 1 : at + 2] == ["normalized"]:
            found.append(Token(TokenType.IDENTIFIER, NORMALIZED + words[at]))
            at += 1
        else:
            found.append(tokens[at])
        at += 1
    return found


def read_similar_parts(tokens: list[Token]) -> list[Token]:
    """substring(a SIMILAR b ESCAPE c) becomes substring(a FROM b FOR c)."""
    words, found = _words(tokens), list(tokens)
    # By depth, whether the rewrite applies: inside a call of substring.
    inside: list[bool] = [False]
    for at, word in enumerate(words):
        if word == "(":
            inside.append(at > 0 and words[at - 1] == "substring")
        elif word == ")" and len(inside) > 1:
            inside.pop()
        elif inside[-1] and word in ("similar", "escape"):
            found[at] = _FROM if word == "similar" else _FOR
    return found


def read_trimmed_sides(tokens: list[Token]) -> list[Token]:
    """trim(BOTH FROM a, b) becomes btrim(a, b)."""
    words, found, at = _words(tokens), [], 0
    while at < len(tokens):
        here = words[at : at + 4]
        if len(here) == 4 and here[:2] == ["trim", "("] and here[2] in _SIDES and here[3] == "from":
            found += [Token(TokenType.VAR, _SIDES[here[2]]), tokens[at + 1]]
            at += 4
        else:
            found.append(tokens[at])
            at += 1
    return found


def read_absolutes(tokens: list[Token]) -> list[Token]:
    """@ x becomes abs(x); to sqlglot it is the name of a parameter."""
    for at in reversed(range(len(tokens))):
        if (tokens[at].token_type, tokens[at].text) == (TokenType.PARAMETER, "@"):
            end = _end_of_operand(tokens, at + 1)
            inside = [_OPEN, *tokens[at + 1 : end], _CLOSE]
            tokens = [*tokens[:at], Token(TokenType.VAR, "abs"), *inside, *tokens[end:]]
    return tokens


def _end_of_operand(tokens: list[Token], start: int) -> int:
    """The end of an operand: values (constants, names, calls, parentheses, with casts) joined by arithmetic, which
    binds more tightly than other operators."""
    at, depth = start, 0
    while at < len(tokens) and tokens[at].token_type in (TokenType.DASH, TokenType.PLUS):
        at += 1
    while at < len(tokens):
        kind = tokens[at].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        at += 1
        goes_on = at < len(tokens) and (tokens[at].token_type in _JOINTS or tokens[at - 1].token_type in _JOINTS)
        if depth == 0 and not goes_on:
            break
    return at


# What does not match some pattern does not match all: the parser moves the negation outside.
_OPPOSITES: Final = {"any": "all", "some": "all", "all": "any"}


def read_negated_patterns(tokens: list[Token]) -> list[Token]:
    """`a !~ ALL (b)` is NOT (a ~ ANY (b))."""
    words, found = _words(tokens), list(tokens)
    for at, word in enumerate(words[2:-1], 2):
        if word in _OPPOSITES and words[at - 1] in ("~", "~*") and words[at - 2] in ("!", "not"):
            kind = TokenType.ALL if word != "all" else TokenType.ANY
            found[at] = Token(kind, _OPPOSITES[word], start=tokens[at].start, end=tokens[at].end)
    return found


def read_labels(tokens: list[Token]) -> list[Token]:
    """After AS a column may have any name, even `select` and `from`. (Types and queries are not reserved words.)"""
    words, found = _words(tokens), list(tokens)
    for at, word in enumerate(words[1:], 1):
        materialized = words[at + 1 : at + 2] == ["materialized"]
        if words[at - 1] == "as" and word in RESERVED and not materialized:
            found[at] = Token(TokenType.IDENTIFIER, word)
    return found


def read_steps(tokens: list[Token]) -> list[Token]:
    """generate_series(a, b, '1 month 1 day'): the step becomes an interval, of which sqlglot reads only one unit."""
    words, found = _words(tokens), []
    # By depth, the number of arguments before this one inside a call of generate_series; None inside of anything else.
    inside: list[int | None] = [None]
    for at, token in enumerate(tokens):
        found.append(token)
        match words[at]:
            case "(":
                inside.append(0 if at > 0 and words[at - 1] == "generate_series" else None)
            case ")" if len(inside) > 1:
                inside.pop()
            case "," if inside[-1] is not None:
                inside[-1] += 1
        is_step = inside[-1] == 2 and words[at - 1] == "," and token.token_type is TokenType.STRING
        if is_step and words[at + 1 : at + 2] == [")"] and token.text.strip(" +-.0123456789"):
            found += [Token(TokenType.DCOLON, "::"), Token(TokenType.INTERVAL, "interval")]
    return found


def read_array_names(tokens: list[Token]) -> list[Token]:
    """x::_int4 becomes x::int4[]."""
    found: list[Token] = []
    for token in tokens:
        is_type = bool(found) and (found[-1].token_type is TokenType.DCOLON or found[-1].text.lower() == "as")
        if is_type and _ARRAY_NAME.fullmatch(token.text) and token.token_type is TokenType.VAR:
            (plain,) = DIALECT.tokenize(token.text[1:])
            found += [plain, Token(TokenType.L_BRACKET, "["), Token(TokenType.R_BRACKET, "]")]
        else:
            found.append(token)
    return found


def read_array_sizes(tokens: list[Token]) -> list[Token]:
    """x::int[2] and x::int ARRAY[2] become x::int[]: the size has no meaning, and is no subscript."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        start = at
        if found and tokens[at - 1 : at] and _is_type(tokens, at - 1):
            at += tokens[at].token_type is TokenType.ARRAY
            sized = [token.token_type for token in tokens[at : at + 3]]
            at += 3 if sized == [TokenType.L_BRACKET, TokenType.NUMBER, TokenType.R_BRACKET] else 0
        if at > start:
            found += [Token(TokenType.L_BRACKET, "["), Token(TokenType.R_BRACKET, "]")]
        else:
            found.append(tokens[at])
            at += 1
    return found


def _is_type(tokens: list[Token], at: int) -> bool:
    """Whether the token is the last one of the type of a cast, which may have modifiers."""
    if tokens[at].token_type is TokenType.R_PAREN:
        while at > 0 and tokens[at].token_type is not TokenType.L_PAREN:
            at -= 1
        at -= 1
    return at > 1 and (tokens[at - 1].token_type is TokenType.DCOLON or tokens[at - 1].text.lower() == "as")


def read_type_names(tokens: list[Token]) -> list[Token]:
    """After :: or AS, a word that is reserved nowhere is a name, though the parser has a use for it elsewhere."""
    words, found = _words(tokens), list(tokens)
    for at, word in enumerate(words[1:], 1):
        if words[at - 1] in ("::", "as") and word in _TYPE_NAMES and words[at - 2 : at - 1] != ["with"]:
            found[at] = Token(TokenType.VAR, tokens[at].text, start=tokens[at].start, end=tokens[at].end)
    return found


def refuse_current_rows(tokens: list[Token]) -> list[Token]:
    words = _words(tokens)
    if any(three == ("where", "current", "of") for three in zip(words, words[1:], words[2:], strict=False)):
        raise errors.FeatureNotSupported(feature="WHERE CURRENT OF", instead="Name the row by its key.")
    return tokens


# Unreserved keywords with a meaning to the parser that is no type.
_TYPE_NAMES: Final = frozenset(
    word
    for word in KEYWORDS["U", True].split()
    if DIALECT.tokenizer_class.KEYWORDS.get(word.upper(), TokenType.VAR) not in (*_TYPE_TOKENS, TokenType.VAR)
    and word not in ("materialized", "not")
)

# By a pattern that a text must contain for the rewrite to apply.
REWRITES: Final[tuple[tuple[re.Pattern[str], Callable[[list[Token]], list[Token]]], ...]] = (
    (re.compile(r"\bnormalized\b", re.IGNORECASE), read_normal_forms),
    (re.compile(r"\bsubstring\b.*\bsimilar\b", re.IGNORECASE | re.DOTALL), read_similar_parts),
    (re.compile(r"\btrim\s*\(\s*(?:both|leading|trailing)\s+from\b", re.IGNORECASE), read_trimmed_sides),
    (re.compile(r"!~\*?\s*(?:all|any|some)\b", re.IGNORECASE), read_negated_patterns),
    (re.compile(r"@"), read_absolutes),
    (_ARRAY_NAME, read_array_names),
    (re.compile(r"\w\s*\)?\s*(?:\[\s*[0-9]|\barray\b)", re.IGNORECASE), read_array_sizes),
    (re.compile(rf"(?:::\s*|\bas\s+)(?:{'|'.join(sorted(_TYPE_NAMES))})\b", re.IGNORECASE), read_type_names),
    (re.compile(r"\bwhere\s+current\s+of\b", re.IGNORECASE), refuse_current_rows),
    (re.compile(r"\bgenerate_series\s*\([^;]*'", re.IGNORECASE), read_steps),
    (re.compile(rf"\bas\s+(?:{'|'.join(sorted(RESERVED))})\b", re.IGNORECASE), read_labels),
)


def rewrite_syntax(text: str, tokens: list[Token]) -> list[Token]:
    for pattern, read in REWRITES:
        if pattern.search(text):
            tokens = read(tokens)
    return tokens
