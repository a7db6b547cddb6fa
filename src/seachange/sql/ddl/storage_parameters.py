"""Storage parameters: those of PostgreSQL are parsed and ignored, those of tables here are kept."""

from __future__ import annotations

from collections.abc import Callable

from seachange import errors
from seachange.model import statements
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
_OURS = "seachange"
_SWITCH = {"on": "on", "true": "on", "yes": "on", "1": "on", "off": "off", "false": "off", "no": "off", "0": "off"}
# Parameters of tables that have an effect, with their values.
_KEPT: dict[str, dict[str, str]] = {
    "seachange.iceberg": _SWITCH,
    "seachange.iceberg_format": {"2": "2", "3": "3"},
    "seachange.migrate": {word: word for word in ("off", "on_update", "on_read", "background")},
    "seachange.migrate_threshold": {str(percent): str(percent) for percent in range(101)},
}

# A parameter that is kept, and its value; None: the default.
Parameter = tuple[str, str | None]


def take_storage(reader: Reader) -> tuple[tuple[str, str], ...]:
    """WITH (parameter = value, ...), WITHOUT OIDS and TABLESPACE pg_default, if present. Returns what is kept."""
    found: tuple[Parameter | None, ...] = ()
    if reader.take("with"):
        reader.expect_symbol("(")
        found = tuple(read_list(reader, _read_parameter))
        reader.expect_symbol(")")
    else:
        reader.take("without", "oids")
    name = reader.peek(1)
    if reader.at("tablespace") and name is not None and name.text == "pg_default":
        reader.next()
        reader.next()
    return tuple((each[0], each[1]) for each in found if each is not None and each[1] is not None)


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


def take_table_storage(reader: Reader) -> statements.KeepAsItIs | statements.SetParameters | None:
    """Storage actions of ALTER TABLE; None if there is none."""
    if any(reader.take(*words) for words in _OF_TABLE):
        return statements.KeepAsItIs()
    if reader.take("cluster", "on"):
        reader.name()
        return statements.KeepAsItIs()
    changed: list[Parameter | None] = []
    if not _take_changed(reader, lambda each: changed.append(_read_parameter(each))):
        return None
    kept = tuple(each for each in changed if each is not None)
    return statements.SetParameters(kept) if kept else statements.KeepAsItIs()


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


def _read_parameter(reader: Reader) -> Parameter | None:
    """None for one that has no effect."""
    name = reader.name()
    if name == _OURS and reader.take_symbol("."):
        return _read_kept(reader, f"{name}.{reader.name()}")
    if name == _OF_TOAST and reader.take_symbol("."):
        name = reader.name()
    if name not in _PARAMETERS and not name.startswith(_PREFIXES):
        raise errors.UndefinedObject(kind="storage parameter", name=name)
    if reader.take_symbol("="):
        reader.next()
    return None


def _read_kept(reader: Reader, name: str) -> Parameter:
    values = _KEPT.get(name)
    if values is None:
        raise errors.UndefinedObject(kind="storage parameter", name=name)
    if not reader.take_symbol("="):
        return name, None
    given = reader.next().text.strip("'").lower()
    if given not in values:
        raise errors.InvalidParameterValue(detail=f'invalid value for storage parameter "{name}": {given}')
    return name, values[given]
