"""What PostgreSQL is told of how it keeps a table or index: read, and of no account here."""

from __future__ import annotations

from seachange import errors
from seachange.sql.ddl.names import read_list
from seachange.sql.tokens import Reader

# Of tables and of indexes; those of autovacuum have a prefix.
_PARAMETERS = (
    *("fillfactor", "parallel_workers", "toast_tuple_target", "user_catalog_table", "vacuum_index_cleanup"),
    *("vacuum_truncate", "deduplicate_items", "buffering", "fastupdate", "oids"),
)
_PREFIXES = ("autovacuum_", "log_autovacuum_")
_OF_TOAST = "toast"


def take_storage(reader: Reader) -> None:
    """WITH (parameter = value, ...), WITHOUT OIDS and TABLESPACE pg_default, as far as they are there."""
    if reader.take("with"):
        reader.expect_symbol("(")
        read_list(reader, _read_parameter)
        reader.expect_symbol(")")
    else:
        reader.take("without", "oids")
    reader.take("tablespace", "pg_default")


def _read_parameter(reader: Reader) -> None:
    name = reader.name()
    if name == _OF_TOAST and reader.take_symbol("."):
        name = reader.name()
    if name not in _PARAMETERS and not name.startswith(_PREFIXES):
        raise errors.UndefinedObject(kind="storage parameter", name=name)
    if reader.take_symbol("="):
        reader.next()
