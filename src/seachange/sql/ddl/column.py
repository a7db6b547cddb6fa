"""Column definitions: a name, a type, and the default, settings and constraints declared on the column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from seachange import errors
from seachange.model.statements import (
    ColumnDefinition,
    ColumnType,
    ConstantDefault,
    Default,
    ExpressionDefinition,
    IdentityDefinition,
    SettingValue,
    UserType,
)
from seachange.sql.ddl.constraint import Constraints, read_column_constraint
from seachange.sql.ddl.expression import DEFAULT, GENERATED, UP, compile_expression
from seachange.sql.ddl.sequence import INTEGERS, read_identity
from seachange.sql.text.names import read_collation, read_column_type
from seachange.sql.text.tokens import Reader, TokenKind
from seachange.values.array_text import show_array
from seachange.values.types import KIND_BY_ALIAS, Kind, SqlType

_SERIALS: dict[str, Kind] = {
    "smallserial": Kind.SMALLINT,
    "serial2": Kind.SMALLINT,
    "serial": Kind.INTEGER,
    "serial4": Kind.INTEGER,
    "bigserial": Kind.BIGINT,
    "serial8": Kind.BIGINT,
}
# The methods of COMPRESSION, by their names in Parquet.
_COMPRESSIONS = frozenset({"lz4", "zstd", "snappy", "none"})
# A higher statistics target is lowered to this, as in PostgreSQL.
_STATISTICS_MAX = 10_000
# The keywords that may follow a default; inside one they occur only in parentheses or CASE.
_AFTER_DEFAULT_WORDS = """
    not null default unique primary check references constraint generated collate deferrable initially storage
    compression up
"""
_AFTER_DEFAULT = frozenset(_AFTER_DEFAULT_WORDS.split())
_WORDS: dict[str, ConstantDefault] = {
    "null": ConstantDefault(None),
    "true": ConstantDefault("true"),
    "false": ConstantDefault("false"),
}
# Type names of one word, which may precede a literal.
_TIMES = frozenset({Kind.TIMESTAMPTZ, Kind.TIMESTAMP, Kind.DATE, Kind.TIME})
_TYPED = frozenset(alias for alias in KIND_BY_ALIAS if " " not in alias)


@dataclass(slots=True)
class _Draft:
    """A column while its definition is read."""

    name: str
    type: ColumnType
    serial: bool = False
    nullable: bool | None = None
    default: Default | None = None
    generated: ExpressionDefinition | None = None
    identity: IdentityDefinition | None = None
    settings: dict[str, SettingValue | None] = field(default_factory=dict)
    up: ExpressionDefinition | None = None

    def set_nullable(self, nullable: bool) -> None:
        if self.nullable is not None and self.nullable != nullable:
            raise errors.SyntaxProblem(detail=f'conflicting NULL and NOT NULL for column "{self.name}"')
        self.nullable = nullable

    def expect_no_value(self, is_default: bool = False) -> None:
        """A column has at most one of default, identity and generation expression."""
        if self.up is not None and not is_default:
            raise errors.SyntaxProblem(detail=f'column "{self.name}" has more than one expression for its values')
        if self.serial or self.default is not None or self.generated is not None or self.identity is not None:
            detail = f'more than one default, identity or generation expression for column "{self.name}"'
            raise errors.SyntaxProblem(detail=detail)

    def finish(self) -> ColumnDefinition:
        return ColumnDefinition(
            self.name,
            self.type,
            self.nullable is not False,
            self.default,
            self.generated,
            self.identity,
            self.serial,
            tuple((name, value) for name, value in self.settings.items() if value is not None),
            self.up,
        )


def read_column(reader: Reader, constraints: Constraints) -> ColumnDefinition:
    """A column definition; the constraints declared on it are added to those of the table."""
    name = reader.name()
    draft = _read_serial(reader, name) or _Draft(name, read_column_type(reader))
    keys_before = len(constraints.primary)
    while True:
        label = reader.name() if reader.take("constraint") else None
        if not _read_property(reader, draft) and not read_column_constraint(reader, name, label, constraints):
            if label is not None:
                raise reader.problem()
            break
    if len(constraints.primary) > keys_before:
        draft.nullable = False
    return draft.finish()


def _read_serial(reader: Reader, name: str) -> _Draft | None:
    word = reader.take_any(*_SERIALS)
    return None if word is None else _Draft(name, SqlType(_SERIALS[word]), serial=True, nullable=False)


def _read_property(reader: Reader, draft: _Draft) -> bool:
    for words, read in _PROPERTIES:
        if reader.take(*words):
            read(reader, draft)
            return True
    return False


def _not_null(reader: Reader, draft: _Draft) -> None:
    draft.set_nullable(False)


def _null(reader: Reader, draft: _Draft) -> None:
    draft.set_nullable(True)


def _collated(reader: Reader, draft: _Draft) -> None:
    read_collation(reader)


def _kept(reader: Reader, draft: _Draft) -> None:
    """Storage options are parsed and ignored."""
    reader.next()


def _compression(reader: Reader, draft: _Draft) -> None:
    draft.settings["compression"] = _read_compression(reader)


def _read_compression(reader: Reader) -> str | None:
    """PostgreSQL's own method, pglz, means the default: Parquet does not have it."""
    method = "default" if reader.take("default") else reader.name()
    if method in ("default", "pglz"):
        return None
    if method not in _COMPRESSIONS:
        raise errors.InvalidParameterValue(detail=f'invalid compression method "{method}"')
    return method


