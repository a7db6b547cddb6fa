"""CREATE SEQUENCE and ALTER SEQUENCE, and the options that identity columns share with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seachange import errors
from seachange.model import statements
from seachange.model.object_kind import ObjectKind
from seachange.sql.ddl.object import take_change
from seachange.sql.text.names import read_column_path, read_relation, read_type
from seachange.sql.text.tokens import Reader, TokenKind
from seachange.values.types import Kind, SqlType

INTEGERS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
_BIGINT_MIN, _BIGINT_MAX = -(2**63), 2**63 - 1
_UNSUPPORTED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("logged",), "Omit it: every sequence is logged."),
    (("unlogged",), "Leave it out."),
)


def _read_number(reader: Reader) -> int:
    negative = reader.take_symbol("-")
    if not negative:
        reader.take_symbol("+")
    value = -reader.integer() if negative else reader.integer()
    if not _BIGINT_MIN <= value <= _BIGINT_MAX:
        raise errors.NumericValueOutOfRange(value=value, type="bigint")
    return value


def _read_increment(reader: Reader) -> int:
    reader.take("by")
    return _read_number(reader)


def _read_start(reader: Reader) -> int:
    reader.take("with")
    return _read_number(reader)


def _read_sequence_type(reader: Reader) -> SqlType:
    found = read_type(reader)
    if found.kind not in INTEGERS:
        raise errors.InvalidParameterValue(detail=f"sequence type must be smallint, integer or bigint, not {found}")
    return found


def _yes(reader: Reader) -> bool:
    return True


def _no(reader: Reader) -> bool:
    return False


# The keywords of an option, the field that it sets, and the reader of its value. The first match is used.
_OPTIONS: tuple[tuple[tuple[str, ...], str, Callable[[Reader], Any]], ...] = (
    (("as",), "type", _read_sequence_type),
    (("increment",), "increment", _read_increment),
    (("minvalue",), "minimum", _read_number),
    (("no", "minvalue"), "no_minimum", _yes),
    (("maxvalue",), "maximum", _read_number),
    (("no", "maxvalue"), "no_maximum", _yes),
    (("start",), "start", _read_start),
    (("cache",), "cache", _read_number),
    (("cycle",), "cycle", _yes),
    (("no", "cycle"), "cycle", _no),
)
# Two fields that express the same thing.
_ONE_OF: dict[str, str] = {
    "minimum": "no_minimum",
    "no_minimum": "minimum",
    "maximum": "no_maximum",
    "no_maximum": "maximum",
    "restart": "restart_at_start",
    "restart_at_start": "restart",
}


class OptionReader:
    """Collects options, each at most once. `restarts`: whether RESTART is allowed, as in ALTER."""

    def __init__(self, reader: Reader, restarts: bool) -> None:
        self._reader = reader
        self._restarts = restarts
        self._found: dict[str, Any] = {}

    @property
    def options(self) -> statements.SequenceOptions:
        return statements.SequenceOptions(**self._found)

    def take(self) -> bool:
        reader = self._reader
        for words, name, read in _OPTIONS:
            if reader.take(*words):
                self._set(name, read(reader))
                return True
        if self._restarts and reader.take("restart"):
            self._take_restart()
            return True
        for words, instead in _UNSUPPORTED:
            if reader.at(*words):
                feature = f"{' '.join(words).upper()} as an option of a sequence"
                raise errors.FeatureNotSupported(feature=feature, instead=instead)
        return False

    def _take_restart(self) -> None:
        following = self._reader.peek()
        is_number = following is not None and following.kind is TokenKind.NUMBER
        if is_number or self._reader.plain() in ("with", "+", "-"):
            self._set("restart", _read_start(self._reader))
        else:
            self._set("restart_at_start", True)

    def _set(self, name: str, value: object) -> None:
        if name in self._found or _ONE_OF.get(name) in self._found:
            raise errors.SyntaxProblem(detail=f"conflicting or redundant options of a sequence: {name}")
        self._found[name] = value


def read_identity(reader: Reader, always: bool) -> statements.IdentityDefinition:
    """With the options in parentheses, if there are any."""
    found, sequence = OptionReader(reader, restarts=False), None
    if reader.take_symbol("("):
        if reader.at_symbol(")"):
            raise reader.problem()
        while not reader.take_symbol(")"):
            if sequence is None and reader.take("sequence", "name"):
                sequence = read_relation(reader)
            elif not found.take():
                raise reader.problem()
    return statements.IdentityDefinition(always, found.options, sequence)


def _read_owner(reader: Reader) -> statements.OwnedBy:
    if reader.at("none") and reader.plain(1) != ".":
        reader.next()
        return statements.OwnedBy(None, None)
    return statements.OwnedBy(*read_column_path(reader))


def _read_options(reader: Reader, restarts: bool) -> tuple[statements.SequenceOptions, statements.OwnedBy | None]:
    found = OptionReader(reader, restarts)
    owner: statements.OwnedBy | None = None
    while not reader.at_end:
        if reader.take("owned", "by"):
            if owner is not None:
                raise errors.SyntaxProblem(detail="conflicting or redundant options of a sequence: owned by")
            owner = _read_owner(reader)
        elif not found.take():
            raise reader.problem()
    return found.options, owner


def read_create_sequence(reader: Reader) -> statements.CreateSequence:
    if_not_exists = reader.take("if", "not", "exists")
    name = read_relation(reader)
    return statements.CreateSequence(name, *_read_options(reader, restarts=False), if_not_exists)


def read_alter_sequence(
    reader: Reader,
) -> statements.AlterSequence | statements.RenameObject | statements.MoveObject | statements.ChangeOwner:
    if_exists = reader.take("if", "exists")
    name = read_relation(reader)
    change = take_change(reader, ObjectKind.SEQUENCE, name, if_exists)
    if change is not None:
        return change
    if reader.at_end:
        raise reader.problem()
    if reader.at("set"):
        raise errors.FeatureNotSupported(
            feature="this form of ALTER SEQUENCE",
            instead="The sequence options, RENAME TO, SET SCHEMA and OWNER TO are supported.",
        )
    return statements.AlterSequence(name, *_read_options(reader, restarts=True), if_exists)
