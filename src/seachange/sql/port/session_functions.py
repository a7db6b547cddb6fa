"""Functions of DuckDB's that ask the engine: how one that has them is made of Python's.

The first argument of each is the number of the session that calls it.

**Invariant:** a caller that has asked for functions to be registered finds all of them registered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

_LOCK: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class SessionFunction:
    """`run` takes whole vectors. It must be kept for good: DuckDB lets go of a function when the connection closes that
    made it known, and goes on calling it."""

    name: str
    run: Callable[..., pa.Array]
    arguments: tuple[str, ...]
    result: str


def make_known(cursor: duckdb.DuckDBPyConnection, functions: Iterable[SessionFunction]) -> None:
    """To a DuckDB, unless they are."""
    # A second caller waits until all of them are registered.
    with _LOCK:
        for function in functions:
            try:
                cursor.create_function(
                    function.name,
                    function.run,
                    ["BIGINT", *function.arguments],
                    function.result,
                    type=PythonUDFType.ARROW,
                    null_handling=FunctionNullHandling.SPECIAL,
                    side_effects=True,
                )
            except (duckdb.NotImplementedException, duckdb.CatalogException):
                # Another session was first.
                return


def taking(count: int, run: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
    """Of the session and `count` more: DuckDB looks at how many arguments a function has, and takes *arguments for
    one."""
    forms: tuple[Callable[..., pa.Array], ...] = (
        lambda s: run(s),  # noqa: PLW0108
        lambda s, a: run(s, a),  # noqa: PLW0108
        lambda s, a, b: run(s, a, b),  # noqa: PLW0108
        lambda s, a, b, c: run(s, a, b, c),  # noqa: PLW0108
        lambda s, a, b, c, d: run(s, a, b, c, d),  # noqa: PLW0108
    )
    return forms[count]
