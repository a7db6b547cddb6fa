"""Parsing of SQL/JSON paths to a tree.

An expression returns items, a predicate a truth value; using one in place of the other is a syntax error, as in
PostgreSQL.

>>> parse_path("strict $.a[last] ? (@ > 1)")
JsonPath(strict=True, root=Path(start=Symbol(name='$'), steps=(Key(name='a'), Subscripts(ranges=((Symbol(name='last'), \
None),)), Filter(condition=PathComparison(operator='>', left=Symbol(name='@'), right=PathConstant(value=\
Decimal('1')))))))
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

from seachange import errors


@dataclass(frozen=True, slots=True)
class PathConstant:
    value: bool | str | Decimal | None


@dataclass(frozen=True, slots=True)
class Symbol:
    """`$`, `@` or `last`."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    name: str


@dataclass(frozen=True, slots=True)
class Key:
    name: str


@dataclass(frozen=True, slots=True)
class EveryKey:
    pass


@dataclass(frozen=True, slots=True)
class EveryElement:
    pass


@dataclass(frozen=True, slots=True)
class Subscripts:
    """Each an index, or a range of two."""

    ranges: tuple[tuple[Expression, Expression | None], ...]


@dataclass(frozen=True, slots=True)
class Descent:
    """`.**`, between two depths; None for the deepest."""

    least: int | None
    most: int | None


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Predicate


@dataclass(frozen=True, slots=True)
class Method:
    name: str


Step = Key | EveryKey | EveryElement | Subscripts | Descent | Filter | Method


@dataclass(frozen=True, slots=True)
class Path:
    start: Node
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Sign:
    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class PathComparison:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class PathJunction:
    """`&&` or `||`."""

    operator: str
    left: Predicate
    right: Predicate


@dataclass(frozen=True, slots=True)
class PathNegation:
    operand: Predicate


@dataclass(frozen=True, slots=True)
class PathIsUnknown:
    operand: Predicate


@dataclass(frozen=True, slots=True)
class PathExists:
    operand: Expression


@dataclass(frozen=True, slots=True)
class PathStartsWith:
    operand: Expression
    beginning: Expression


@dataclass(frozen=True, slots=True)
class PathLikeRegex:
    operand: Expression
    pattern: str
    flags: str


Expression = PathConstant | Symbol | Variable | Path | Sign | Arithmetic
Predicate = PathComparison | PathJunction | PathNegation | PathIsUnknown | PathExists | PathStartsWith | PathLikeRegex
Node = Expression | Predicate
_PREDICATES: Final = (
    PathComparison,
    PathJunction,
    PathNegation,
    PathIsUnknown,
    PathExists,
    PathStartsWith,
    PathLikeRegex,
)


@dataclass(frozen=True, slots=True)
class JsonPath:
    strict: bool
    root: Node


_METHODS: Final = frozenset({"type", "size", "double", "ceiling", "floor", "abs", "keyvalue", "datetime"})
_CONSTANTS: Final[dict[str, bool | None]] = {"null": None, "true": True, "false": False}
_COMPARISONS: Final = frozenset({"==", "!=", "<>", "<", "<=", ">", ">="})
_TOKEN: Final = re.compile(
    r"""\s*(?:/\*.*?\*/\s*)*(?:
      (?P<number>(?:0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![A-Za-z_]))
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<variable>\$(?:[A-Za-z_][A-Za-z0-9_]*|"(?:[^"\\]|\\.)*"))
    | (?P<name>[^\W\d]\w*)
    | (?P<symbol>\*\*|==|!=|<>|<=|>=|&&|\|\||[-+*/%<>!?@$.,()\[\]{}])
    )""",
    re.VERBOSE | re.DOTALL,
)