def _read_statistics(reader: Reader) -> int | None:
    """-1 is the default."""
    if reader.take("default"):
        return None
    sign = -1 if reader.take_symbol("-") else 1
    target = sign * reader.integer()
    if target < -1:
        raise errors.InvalidParameterValue(detail=f"statistics target {target} is too low")
    return None if target == -1 else min(target, _STATISTICS_MAX)


def _default(reader: Reader, draft: _Draft) -> None:
    draft.expect_no_value(is_default=True)
    draft.default = read_default(reader, _AFTER_DEFAULT, draft.type)


def _generated(reader: Reader, draft: _Draft) -> None:
    draft.expect_no_value()
    always = read_always(reader)
    reader.expect("as")
    if reader.take("identity"):
        draft.identity = _read_identity(reader, draft, always)
        draft.set_nullable(False)
        return
    draft.generated = compile_expression(reader.parenthesized(), GENERATED, draft.type)
    if not always:
        raise errors.SyntaxProblem(detail=f'generated column "{draft.name}" must be GENERATED ALWAYS')
    if not reader.take("stored"):
        raise errors.FeatureNotSupported(
            feature="a virtual generated column", instead="Write STORED after the expression."
        )


def _up(reader: Reader, draft: _Draft) -> None:
    if draft.up is not None or draft.serial or draft.generated is not None or draft.identity is not None:
        raise errors.SyntaxProblem(detail=f'column "{draft.name}" has more than one expression for its values')
    draft.up = compile_expression(reader.parenthesized(), UP, draft.type)


def _read_identity(reader: Reader, draft: _Draft, always: bool) -> IdentityDefinition:
    if isinstance(draft.type, SqlType) and draft.type.kind in INTEGERS:
        return read_identity(reader, always)
    raise errors.InvalidParameterValue(
        detail=f'identity column "{draft.name}" must be of type smallint, integer or bigint'
    )


def read_always(reader: Reader) -> bool:
    """After GENERATED: ALWAYS, or BY DEFAULT."""
    if reader.take("always"):
        return True
    reader.expect("by", "default")
    return False


_PROPERTIES: tuple[tuple[tuple[str, ...], Callable[[Reader, _Draft], None]], ...] = (
    (("not", "null"), _not_null),
    (("null",), _null),
    (("default",), _default),
    (("generated",), _generated),
    (("collate",), _collated),
    (("storage",), _kept),
    (("compression",), _compression),
    (("up", "using"), _up),
)

# The settings that ALTER COLUMN ... SET changes: by keyword, the field of the column and the reader of its value.
SETTINGS: dict[str, tuple[str, Callable[[Reader], SettingValue | None]]] = {
    "compression": ("compression", _read_compression),
    "statistics": ("statistics_target", _read_statistics),
}


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
    if reader.at("array"):
        return _take_array(reader)
    if word.text in _WORDS:
        return _WORDS[reader.next().text]
    following = reader.peek(1)
    if word.text in _TYPED and following is not None and following.kind is TokenKind.STRING:
        kind = KIND_BY_ALIAS[reader.next().text]
        return ConstantDefault(reader.next().text, quoted=True, read_as=SqlType(kind) if kind in _TIMES else None)
    return None


def _take_array(reader: Reader) -> ConstantDefault | None:
    """ARRAY['a', 'b']: the same as its text. None if it is computed."""
    reader.expect("array")
    items: list[str] = []
    if not reader.take_symbol("["):
        return None
    while not reader.take_symbol("]"):
        word = reader.peek()
        if word is None or word.kind is not TokenKind.STRING or _take_casts(reader):
            return None
        items.append(reader.string())
        if not reader.take_symbol(",") and not reader.at_symbol("]"):
            return None
    return ConstantDefault(show_array(items), quoted=True)
