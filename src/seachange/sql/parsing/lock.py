"""LOCK TABLE as text."""

from __future__ import annotations

from seachange.model.locking import TableLock
from seachange.model.relation import RelationName
from seachange.model.statements.session_statements import LockTables
from seachange.sql.text.names import read_list, read_relation
from seachange.sql.text.tokens import Reader

# The longest names first, since three modes begin with SHARE.
_MODES = sorted(TableLock, key=lambda mode: -len(mode.sql_name.split()))


def read_lock(reader: Reader) -> LockTables:
    reader.take("table")
    relations = read_list(reader, _read_locked)
    mode = TableLock.ACCESS_EXCLUSIVE
    if reader.take("in"):
        mode = _read_mode(reader)
    return LockTables(relations, mode, reader.take("nowait"))


def _read_locked(reader: Reader) -> RelationName:
    """ONLY and * concern table inheritance, which does not exist here."""
    reader.take("only")
    name = read_relation(reader)
    reader.take_symbol("*")
    return name


def _read_mode(reader: Reader) -> TableLock:
    for mode in _MODES:
        if reader.take(*mode.sql_name.lower().split(), "mode"):
            return mode
    raise reader.problem()
