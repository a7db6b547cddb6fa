"""Statements as words: sqlglot's tokens split at semicolons, and a reader over them for our own parsers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import ClassVar, Final

from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from seachange import errors
from seachange.runtime.interruption import each
from seachange.sql.text.keywords import KEYWORDS
from seachange.sql.text.placeholders import isolate_parameters

# The parser cannot be interrupted, and a longer statement would take seconds. A constant is one word, however long.
STATEMENT_WORDS_MAX = 500_000
SCRIPT_WORDS_MAX = 2_000_000
# Without going back (++, *+): an open quote would take exponential time.
_LEXEME = re.compile(
    r"""(?<![\w$])[eE]'(?:[^'\\]++|\\.|'')*+' | '(?:[^']++|'')*+' | "(?:[^"]++|"")*+" | --[^\n]* | /\*.*?\*/
      | \$(\w*)\$.*?\$\1\$ | \w+ | [^\s\w]""",
    re.VERBOSE | re.DOTALL,
)


# What sqlglot needs to know of words that are no keywords: types, unnest, and the parts of its longer keywords.
_NAMED: Final = """
    bigserial bool bpchar bytea cstring date datemultirange daterange float4 float8 hstore inet int2 int4
    int4multirange int4range int8 int8multirange int8range jsonb money nummultirange numrange oid point regclass
    regcollation regconfig regdictionary regnamespace regoper regoperator regproc regprocedure regrole regtype serial
    smallserial timestamptz timetz tsmultirange tsrange tstzmultirange tstzrange unnest uuid
"""
_POSTGRES_WORDS: Final = frozenset(_NAMED.split()).union(*(words.split() for words in KEYWORDS.values()))
# Longer names are cut.
_NAME_BYTES_MAX: Final = 63
_NAMES: Final = frozenset({TokenType.VAR, TokenType.IDENTIFIER})


def _is_known(keyword: str) -> bool:
    """Whether PostgreSQL has it: `glob`, `qualify` and others are names there."""
    return not keyword[0].isalpha() or _POSTGRES_WORDS.issuperset(keyword.lower().split())


class _Dialect(Postgres):
    # 1_000 is a number, and not 1 under the name _000.
    NUMBERS_CAN_BE_UNDERSCORE_SEPARATED = True

    class Tokenizer(Postgres.Tokenizer):
        # sqlglot keeps the rest of SHOW, RESET and other commands as one string; we parse it ourselves.
        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: kind for word, kind in Postgres.Tokenizer.KEYWORDS.items() if _is_known(word)
        }


DIALECT = _Dialect()

_STRINGS = frozenset(
    {
        TokenType.STRING,
        TokenType.HEREDOC_STRING,
        TokenType.BYTE_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.RAW_STRING,
        TokenType.UNICODE_STRING,
    }
)


class TokenKind(Enum):
    WORD = auto()
    NAME = auto()
    STRING = auto()
    NUMBER = auto()
    SYMBOL = auto()


@dataclass(frozen=True, slots=True)
class Word:
    """A lexeme: an unquoted word (in lower case), a quoted name, a string, a number or a symbol, with its position in
    the statement's text."""

    kind: TokenKind
    text: str
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class RawStatement:
    """One statement of a script: its text, its tokens for sqlglot, its words for our parsers."""

    text: str
    tokens: tuple[Token, ...]
    words: tuple[Word, ...]


def split_script(script: str) -> tuple[RawStatement, ...]:
    if len(script) > STATEMENT_WORDS_MAX:
        _check_length(script)
    text = isolate_parameters(script)
    tokens = _tokenize(text)
    statements: list[RawStatement] = []
    current: list[Token] = []
    for token in each([*tokens, None]):
        if token is not None and (token.token_type is not TokenType.SEMICOLON or _explains_block(current)):
            current.append(token)
        elif current:
            statements.append(_raw(text, tuple(current)))
            current = []
    return tuple(statements)


def _check_length(script: str) -> None:
    """Checked before tokenizing, which cannot be interrupted."""
    first = 0
    for count, lexeme in enumerate(each(_LEXEME.finditer(script))):
        if script[lexeme.start()] == ";":
            first = count
        if count - first > STATEMENT_WORDS_MAX:
            raise errors.StatementTooLong(text="statement", count_max=STATEMENT_WORDS_MAX)
        if count > SCRIPT_WORDS_MAX:
            raise errors.StatementTooLong(text="text", count_max=SCRIPT_WORDS_MAX)


