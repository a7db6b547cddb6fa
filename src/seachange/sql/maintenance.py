"""What PostgreSQL has to be told to do and is done here anyway, or need not be: accepted, so that scripts run as they
are.

Statistics come with the files, entries that are gone go with the next fold, a commit is durable, and nobody listens.
"""

from __future__ import annotations

from seachange.model.session_statements import NeedlessStatement
from seachange.sql.ddl.names import read_list, read_relation
from seachange.sql.tokens import Reader


def read_analyze(reader: Reader) -> NeedlessStatement:
    _skip_options(reader)
    reader.take("verbose")
    _skip_tables(reader)
    return NeedlessStatement("ANALYZE")


def read_reindex(reader: Reader) -> NeedlessStatement:
    _skip_options(reader)
    if reader.take_any("index", "table", "schema", "database", "system") is None:
        raise reader.problem()
    reader.take("concurrently")
    if not reader.at_end:
        read_relation(reader)
    return NeedlessStatement("REINDEX")


def read_checkpoint(reader: Reader) -> NeedlessStatement:
    return NeedlessStatement("CHECKPOINT")


def read_unlisten(reader: Reader) -> NeedlessStatement:
    if not reader.take_symbol("*"):
        reader.name()
    return NeedlessStatement("UNLISTEN")


def _skip_options(reader: Reader) -> None:
    if reader.at_symbol("("):
        reader.parenthesized()


def _skip_tables(reader: Reader) -> None:
    if not reader.at_end:
        read_list(reader, _skip_table)


def _skip_table(reader: Reader) -> None:
    read_relation(reader)
    if reader.at_symbol("("):
        reader.names()
