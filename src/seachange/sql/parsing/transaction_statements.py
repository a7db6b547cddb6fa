"""Transaction and settings statements: BEGIN, COMMIT, ROLLBACK, SAVEPOINT, SET, SHOW, RESET."""

from __future__ import annotations

from seachange import errors
from seachange.model import statements
from seachange.model.isolation import ISOLATION_BY_NAME, Isolation
from seachange.model.relation import RelationName
from seachange.sql.settings.setting_checks import check_boolean
from seachange.sql.text.names import read_relation
from seachange.sql.text.setting_words import read_assignment, read_setting_name, read_value
from seachange.sql.text.tokens import Reader

_NOISE = ("work", "transaction")
_READ_ONLY = "transaction_read_only"


def read_begin(reader: Reader) -> statements.Begin:
    reader.take_any(*_NOISE)
    isolation, read_only = _read_modes(reader)
    return statements.Begin(isolation, read_only)


def read_start(reader: Reader) -> statements.Begin:
    reader.expect("transaction")
    isolation, read_only = _read_modes(reader)
    return statements.Begin(isolation, read_only)


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


def read_commit(reader: Reader) -> statements.Commit:
    return statements.Commit(_read_end(reader))


def read_rollback(reader: Reader) -> statements.Rollback | statements.RollbackToSavepoint:
    reader.take_any(*_NOISE)
    if reader.take("to"):
        return statements.RollbackToSavepoint(_read_savepoint(reader))
    return statements.Rollback(_read_end(reader))


def read_savepoint(reader: Reader) -> statements.Savepoint:
    return statements.Savepoint(reader.name())


def read_release(reader: Reader) -> statements.ReleaseSavepoint:
    return statements.ReleaseSavepoint(_read_savepoint(reader))


def _read_savepoint(reader: Reader) -> str:
    """The word SAVEPOINT may precede a name, and may be a name."""
    if reader.peek(1) is not None:
        reader.take("savepoint")
    return reader.name()


def _read_end(reader: Reader) -> bool:
    """Whether AND CHAIN follows."""
    reader.take_any(*_NOISE)
    chain = reader.take("and", "chain")
    reader.take("and", "no", "chain")
    reader.expect_end()
    return chain


def read_set(reader: Reader) -> statements.SetSetting | statements.SetTransaction | statements.SetConstraints:
    if reader.take("constraints"):
        return _read_constraints(reader)
    if reader.take("session", "characteristics", "as", "transaction"):
        return statements.SetTransaction(*_read_modes(reader), session=True)
    if reader.take("session", "authorization"):
        return statements.SetSetting("session_authorization", read_value(reader))
    scope = reader.take_any("session", "local")
    if reader.take("transaction"):
        return statements.SetTransaction(*_read_modes(reader))
    name, value = read_assignment(reader)
    if name == _READ_ONLY:
        try:
            return statements.SetTransaction(read_only=value is not None and check_boolean(value) == "on")
        except ValueError:
            raise errors.InvalidSetting(name=name, value=value) from None
    return statements.SetSetting(name, value, scope == "local")


def _read_constraints(reader: Reader) -> statements.SetConstraints:
    names: list[RelationName] | None = None
    if not reader.take("all"):
        names = [read_relation(reader)]
        while reader.take_symbol(","):
            names.append(read_relation(reader))
    mode = reader.take_any("deferred", "immediate")
    if mode is None:
        raise reader.problem()
    return statements.SetConstraints(None if names is None else tuple(names), mode == "deferred")


def read_show(reader: Reader) -> statements.ShowSetting:
    if reader.take("all"):
        reader.expect_end()
        return statements.ShowSetting(None)
    name = read_setting_name(reader)
    reader.expect_end()
    return statements.ShowSetting(name)


def read_reset(reader: Reader) -> statements.ResetSetting:
    if reader.take("all"):
        reader.expect_end()
        return statements.ResetSetting(None)
    name = read_setting_name(reader)
    reader.expect_end()
    return statements.ResetSetting(name)
