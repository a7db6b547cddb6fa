"""Queries and DML as sqlglot's trees."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Final

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from seachange import errors
from seachange.runtime.interruption import check_interrupt
from seachange.sql.text.syntax_rewrites import NORMALIZED, rewrite_syntax
from seachange.sql.text.tokens import DIALECT, RawStatement
from seachange.values.interval import parse_fields
from seachange.values.types import NUMERIC_PRECISION_MAX

# The exceptions that sqlglot raises for a missing operand or argument, when it parses and when it generates text.
INCOMPLETE = (AssertionError, AttributeError, LookupError, TypeError, ValueError)


_UUID = "uuid_generate_v4"
_CIDR = "cidr"

# Key of `meta` of an INSERT with OVERRIDING SYSTEM VALUE or USER VALUE: which of them.
OVERRIDING = "overriding"


# The parser reads these twice, as a type and as a value: each level of nesting doubles its time.
_READ_TWICE = frozenset({TokenType.STRUCT, TokenType.MAP})
_NESTED_MAX = 12


def fold_names(tree: exp.Expr) -> exp.Expr:
    """Names without quotes in small letters."""
    for node in tree.find_all(exp.Identifier):
        if not node.quoted:
            node.set("this", node.name.lower())
    return tree


def parse_tree(raw: RawStatement) -> exp.Expr:
    check_interrupt()
    tokens, overriding = _cut_overriding(_plain_tokens(raw))
    _check_nesting(tokens)
    _check_commas(raw)
    check_interrupt()
    tree = _parse(raw, tokens)
    check_interrupt()
    _check_modifiers(tree)
    _plain_types(tree)
    _note_spellings(tree, raw.text)
    if _CIDR in raw.text.lower():
        _name_networks(tree)
    tree = _take_out_of_documents(_built_in(tree))
    if overriding is not None:
        inserts = list(tree.find_all(exp.Insert))
        if not inserts:
            raise errors.SyntaxProblem(detail='at or near "overriding"')
        if len(inserts) > 1:
            raise errors.FeatureNotSupported(feature="OVERRIDING beside another INSERT", instead="Separate them.")
        inserts[0].meta[OVERRIDING] = overriding
    _share_notes(tree)
    return tree


class Notes(dict[str, Any]):
    """`meta` of a node: what is known of it. Copies of the node share the values, which are not changed."""

    def __deepcopy__(self, memo: object) -> Notes:
        return Notes(self)


def _share_notes(tree: exp.Expr) -> None:
    """A tree is copied several times: what is noted at its nodes would take longer to copy than the nodes."""
    for node in tree.walk():
        if node._meta is not None:
            node._meta = Notes(node._meta)


# What ends a list: there is an item before it. The parser would leave out a comma.
_ENDING: Final = frozenset({TokenType.FROM, TokenType.WHERE, TokenType.R_PAREN, TokenType.HAVING, TokenType.LIMIT})


def _check_commas(raw: RawStatement) -> None:
    first = raw.tokens[0].start
    for token, following in pairwise(raw.tokens):
        if token.token_type is TokenType.COMMA and following.token_type in _ENDING:
            problem = errors.SyntaxProblem(detail=f'at or near "{following.text}"')
            raise problem.at(errors.ErrorPlace(following.start - first, part=raw.text))


def _check_nesting(tokens: list[Token]) -> None:
    """Limits the nesting of brackets, and of the constructs that the parser reads twice."""
    if sum(t.token_type is TokenType.L_BRACKET or t.token_type in _READ_TWICE for t in tokens) <= _NESTED_MAX:
        return
    opened: list[bool] = []
    depth = 0
    for before, token in pairwise([tokens[0], *tokens]):
        if token.token_type in (TokenType.L_BRACKET, TokenType.L_PAREN):
            opened.append(token.token_type is TokenType.L_BRACKET or before.token_type in _READ_TWICE)
            depth += opened[-1]
        elif token.token_type in (TokenType.R_BRACKET, TokenType.R_PAREN) and opened:
            depth -= opened.pop()
        if depth > _NESTED_MAX:
            raise errors.StatementTooComplex()


def _check_modifiers(tree: exp.Expr) -> None:
    """The numbers of a type, as in numeric(3,1), are constants: all that follows relies on it."""
    for modifier in tree.find_all(exp.DataTypeParam):
        if not (isinstance(modifier.this, exp.Literal) and modifier.name.isdigit()):
            raise errors.SyntaxProblem(detail="type modifiers must be simple constants")


# The binary digits of float(n).
_REAL_DIGITS_MAX = 24
_DOUBLE_DIGITS_MAX = 53
# PostgreSQL's.
_NUMERIC_DIGITS_MAX = 1000


def _plain_types(tree: exp.Expr) -> None:
    """float(n) is real or double precision; in a cast, a numeric of more digits than ours is the largest of ours."""
    for type_ in list(tree.find_all(exp.DataType)):
        if type_.is_type(exp.DType.DECIMAL) and type_.expressions:
            _limit_digits(type_)
        if not type_.is_type(exp.DType.DOUBLE, exp.DType.FLOAT) or not type_.expressions:
            continue
        digits = int(type_.expressions[0].name)
        if not 1 <= digits <= _DOUBLE_DIGITS_MAX:
            raise errors.InvalidParameterValue(detail="precision for type float must be between 1 and 53 bits")
        type_.set("this", exp.DType.FLOAT if digits <= _REAL_DIGITS_MAX else exp.DType.DOUBLE)
        type_.set("expressions", None)


def _limit_digits(type_: exp.DataType) -> None:
    digits, *scale = [int(item.name) for item in type_.expressions]
    if NUMERIC_PRECISION_MAX < digits <= _NUMERIC_DIGITS_MAX:
        sizes = [NUMERIC_PRECISION_MAX, *(min(each, NUMERIC_PRECISION_MAX) for each in scale)]
        type_.set("expressions", [exp.DataTypeParam(this=exp.Literal.number(each)) for each in sizes])


# Key of `meta` for the name by which a function was called; sqlglot has one node for several names.
WRITTEN = "written"


def _note_spellings(tree: exp.Expr, text: str) -> None:
    """Operators that sqlglot represents as functions have no position, and so no name."""
    for node in tree.find_all(exp.Func, exp.Mod):
        start = node.meta_get("start", 0)
        if start and not isinstance(node, exp.Anonymous):
            node.meta[WRITTEN] = text[start : node.meta["end"] + 1].lower()


def _name_networks(tree: exp.Expr) -> None:
    """sqlglot takes cidr for the name of a user's type."""
    for node in tree.find_all(exp.DataType):
        name = node.args.get("kind")
        if isinstance(name, exp.Identifier) and name.name.lower() == _CIDR:
            node.replace(exp.DataType(this=exp.DType.IPPREFIX))


