"""Maintenance statements of PostgreSQL that need no work here: accepted, so that scripts run unchanged.

Statistics are stored with the files, compaction removes deleted entries, every commit is durable, and there is no
LISTEN / NOTIFY.
"""

from __future__ import annotations

from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.statements.session_statements import NeedlessStatement
from seachange.sql.text.names import read_list, read_relation
from seachange.sql.text.tokens import Reader

_REINDEXED: dict[str, ObjectKind] = {
    "index": ObjectKind.INDEX,
    "table": ObjectKind.TABLE,
    "schema": ObjectKind.SCHEMA,
    "database": ObjectKind.DATABASE,
    "system": ObjectKind.DATABASE,
}


def read_analyze(reader: Reader) -> NeedlessStatement:
    _skip_options(reader)
    reader.take("verbose")
    return NeedlessStatement("ANALYZE", read=() if reader.at_end else read_list(reader, _read_table))


def read_reindex(reader: Reader) -> NeedlessStatement:
    _skip_options(reader)
    word = reader.take_any(*_REINDEXED)
    if word is None:
        raise reader.problem()
    reader.take("concurrently")
    name = None if reader.at_end else read_relation(reader)
    return NeedlessStatement("REINDEX", _REINDEXED[word], name)


def read_checkpoint(reader: Reader) -> NeedlessStatement:
    return NeedlessStatement("CHECKPOINT", for_superusers=True)


def read_unlisten(reader: Reader) -> NeedlessStatement:
    if not reader.take_symbol("*"):
        reader.name()
    return NeedlessStatement("UNLISTEN")


def _skip_options(reader: Reader) -> None:
    if reader.at_symbol("("):
        reader.parenthesized()


def _read_table(reader: Reader) -> RelationName:
    name = read_relation(reader)
    if reader.at_symbol("("):
        reader.names()
    return name