def _explains_block(tokens: list[Token]) -> bool:
    """Whether this is EXPLAIN (DDL ...) BEGIN; ... before its COMMIT: a transaction is explained as a whole."""
    words = [token.text.lower() for token in tokens]
    if words[:3] != ["explain", "(", "ddl"] or ")" not in words:
        return False
    return words[words.index(")") + 1 :][:1] == ["begin"] and words[-1] not in ("commit", "end")


def is_complete(script: str) -> bool:
    """Whether the last statement of the text ends with a semicolon; raises SyntaxProblem inside a quote or comment."""
    tokens = _tokenize(isolate_parameters(script))
    return bool(tokens) and tokens[-1].token_type is TokenType.SEMICOLON


def _tokenize(text: str) -> list[Token]:
    try:
        tokens = DIALECT.tokenize(text)
    except TokenError as error:
        raise _unterminated(text) or errors.SyntaxProblem(detail=str(error).splitlines()[0]) from None
    return [_cut_name(token) if len(token.text) * 4 > _NAME_BYTES_MAX else token for token in tokens]


# What a text opens and does not close, by the symbols that it leaves behind.
_OPENED = (
    (re.compile(r"'|(?<![\w$])[eE]'"), "quoted string"),
    (re.compile('"'), "quoted identifier"),
    (re.compile(r"/\*"), "/* comment"),
    (re.compile(r"\$\w*\$"), "dollar-quoted string"),
)


def _unterminated(text: str) -> errors.SyntaxProblem | None:
    """
    >>> problem = _unterminated("select 'it''s', 'b")
    >>> print(problem, problem.position)
    syntax error: unterminated quoted string at or near "'b" 17
    """
    for lexeme in _LEXEME.finditer(text):
        start = lexeme.start()
        opened = next((kind for symbol, kind in _OPENED if symbol.match(text, start)), None)
        # A quoted text that is complete is one lexeme.
        if opened is not None and lexeme.end() - start == 1:
            near = text[start:].splitlines()[0]
            problem = errors.SyntaxProblem(detail=f'unterminated {opened} at or near "{near}"')
            problem.position, problem.statement = start + 1, text
            return problem
    return None


def _cut_name(token: Token) -> Token:
    written = token.text.encode()
    if token.token_type not in _NAMES or len(written) <= _NAME_BYTES_MAX:
        return token
    cut = written[:_NAME_BYTES_MAX].decode(errors="ignore")
    return Token(token.token_type, cut, start=token.start, end=token.end)


def _raw(text: str, tokens: tuple[Token, ...]) -> RawStatement:
    first = tokens[0].start
    words = tuple(word for token in tokens for word in _words(token, token.start - first, token.end + 1 - first))
    return RawStatement(text[first : tokens[-1].end + 1], tokens, words)


def _words(token: Token, start: int, end: int) -> Iterator[Word]:
    if token.token_type is TokenType.IDENTIFIER:
        yield Word(TokenKind.NAME, token.text, start, end)
    elif token.token_type in _STRINGS:
        yield Word(TokenKind.STRING, token.text, start, end)
    elif token.token_type is TokenType.NUMBER:
        yield Word(TokenKind.NUMBER, token.text, start, end)
    elif token.text[:1].isalpha() or token.text[:1] == "_":
        # sqlglot joins some keywords ("PRIMARY KEY", "DOUBLE PRECISION") into one token.
        for part in token.text.lower().split():
            yield Word(TokenKind.WORD, part, start, end)
    else:
        yield Word(TokenKind.SYMBOL, token.text, start, end)


# Brackets in which a phrase does not end.
_NESTING: dict[tuple[TokenKind, str], int] = {
    **{(TokenKind.SYMBOL, opening): 1 for opening in "([{"},
    **{(TokenKind.SYMBOL, closing): -1 for closing in ")]}"},
    (TokenKind.WORD, "case"): 1,
    (TokenKind.WORD, "end"): -1,
}
# Longer digit strings are not numbers of any integer type.
_DIGITS = re.compile("[0-9]{1,40}")


def _closes(word: Word) -> bool:
    return word.kind is TokenKind.SYMBOL and word.text in (",", ")", ";")