def take_databases(tree: exp.Expr) -> frozenset[str]:
    """Removes the database parts of names, and returns them."""
    named = [node for node in tree.find_all(exp.Table, exp.Column) if node.args.get("catalog") is not None]
    found = [node.args["catalog"] for node in named]
    for node in named:
        node.set("catalog", None)
    return frozenset(str(name.this) if name.quoted else str(name.this).lower() for name in found)


# Types for which sqlglot has no array type, and their array types here.
_LISTED = {name: Token(TokenType.TEXT, "text") for name in ("regtype", "regclass", "regproc", "name")}
_LISTED["oid"] = Token(TokenType.UINT, "uint")
# Functions that sqlglot would translate to something else (strftime patterns, document paths, SQL/JSON objects):
# renamed to names that it does not know.
_PATTERNED = {
    name: Token(TokenType.VAR, f"pg_{name}")
    for name in (
        "to_char",
        "to_date",
        "to_timestamp",
        "to_number",
        "json_object",
        "date_add",
        "date_subtract",
        "date_part",
    )
}
_TYPED_CAST = re.compile(r"'\s*::")
_PATTERNED_CALL = re.compile(
    r"\b(?:to_(?:char|date|timestamp|number)|json_object|date_(?:add|subtract|part))\b", re.IGNORECASE
)
_TYPES_OF_CONSTANTS = frozenset({"date", "time", "timestamp", "timestamptz", "interval", "inet"})
_INTERVAL_CONSTANT = re.compile(r"\binterval\s*(?:\(\s*[0-9]\s*\)\s*)?'", re.IGNORECASE)
_PREFIXED_NUMBER = re.compile(r"\b0[xXbB][0-9a-fA-F]")
_GROUPED_DIGITS = re.compile(r"[0-9]_[0-9]")
_DIGIT_GROUPS = re.compile(r"(_[0-9]+)+")
_UNITS = frozenset({"year", "month", "day", "hour", "minute", "second"})
_NETWORK_CONSTANT = re.compile(r"\bcidr\s*'", re.IGNORECASE)
# The parser knows no operators of networks; those of ranges, which do not exist here, have the same precedence.
_CONTAINMENTS = {
    (TokenType.LT, TokenType.LTE): Token(TokenType.AMP_LT, "<<="),
    (TokenType.GT, TokenType.GTE): Token(TokenType.AMP_GT, ">>="),
}
_AS = Token(TokenType.DCOLON, "::")
_DIGITS_AND_TEXT = [TokenType.L_PAREN, TokenType.NUMBER, TokenType.R_PAREN, TokenType.STRING]
_OPEN, _CLOSE = Token(TokenType.L_PAREN, "("), Token(TokenType.R_PAREN, ")")


