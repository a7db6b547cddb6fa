"""Syntax rewrites: forms of PostgreSQL's grammar that sqlglot does not parse become equivalent tokens that it does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from seachange.sql.text.keywords import RESERVED

# The prefix of the column name that replaces `IS NFD NORMALIZED` and similar forms; no other column name contains a
# space.
NORMALIZED: Final = "normalized "
_NORMAL_FORMS: Final = frozenset({"nfc", "nfd", "nfkc", "nfkd"})
_SIDES: Final = {"both": "btrim", "leading": "ltrim", "trailing": "rtrim"}
_OPEN, _CLOSE = Token(TokenType.L_PAREN, "("), Token(TokenType.R_PAREN, ")")
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


def read_labels(tokens: list[Token]) -> list[Token]:
    """After AS a column may have any name, even `select` and `from`. (Types and queries are not reserved words.)"""
    words, found = _words(tokens), list(tokens)
    for at, word in enumerate(words[1:], 1):
        materialized = words[at + 1 : at + 2] == ["materialized"]
        if words[at - 1] == "as" and word in RESERVED and not materialized:
            found[at] = Token(TokenType.IDENTIFIER, word)
    return found


# By a pattern that a text must contain for the rewrite to apply.
REWRITES: Final[tuple[tuple[re.Pattern[str], Callable[[list[Token]], list[Token]]], ...]] = (
    (re.compile(r"\bnormalized\b", re.IGNORECASE), read_normal_forms),
    (re.compile(r"\bsubstring\b.*\bsimilar\b", re.IGNORECASE | re.DOTALL), read_similar_parts),
    (re.compile(r"\btrim\s*\(\s*(?:both|leading|trailing)\s+from\b", re.IGNORECASE), read_trimmed_sides),
    (re.compile(r"@"), read_absolutes),
    (re.compile(rf"\bas\s+(?:{'|'.join(sorted(RESERVED))})\b", re.IGNORECASE), read_labels),
)


def rewrite_syntax(text: str, tokens: list[Token]) -> list[Token]:
    for pattern, read in REWRITES:
        if pattern.search(text):
            tokens = read(tokens)
    return tokens