@lru_cache(maxsize=1024)
def parse_path(text: str) -> JsonPath:
    if not text.strip():
        raise errors.InvalidTextRepresentation(type="jsonpath", value=text)
    reader = _Reader(text)
    strict = reader.take("strict")
    if not strict:
        reader.take("lax")
    root = reader.disjunction()
    if reader.kind:
        raise reader.problem()
    return JsonPath(strict, root)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self.kind: str = ""
        self.word = ""
        # The number of enclosing filters: outside of all, @ has no meaning.
        self._filters = 0
        self._advance()

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._end)
        if match is None:
            if self._text[self._end :].strip():
                raise errors.SyntaxProblem(
                    detail=f'at or near "{self._text[self._end :].strip()[0]}" of jsonpath input'
                )
            self.kind = self.word = ""
            return
        self._end = match.end()
        self.kind = match.lastgroup or ""
        self.word = match[self.kind]

    def problem(self) -> errors.Error:
        where = f'at or near "{self.word}"' if self.kind else "at end"
        return errors.SyntaxProblem(detail=f"{where} of jsonpath input")

    def take(self, word: str) -> bool:
        if self.word != word or self.kind not in ("name", "symbol"):
            return False
        self._advance()
        return True

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise self.problem()

    def _taken(self, words: frozenset[str]) -> str | None:
        found = self.word
        return found if found in words and self.take(found) else None

    def _wanted(self, node: Node) -> Predicate:
        if not isinstance(node, _PREDICATES):
            raise self.problem()
        return node

    def _item(self, node: Node) -> Expression:
        if isinstance(node, _PREDICATES):
            raise self.problem()
        return node

    # From the lowest precedence to the highest.

    def disjunction(self) -> Node:
        node = self._conjunction()
        while self.word == "||" and self.kind == "symbol":
            left = self._wanted(node)
            self._advance()
            node = PathJunction("||", left, self._wanted(self._conjunction()))
        return node

    def _conjunction(self) -> Node:
        node = self._comparison()
        while self.word == "&&" and self.kind == "symbol":
            left = self._wanted(node)
            self._advance()
            node = PathJunction("&&", left, self._wanted(self._comparison()))
        return node

    def _comparison(self) -> Node:
        if self.take("!"):
            return PathNegation(self._delimited())
        node = self._sum()
        if (operator := self._taken(_COMPARISONS)) is not None:
            return PathComparison("!=" if operator == "<>" else operator, self._item(node), self._item(self._sum()))
        if self.take("starts"):
            self.expect("with")
            return PathStartsWith(self._item(node), self._item(self._primary()))
        if self.take("like_regex"):
            pattern = self._string()
            return PathLikeRegex(self._item(node), pattern, self._string() if self.take("flag") else "")
        return node

    def _delimited(self) -> Predicate:
        if self.word not in ("(", "exists"):
            raise self.problem()
        return self._wanted(self._primary())

    def _sum(self) -> Node:
        node = self._product()
        while (operator := self._taken(frozenset("+-"))) is not None:
            node = Arithmetic(operator, self._item(node), self._item(self._product()))
        return node

    def _product(self) -> Node:
        node = self._signed()
        while (operator := self._taken(frozenset("*/%"))) is not None:
            node = Arithmetic(operator, self._item(node), self._item(self._signed()))
        return node

    def _signed(self) -> Node:
        operator = self._taken(frozenset("+-"))
        return self._accessed() if operator is None else Sign(operator, self._item(self._signed()))

    def _accessed(self) -> Node:
        start = self._primary()
        steps: list[Step] = []
        while (step := self._step()) is not None:
            steps.append(step)
        return Path(start, tuple(steps)) if steps else start

    def _primary(self) -> Node:
        kind, word = self.kind, self.word
        if kind in ("number", "string", "variable"):
            self._advance()
            if kind == "number":
                return PathConstant(Decimal(int(word, 16)) if word[:2] in ("0x", "0X") else Decimal(word))
            return PathConstant(self._unquoted(word)) if kind == "string" else Variable(self._unquoted(word[1:]))
        if kind == "symbol" and word in ("$", "@"):
            self._advance()
            if word == "@" and not self._filters:
                raise errors.SyntaxProblem(detail="@ is not allowed in root expressions of a jsonpath")
            return Symbol(word)
        if kind == "name" and word in _CONSTANTS:
            self._advance()
            return PathConstant(_CONSTANTS[word])
        if self.take("last"):
            return Symbol("last")
        if self.take("exists"):
            self.expect("(")
            node = PathExists(self._item(self.disjunction()))
            self.expect(")")
            return node
        return self._enclosed()

    def _enclosed(self) -> Node:
        self.expect("(")
        node = self.disjunction()
        self.expect(")")
        if isinstance(node, _PREDICATES) and self.take("is"):
            self.expect("unknown")
            return PathIsUnknown(node)
        return node

    def _step(self) -> Step | None:
        if self.take("."):
            return self._member()
        if self.take("["):
            return self._subscripts()
        if self.take("?"):
            self.expect("(")
            self._filters += 1
            condition = self._wanted(self.disjunction())
            self._filters -= 1
            self.expect(")")
            return Filter(condition)
        return None

    def _member(self) -> Step:
        if self.take("**"):
            return self._descent()
        if self.take("*"):
            return EveryKey()
        kind, word = self.kind, self.word
        if kind not in ("name", "string"):
            raise self.problem()
        self._advance()
        if kind == "name" and self.take("("):
            if word not in _METHODS:
                raise self.problem()
            self.expect(")")
            return Method(word)
        return Key(self._unquoted(word))

    def _descent(self) -> Descent:
        if not self.take("{"):
            return Descent(0, None)
        least = self._level()
        most = self._level() if self.take("to") else least
        self.expect("}")
        return Descent(least, most)

    def _level(self) -> int | None:
        if self.take("last"):
            return None
        if self.kind != "number" or not self.word.isdigit():
            raise self.problem()
        word = self.word
        self._advance()
        return int(word)

    def _subscripts(self) -> Step:
        if self.take("*"):
            self.expect("]")
            return EveryElement()
        ranges = [self._range()]
        while self.take(","):
            ranges.append(self._range())
        self.expect("]")
        return Subscripts(tuple(ranges))

    def _range(self) -> tuple[Expression, Expression | None]:
        first = self._item(self._sum())
        return first, self._item(self._sum()) if self.take("to") else None

    def _string(self) -> str:
        if self.kind != "string":
            raise self.problem()
        word = self.word
        self._advance()
        return self._unquoted(word)

    def _unquoted(self, word: str) -> str:
        if not word.startswith('"'):
            return word
        try:
            return str(json.loads(word))
        except ValueError:
            # Escapes that JSON does not have denote the character itself.
            return re.sub(r"\\(.)", r"\1", word[1:-1])
