"""Seachange: a lakehouse SQL engine whose tables change shape while everybody keeps reading and writing them.

>>> import seachange
>>> db = seachange.connect(data="shop")  # doctest: +SKIP

The engine, with DuckDB and Arrow, is loaded when `connect` is first looked up, so that `import seachange` and
`seachange --help` do not wait for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from seachange.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004 - the name is PEP 249's
)

if TYPE_CHECKING:
    from seachange.engine.api import Connection, Cursor, connect
    from seachange.engine.dbapi import (
        BINARY,
        DATETIME,
        NUMBER,
        ROWID,
        STRING,
        Binary,
        Date,
        DateFromTicks,
        Time,
        TimeFromTicks,
        Timestamp,
        TimestampFromTicks,
    )
    from seachange.values.interval import Interval

    __version__: str

# PEP 249's constants: threads may share the module, but not connections.
apilevel = "2.0"
threadsafety = 1
paramstyle = "pyformat"

# The module of each name that is loaded when it is first used.
_MODULES = {
    "seachange.engine.api": ("Connection", "Cursor", "connect"),
    "seachange.engine.dbapi": (
        "BINARY",
        "DATETIME",
        "NUMBER",
        "ROWID",
        "STRING",
        "Binary",
        "Date",
        "DateFromTicks",
        "Time",
        "TimeFromTicks",
        "Timestamp",
        "TimestampFromTicks",
    ),
    "seachange.values.interval": ("Interval",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Interval",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]


def __getattr__(name: str) -> Any:
    value: Any
    if name == "__version__":
        value = import_module("importlib.metadata").version("seachange")
    elif module := _MODULE_OF.get(name):
        value = getattr(import_module(module), name)
    else:
        raise AttributeError(f"module 'seachange' has no attribute {name!r}")
    # The next look-up finds the value without this function.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