def _plain_tokens(raw: RawStatement) -> list[Token]:
    tokens = rewrite_syntax(raw.text, list(raw.tokens))
    if "[]" in raw.text:
        _plain_arrays(tokens)
    if _PATTERNED_CALL.search(raw.text):
        for at, (token, following) in enumerate(pairwise(tuple(tokens))):
            if following.token_type is TokenType.L_PAREN and token.token_type is not TokenType.STRING:
                tokens[at] = _PATTERNED.get(token.text.lower(), token)
    if _PREFIXED_NUMBER.search(raw.text):
        tokens = [_plain_number(token) for token in tokens]
    if _GROUPED_DIGITS.search(raw.text):
        tokens = _join_digits(tokens)
    if _INTERVAL_CONSTANT.search(raw.text):
        tokens = _cast_intervals(tokens)
    if "<<=" in raw.text or ">>=" in raw.text:
        tokens = _join_containments(tokens)
    if _NETWORK_CONSTANT.search(raw.text):
        tokens = _cast_networks(tokens)
    return _enclose_constants(tokens) if _TYPED_CAST.search(raw.text) else tokens


def _plain_arrays(tokens: list[Token]) -> None:
    for at, token in enumerate(tokens[:-2]):
        if tokens[at + 1].token_type is TokenType.L_BRACKET and tokens[at + 2].token_type is TokenType.R_BRACKET:
            tokens[at] = _LISTED.get(token.text.lower(), token)


def _plain_number(token: Token) -> Token:
    """0x1F is a number, X'1F' a bit string: sqlglot confuses them."""
    base = {TokenType.HEX_STRING: 16, TokenType.BIT_STRING: 2}.get(token.token_type)
    is_number = base is not None and token.end - token.start + 1 == len(token.text) + len("0x")
    if base is None or not is_number:
        return token
    return Token(TokenType.NUMBER, str(int(token.text, base)), start=token.start, end=token.end)


