"""Transaction and settings statements: BEGIN, COMMIT, ROLLBACK, SAVEPOINT, SET, SHOW, RESET."""

from __future__ import annotations

from seachange import errors
from seachange.model.isolation import ISOLATION_BY_NAME, Isolation
from seachange.model.relation import RelationName
from seachange.model.search_path import quote_in_path
from seachange.model.statements import (
    Begin,
    Commit,
    ReleaseSavepoint,
    ResetSetting,
    Rollback,
    RollbackToSavepoint,
    Savepoint,
    SetConstraints,
    SetSetting,
    SetTransaction,
    ShowSetting,
)
from seachange.sql.ddl.names import read_relation
from seachange.sql.tokens import Kind, Reader

_NOISE = ("work", "transaction")
# Names of several words, and the settings that they stand for.
_SPELLINGS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("time", "zone"), "timezone"),
    (("transaction", "isolation", "level"), "transaction_isolation"),
    (("names",), "client_encoding"),
)
_WITHOUT_EQUALS = ("timezone", "client_encoding", "role")


def read_begin(reader: Reader) -> Begin:
    reader.take_any(*_NOISE)
    isolation, read_only = _read_modes(reader)
    return Begin(isolation, read_only)


def read_start(reader: Reader) -> Begin:
    reader.expect("transaction")
    isolation, read_only = _read_modes(reader)
    return Begin(isolation, read_only)


def _read_modes(reader: Reader) -> tuple[Isolation | None, bool | None]:
    isolation: Isolation | None = None
    read_only: bool | None = None
    while not reader.at_end:
        if reader.take("isolation", "level"):
            isolation = _read_isolation(reader)
        elif reader.take("read", "only"):
            read_only = True
        elif reader.take("read", "write"):
            read_only = False
        elif not (reader.take("not", "deferrable") or reader.take("deferrable")):
            raise reader.problem()
        reader.take_symbol(",")
    return isolation, read_only


def _read_isolation(reader: Reader) -> Isolation:
    for name, level in ISOLATION_BY_NAME.items():
        if reader.take(*name.split()):
            return level
    raise reader.problem()


def read_commit(reader: Reader) -> Commit:
    _read_end(reader)
    return Commit()


def read_rollback(reader: Reader) -> Rollback | RollbackToSavepoint:
    reader.take_any(*_NOISE)
    if reader.take("to"):
        return RollbackToSavepoint(_read_savepoint(reader))
    _read_end(reader)
    return Rollback()


def read_savepoint(reader: Reader) -> Savepoint:
    return Savepoint(reader.name())


def read_release(reader: Reader) -> ReleaseSavepoint:
    return ReleaseSavepoint(_read_savepoint(reader))


def _read_savepoint(reader: Reader) -> str:
    """The word SAVEPOINT may stand before a name, and may be one."""
    if reader.peek(1) is not None:
        reader.take("savepoint")
    return reader.name()


def _read_end(reader: Reader) -> None:
    reader.take_any(*_NOISE)
    if reader.take("and", "chain"):
        raise errors.FeatureNotSupported(feature="AND CHAIN", instead="Use BEGIN.")
    reader.take("and", "no", "chain")
    reader.expect_end()


def read_set(reader: Reader) -> SetSetting | SetTransaction | SetConstraints:
    if reader.take("constraints"):
        return _read_constraints(reader)
    if reader.take("session", "characteristics", "as", "transaction"):
        return SetTransaction(*_read_modes(reader), session=True)
    if reader.take("session", "authorization"):
        return SetSetting("session_authorization", _read_value(reader))
    scope = reader.take_any("session", "local")
    if reader.take("transaction"):
        return SetTransaction(*_read_modes(reader))
    name = _read_name(reader)
    assigned = reader.take("to") or reader.take_symbol("=")
    if not assigned and name not in _WITHOUT_EQUALS:
        raise reader.problem()
    return SetSetting(name, _read_path(reader) if name == "search_path" else _read_value(reader), scope == "local")


def _read_path(reader: Reader) -> str | None:
    """A list of names, or of strings that are names."""
    if reader.take("default"):
        reader.expect_end()
        return None
    names = [quote_in_path(_read_value_word(reader))]
    while reader.take_symbol(","):
        names.append(quote_in_path(_read_value_word(reader)))
    return ", ".join(names)


def _read_constraints(reader: Reader) -> SetConstraints:
    names: list[RelationName] | None = None
    if not reader.take("all"):
        names = [read_relation(reader)]
        while reader.take_symbol(","):
            names.append(read_relation(reader))
    mode = reader.take_any("deferred", "immediate")
    if mode is None:
        raise reader.problem()
    return SetConstraints(None if names is None else tuple(names), mode == "deferred")


def _read_name(reader: Reader) -> str:
    for words, name in _SPELLINGS:
        if reader.take(*words):
            return name
    name = reader.name()
    while reader.take_symbol("."):
        name = f"{name}.{reader.name()}"
    return name.lower()


def _read_value(reader: Reader) -> str | None:
    if reader.take("default"):
        reader.expect_end()
        return None
    parts = [_read_value_word(reader)]
    while not reader.at_end:
        separator = ", " if reader.take_symbol(",") else " "
        parts.append(separator + _read_value_word(reader))
    return "".join(parts)


def _read_value_word(reader: Reader) -> str:
    sign = "-" if reader.take_symbol("-") else ""
    word = reader.next()
    if word.kind is Kind.SYMBOL:
        raise errors.SyntaxProblem(detail=f'at or near "{word.text}"')
    return sign + word.text


def read_show(reader: Reader) -> ShowSetting:
    if reader.take("all"):
        reader.expect_end()
        return ShowSetting(None)
    name = _read_name(reader)
    reader.expect_end()
    return ShowSetting(name)


def read_reset(reader: Reader) -> ResetSetting:
    if reader.take("all"):
        reader.expect_end()
        return ResetSetting(None)
    name = "session_authorization" if reader.take("session", "authorization") else _read_name(reader)
    reader.expect_end()
    return ResetSetting(name)
