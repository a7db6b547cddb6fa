"""Expression defaults, as DML evaluates them: in Python if the default is a single function, otherwise by DuckDB.

The text in a descriptor is DuckDB's, generated from a checked tree: time functions and sequences are separate tokens,
which are replaced by the transaction's values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import Token, TokenType

from seachange.model.ids import DescriptorId
from seachange.model.schema.defaults import is_constant
from seachange.model.schema.descriptor import Column
from seachange.sql.bind.names import NOW
from seachange.sql.translate.time_functions import CLOCK, MOMENTS, STATEMENT, TRANSACTION

_DUCKDB = DuckDB()
_DRAW = "nextval"


class DefaultFunction(StrEnum):
    """A function that is a whole default and needs no engine."""

    NOW = "current_timestamp"
    TODAY = "current_date"
    UUID = "uuid"
    RANDOM = "random"
    SEQUENCE = _DRAW


_SAME = {NOW: DefaultFunction.NOW.value}
# Expressions that are such a function, with the type that DuckDB gives it.
_CALLS: dict[type[exp.Expr], tuple[DefaultFunction, str]] = {
    exp.CurrentTimestamp: (DefaultFunction.NOW, "TIMESTAMP WITH TIME ZONE"),
    exp.CurrentDate: (DefaultFunction.TODAY, "DATE"),
    exp.Uuid: (DefaultFunction.UUID, "UUID"),
}


@dataclass(frozen=True, slots=True)
class DrawnDefault:
    """`source` None: `text` is DuckDB's, over the parameters for time functions and a column `s0`, `s1`, ... for each
    value drawn from `sequences`."""

    source: DefaultFunction | None
    text: str
    sequences: tuple[DescriptorId, ...] = ()


def is_drawn(column: Column) -> bool:
    """Whether the default is an expression, or the column an identity, so that each row computes its value."""
    return column.identity is not None or (column.default is not None and not is_constant(column.default))


def as_default(column: Column, node: exp.Expr) -> tuple[Column, str] | None:
    """The column as if the expression were its default, and the expression's type; None if it needs an engine."""
    if type(node) not in _CALLS or any(node.args.values()):
        return None
    function, duck_type = _CALLS[type(node)]
    return replace(column, default=function.value, default_sequences=(), identity=None), duck_type


def drawn_text(column: Column) -> str:
    if column.identity is not None:
        return f"{_DRAW}({column.identity.sequence_id})"
    return column.default or ""


@lru_cache(maxsize=4096)
def read_drawn(text: str) -> DrawnDefault:
    tokens = _DUCKDB.tokenize(text)
    pieces: list[str] = []
    sequences: list[DescriptorId] = []
    end = at = 0
    while at < len(tokens):
        token = tokens[at]
        width, replacement = _replace(tokens, at, sequences)
        if replacement is not None:
            pieces += [text[end : token.start], replacement]
            end = tokens[at + width - 1].end + 1
        at += width
    pieces.append(text[end:])
    return DrawnDefault(_only_source(tokens), "".join(pieces), tuple(sequences))


def resolve_default(column: Column, now_us: int, draw: Callable[[DescriptorId], str]) -> str:
    """A default as DuckDB text without parameters and sequences; `draw` returns the text for a sequence's value."""
    drawn = read_drawn(drawn_text(column))
    resolved = drawn.text
    for parameter in (TRANSACTION, STATEMENT, CLOCK):
        resolved = resolved.replace(f"${parameter})", f"{now_us})")
    for number, sequence_id in enumerate(drawn.sequences):
        resolved = resolved.replace(f'"s{number}"', f"({draw(sequence_id)})")
    return resolved


def _replace(tokens: list[Token], at: int, sequences: list[DescriptorId]) -> tuple[int, str | None]:
    """The number of tokens from here on that form one unit, and their replacement, if any."""
    name = _word(tokens[at])
    called = at + 1 < len(tokens) and tokens[at + 1].token_type is TokenType.L_PAREN
    if name == _DRAW and called:
        sequences.append(DescriptorId(int(tokens[at + 2].text)))
        return 4, f'"s{len(sequences) - 1}"'
    if name in MOMENTS:
        empty = called and tokens[at + 2].token_type is TokenType.R_PAREN
        return 3 if empty else 1, MOMENTS[name]
    return 1, None


def replace_words(text: str, tell: Callable[[str], str | None]) -> str:
    """The text with words, and calls without arguments, replaced where `tell` returns a replacement."""
    tokens = _DUCKDB.tokenize(text)
    pieces: list[str] = []
    end = 0
    for at, token in enumerate(tokens):
        replacement = tell(_word(token))
        if replacement is not None:
            pieces += [text[end : token.start], replacement]
            following = [other.token_type for other in tokens[at + 1 : at + 3]]
            is_call = following == [TokenType.L_PAREN, TokenType.R_PAREN]
            end = tokens[at + 2 if is_call else at].end + 1
    return "".join([*pieces, text[end:]])


def _word(token: Token) -> str:
    return "" if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) else token.text.lower()


def _only_source(tokens: list[Token]) -> DefaultFunction | None:
    """`(NEXTVAL(7))`, `(UUID())`, `(CURRENT_TIMESTAMP)`, `(NOW())`."""
    words = [_word(token) for token in tokens if token.token_type not in (TokenType.L_PAREN, TokenType.R_PAREN)]
    plain = [source for source in DefaultFunction if [_SAME.get(word, word) for word in words[:1]] == [source.value]]
    takes = 2 if plain == [DefaultFunction.SEQUENCE] else 1
    return plain[0] if plain and len(words) == takes else None