def _join_digits(tokens: list[Token]) -> list[Token]:
    """1_000 is a number: sqlglot reads it as a number with an alias."""
    found: list[Token] = []
    for token in tokens:
        last = found[-1] if found else None
        joined = last is not None and last.token_type is TokenType.NUMBER and last.end + 1 == token.start
        if joined and last is not None and _DIGIT_GROUPS.fullmatch(token.text):
            digits = last.text + token.text.replace("_", "")
            found[-1] = Token(TokenType.NUMBER, digits, start=last.start, end=token.end)
        else:
            found.append(token)
    return found


def _cast_intervals(tokens: list[Token]) -> list[Token]:
    """interval '1 day 02:03:04' becomes a cast of the text: sqlglot drops all but the first unit of some texts. With
    fields (DAY TO SECOND (3)) the text is that of the value."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        kinds = [token.token_type for token in tokens[at : at + 5]]
        if kinds[:1] == [TokenType.INTERVAL] and kinds[1:] == _DIGITS_AND_TEXT:
            found += [tokens[at + 4], _AS, *tokens[at : at + 4]]
            at += 5
            continue
        if kinds[:2] != [TokenType.INTERVAL, TokenType.STRING]:
            found.append(tokens[at])
            at += 1
            continue
        text, end = tokens[at + 1], at + 2
        words = [token.text.lower() for token in tokens[end : end + 6]]
        fields = [word for word in words[:1] if word in _UNITS]
        if fields and words[1:2] == ["to"] and words[2:3] and words[2] in _UNITS:
            fields.append(words[2])
        end += 2 * len(fields) - 1 if fields else 0
        if fields:
            digits = tokens[end + 1].text if [t.text for t in tokens[end : end + 3 : 2]] == ["(", ")"] else None
            end += 3 if digits is not None else 0
            value = parse_fields(text.text, fields, int(digits) if digits is not None and digits.isdigit() else None)
            text = Token(TokenType.STRING, str(value), start=text.start, end=text.end)
        found += [text, _AS, tokens[at]]
        at = end
    return found


def _join_containments(tokens: list[Token]) -> list[Token]:
    found: list[Token] = []
    for token in tokens:
        joined = _CONTAINMENTS.get((found[-1].token_type, token.token_type)) if found else None
        if joined is not None and found[-1].end + 1 == token.start:
            found[-1] = joined
        else:
            found.append(token)
    return found


def _cast_networks(tokens: list[Token]) -> list[Token]:
    """cidr '10.0.0.0/8' becomes a cast of the text."""
    found: list[Token] = []
    for token in tokens:
        is_constant = token.token_type is TokenType.STRING and found and found[-1].text.lower() == "cidr"
        if is_constant and found[-1].token_type is TokenType.VAR and (len(found) < 2 or found[-2] is not _AS):
            found[-1:] = [token, _AS, found[-1]]
        else:
            found.append(token)
    return found


def _enclose_constants(tokens: list[Token]) -> list[Token]:
    """date '2024-01-01'::text is a date as text: sqlglot reads it as a text cast to date."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        here = tokens[at : at + 3]
        kinds = [token.token_type for token in here[1:]]
        is_constant = kinds == [TokenType.STRING, TokenType.DCOLON] and here[0].text.lower() in _TYPES_OF_CONSTANTS
        if is_constant and (not found or found[-1].token_type not in (TokenType.DCOLON, TokenType.DOT)):
            found += [_OPEN, here[0], here[1], _CLOSE]
            at += 2
            continue
        found.append(tokens[at])
        at += 1
    return found


_CURRENT_ROLE = "current_role"
_DATE_PART = "pg_date_part"