class Reader:
    """Reads the words of a statement in order. `take...` advances only if it succeeds; `expect...` fails with 42601."""

    def __init__(self, words: tuple[Word, ...], text: str) -> None:
        self._words = words
        self._position = 0
        self.text = text

    @property
    def at_end(self) -> bool:
        return self._position >= len(self._words)

    def peek(self, ahead: int = 0) -> Word | None:
        position = self._position + ahead
        return self._words[position] if position < len(self._words) else None

    def plain(self, ahead: int = 0) -> str:
        """The unquoted word or symbol at this position; empty if it is anything else."""
        word = self.peek(ahead)
        return word.text if word is not None and word.kind in (TokenKind.WORD, TokenKind.SYMBOL) else ""

    def next(self) -> Word:
        word = self.peek()
        if word is None:
            raise self.problem()
        self._position += 1
        return word

    def at(self, *words: str) -> bool:
        position = self._position
        for word in words:
            if position >= len(self._words):
                return False
            found = self._words[position]
            if found.text != word or found.kind is not TokenKind.WORD:
                return False
            position += 1
        return True

    def ends_with(self, *words: str) -> bool:
        return self._words[-len(words) :] == tuple(Word(TokenKind.WORD, word) for word in words)

    def take(self, *words: str) -> bool:
        if not self.at(*words):
            return False
        self._position += len(words)
        return True

    def take_any(self, *words: str) -> str | None:
        word = self.peek()
        if word is None or word.kind is not TokenKind.WORD or word.text not in words:
            return None
        self._position += 1
        return word.text

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            raise self.problem()

    def take_symbol(self, symbol: str) -> bool:
        if not self.at_symbol(symbol):
            return False
        self._position += 1
        return True

    def at_symbol(self, symbol: str) -> bool:
        word = self.peek()
        return word is not None and word.kind is TokenKind.SYMBOL and word.text == symbol

    def parenthesized(self) -> str:
        """The text from an opening parenthesis to its closing one, for another parser."""
        first = self.peek()
        self.expect_symbol("(")
        depth = 1
        while depth:
            word = self.next()
            if word.kind is TokenKind.SYMBOL:
                depth += {"(": 1, ")": -1}.get(word.text, 0)
        assert first is not None
        return self.text[first.start : word.end]

    def expect_symbol(self, symbol: str) -> None:
        if not self.take_symbol(symbol):
            raise self.problem()

    def phrase(self, stops: frozenset[str] = frozenset()) -> Reader:
        """The words up to a comma, a closing parenthesis or one of `stops`, outside of brackets and CASE, as a reader
        of their own. It includes at least one word."""
        start, depth = self._position, 0
        while (word := self.peek()) is not None:
            first = self._position == start
            if depth == 0 and (_closes(word) or (not first and word.kind is TokenKind.WORD and word.text in stops)):
                break
            depth += _NESTING.get((word.kind, word.text), 0)
            self._position += 1
        if self._position == start:
            raise self.problem()
        return Reader(self._words[start : self._position], self.text)

    @property
    def source(self) -> str:
        """The text of all words of this reader."""
        return self.text[self._words[0].start : self._words[-1].end]

    def name(self) -> str:
        word = self.peek()
        if word is None or word.kind not in (TokenKind.NAME, TokenKind.WORD):
            raise self.problem()
        if not word.text:
            raise errors.SyntaxProblem(detail="zero-length delimited identifier")
        self._position += 1
        return word.text

    def string(self) -> str:
        word = self.peek()
        if word is None or word.kind is not TokenKind.STRING:
            raise self.problem()
        self._position += 1
        return word.text

    def integer(self) -> int:
        word = self.peek()
        if word is None or word.kind is not TokenKind.NUMBER or _DIGITS.fullmatch(word.text) is None:
            raise self.problem()
        self._position += 1
        return int(word.text)

    def names(self) -> tuple[str, ...]:
        """A list of names in parentheses."""
        self.expect_symbol("(")
        found = [self.name()]
        while self.take_symbol(","):
            found.append(self.name())
        self.expect_symbol(")")
        return tuple(found)

    def rest(self) -> str:
        """The text from here on."""
        word = self.peek()
        if word is None:
            raise self.problem()
        self._position = len(self._words)
        return self.text[word.start :]

    def expect_end(self) -> None:
        if not self.at_end:
            raise self.problem()

    def problem(self) -> errors.SyntaxProblem:
        word = self.peek()
        if word is None:
            return errors.SyntaxProblem(detail="at end of input")
        problem = errors.SyntaxProblem(detail=f'at or near "{word.text}"')
        return problem.at(errors.ErrorPlace(word.start, part=self.text))
