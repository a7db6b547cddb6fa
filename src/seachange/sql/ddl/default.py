"""Column defaults: a constant where possible, otherwise an expression."""

from __future__ import annotations

from dataclasses import replace

from seachange.model.statements import ColumnType, ConstantDefault, Default, UserType
from seachange.sql.ddl.expression import DEFAULT, compile_expression
from seachange.sql.text.names import read_column_type
from seachange.sql.text.tokens import Reader, TokenKind
from seachange.values.types import KIND_BY_ALIAS, Kind, SqlType

_WORDS: dict[str, ConstantDefault] = {
    "null": ConstantDefault(None),
    "true": ConstantDefault("true"),
    "false": ConstantDefault("false"),
}
# Type names of one word, which may precede a literal.
_TIMES = frozenset({Kind.TIMESTAMPTZ, Kind.TIMESTAMP, Kind.DATE, Kind.TIME})
_TYPED = frozenset(alias for alias in KIND_BY_ALIAS if " " not in alias)


def read_default(reader: Reader, stops: frozenset[str] = frozenset(), target: ColumnType | None = None) -> Default:
    """`stops` are the keywords that may follow; `target` is the type of the column, where it is known."""
    phrase = reader.phrase(stops)
    text = phrase.source
    constant = _take_constant(phrase)
    if constant is not None and phrase.at_end:
        return constant
    return compile_expression(text, DEFAULT, target)


def _take_constant(reader: Reader) -> ConstantDefault | None:
    """A literal, perhaps signed, in parentheses or with a cast."""
    opened = 0
    while reader.take_symbol("("):
        opened += 1
    constant = _take_literal(reader)
    if constant is None:
        return None
    casts = _take_casts(reader)
    for _ in range(opened):
        if not reader.take_symbol(")"):
            return None
        casts += _take_casts(reader)
    times = [cast for cast in casts if isinstance(cast, SqlType) and cast.kind in _TIMES]
    if constant.read_as is not None:
        times.insert(0, constant.read_as)
    if len(times) > 1:
        # Several literals in a row: an expression.
        return None
    created = tuple(cast for cast in casts if isinstance(cast, UserType))
    return replace(constant, casts=created, read_as=times[0] if times else None)


def _take_casts(reader: Reader) -> list[ColumnType]:
    """The value is read as one of the column's type in any case, so a cast to a built-in type has no effect, except for
    time types, where the time zone matters. User-defined types are resolved later, with the catalog."""
    casts = []
    while reader.take_symbol("::"):
        casts.append(read_column_type(reader))
    return casts


def _take_literal(reader: Reader) -> ConstantDefault | None:
    sign = "-" if reader.take_symbol("-") else ""
    signed = bool(sign) or reader.take_symbol("+")
    word = reader.peek()
    if word is None:
        return None
    if word.kind is TokenKind.NUMBER:
        return ConstantDefault(sign + reader.next().text)
    if signed:
        return None
    if word.kind is TokenKind.STRING:
        return ConstantDefault(reader.next().text, quoted=True)
    if word.kind is not TokenKind.WORD:
        return None
    if word.text in _WORDS:
        return _WORDS[reader.next().text]
    following = reader.peek(1)
    if word.text in _TYPED and following is not None and following.kind is TokenKind.STRING:
        kind = KIND_BY_ALIAS[reader.next().text]
        return ConstantDefault(reader.next().text, quoted=True, read_as=SqlType(kind) if kind in _TIMES else None)
    return None
