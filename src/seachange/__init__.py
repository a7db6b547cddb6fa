"""Seachange: a lakehouse SQL engine whose tables change shape while everybody keeps reading and writing them.

>>> import seachange
>>> db = seachange.connect(data="shop")  # doctest: +SKIP
"""

from importlib.metadata import version

from seachange.engine.api import Connection, Cursor, apilevel, connect, paramstyle, threadsafety
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
from seachange.model.interval import Interval

__version__ = version("seachange")

__all__ = [
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Interval",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