def _built_in(tree: exp.Expr) -> exp.Expr:
    """Functions of extensions that equal built-in ones, whatever schema the extension is in."""
    for call in [c for c in tree.find_all(exp.Anonymous) if c.name.lower() == _UUID and not c.expressions]:
        dot = call.parent
        (dot if isinstance(dot, exp.Dot) else call).replace(exp.Uuid())
    for call in [c for c in tree.find_all(exp.Anonymous) if c.name.lower() == _DATE_PART]:
        call.replace(_read_date_part(call))
    # A keyword in PostgreSQL, like current_user; sqlglot reads it as a column.
    for column in [c for c in tree.find_all(exp.Column) if not c.table and c.name.lower() == _CURRENT_ROLE]:
        if not column.this.args.get("quoted"):
            column.replace(exp.CurrentRole())
    for test in [i for i in tree.find_all(exp.Is) if i.expression.name.startswith(NORMALIZED)]:
        form = exp.Var(this=test.expression.name.removeprefix(NORMALIZED).upper())
        test.replace(exp.EQ(this=test.this.copy(), expression=exp.Normalize(this=test.this.copy(), form=form)))
    return tree


def _read_date_part(call: exp.Anonymous) -> exp.Expr:
    """The same as EXTRACT, but for the type of its result."""
    match call.expressions:
        case [exp.Literal(is_string=True) as unit, value]:
            made: exp.Expr = exp.Extract(this=exp.Var(this=unit.name.upper()), expression=value.copy())
        case _:
            made = exp.Anonymous(this="date_part", expressions=[item.copy() for item in call.expressions])
    made.meta[WRITTEN] = "date_part"
    return made


_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Pow)


def _take_out_of_documents(tree: exp.Expr) -> exp.Expr:
    """f(doc -> 'a') is an operator on a document: sqlglot reads it as a lambda."""
    for made in reversed(list(tree.find_all(exp.Lambda))):
        if len(made.expressions) != 1 or not isinstance(made.expressions[0], exp.Identifier):
            continue
        body = exp.Paren(this=made.this.copy())
        # Casts and arithmetic bind more tightly than the arrow, everything else less.
        key: exp.Expr = body.this
        while isinstance(key, exp.Binary | exp.In | exp.Between) and not isinstance(key, _ARITHMETIC):
            key = key.this
        taken = exp.JSONExtract(
            this=exp.column(made.expressions[0].copy()),
            expression=DIALECT.to_json_path(key.copy()),
            only_json_types=True,
        )
        key.replace(taken)
        made.replace(body.this)
    return tree


def _cut_overriding(tokens: list[Token]) -> tuple[list[Token], str | None]:
    """sqlglot does not support the clause."""
    words = [token.text.lower() for token in tokens]
    for at, word in enumerate(words):
        if word == OVERRIDING and words[at + 1 : at + 3] in (["system", "value"], ["user", "value"]):
            return [*tokens[:at], *tokens[at + 3 :]], words[at + 1]
    return tokens, None


# How the parser begins its messages about what is not there.
_MISSING: Final = ("Required keyword", "Expecting")


def _parse(raw: RawStatement, tokens: list[Token]) -> exp.Expr:
    # sqlglot has an operator for DuckDB's function, and would fail on it before the guard sees it.
    if any(w.text == "glob" and n.text == "(" for w, n in pairwise(raw.words)):
        raise errors.InsufficientPrivilege(detail="function glob may not be called")
    try:
        trees = DIALECT.parser().parse(tokens, raw.text)
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        near = first.get("highlight") or first.get("end_context") or ""
        # What is missing is missed at the last word.
        is_missing = str(first.get("description")).startswith(_MISSING) and not first.get("end_context")
        is_end = not near or (is_missing and near == raw.tokens[-1].text)
        detail = "at end of input" if is_end else f'at or near "{near}"'
        raise errors.SyntaxProblem(detail=detail) from None
    except SqlglotError as error:
        raise errors.SyntaxProblem(detail=str(error).splitlines()[0]) from None
    except INCOMPLETE:
        raise errors.SyntaxProblem(detail="an operand is missing") from None
    if len(trees) != 1 or trees[0] is None:
        raise errors.SyntaxProblem(detail="not a statement")
    return trees[0]
