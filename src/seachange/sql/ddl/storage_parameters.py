"""Storage parameters: parsed and ignored."""

from __future__ import annotations

from collections.abc import Callable

from seachange import errors
from seachange.sql.text.names import read_list
from seachange.sql.text.tokens import Reader, TokenKind

# Of tables and indexes; those of autovacuum have a prefix.
_PARAMETERS = (
    *("fillfactor", "parallel_workers", "toast_tuple_target", "user_catalog_table", "vacuum_index_cleanup"),
    *("vacuum_truncate", "deduplicate_items", "buffering", "fastupdate", "oids"),
    *("pages_per_range", "autosummarize", "gin_pending_list_limit"),
)
_PREFIXES = ("autovacuum_", "log_autovacuum_")
_OF_TOAST = "toast"


def take_storage(reader: Reader) -> None:
    """WITH (parameter = value, ...), WITHOUT OIDS and TABLESPACE pg_default, if present."""
    if reader.take("with"):
        reader.expect_symbol("(")
        read_list(reader, _read_parameter)
        reader.expect_symbol(")")
    else:
        reader.take("without", "oids")
    reader.take("tablespace", "pg_default")


_OF_TABLE = (
    *(("set", "logged"), ("set", "unlogged"), ("set", "without", "cluster"), ("set", "without", "oids")),
    *(("set", "tablespace", "pg_default"), ("replica", "identity", "default"), ("replica", "identity", "full")),
)
_STATISTICS = frozenset({"n_distinct", "n_distinct_inherited"})


def take_column_storage(reader: Reader) -> bool:
    """SET STORAGE, or SET and RESET of attribute options."""
    if reader.take("set", "storage"):
        reader.next()
        return True
    return _take_changed(reader, _read_statistic)


def take_table_storage(reader: Reader) -> bool:
    """Storage actions of ALTER TABLE."""
    if any(reader.take(*words) for words in _OF_TABLE):
        return True
    if reader.take("cluster", "on"):
        reader.name()
        return True
    return _take_changed(reader, _read_parameter)


def _take_changed(reader: Reader, read: Callable[[Reader], None]) -> bool:
    following = reader.peek(1)
    opens = following is not None and following.kind is TokenKind.SYMBOL and following.text == "("
    if not opens or reader.take_any("set", "reset") is None:
        return False
    reader.expect_symbol("(")
    read_list(reader, read)
    reader.expect_symbol(")")
    return True


def _read_statistic(reader: Reader) -> None:
    name = reader.name()
    if name not in _STATISTICS:
        raise errors.UndefinedObject(kind="attribute option", name=name)
    if reader.take_symbol("="):
        reader.take_symbol("-")
        reader.next()


def _read_parameter(reader: Reader) -> None:
    name = reader.name()
    if name == _OF_TOAST and reader.take_symbol("."):
        name = reader.name()
    if name not in _PARAMETERS and not name.startswith(_PREFIXES):
        raise errors.UndefinedObject(kind="storage parameter", name=name)
    if reader.take_symbol("="):
        reader.next()
