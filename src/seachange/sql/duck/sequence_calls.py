"""nextval, currval, lastval and setval in statements: DuckDB functions that call the engine.

A call carries the number of its session, which leads to the transaction of the statement. Its error is kept there,
since DuckDB passes errors on as text only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from typing import Any, Final
from weakref import WeakValueDictionary

import duckdb
import pyarrow as pa
from sqlglot import exp

from seachange import errors
from seachange.sql.port.port import SequencePort, TransactionPort
from seachange.sql.port.session_functions import SessionFunction, make_known, taking
from seachange.sql.text.sequence_names import ARGUMENTS, find_calls, read_sequence

# The parameter that carries the session's number.
SESSION: Final = "session_number"


class Caller:
    """A session: the transaction of its statement, and the error of a call."""

    def __init__(self) -> None:
        self.number = next(_NUMBERS)
        self.port: TransactionPort | None = None
        self.failure: errors.Error | None = None
        _CALLERS[self.number] = self


_NUMBERS = count(1)
_CALLERS: WeakValueDictionary[int, Caller] = WeakValueDictionary()


def find_caller(number: int) -> Caller:
    return _CALLERS[number]


def plain_names(tree: exp.Expr) -> exp.Expr:
    """'s'::regclass is a name, which the functions take."""
    for call in list(find_calls(tree)):
        for argument in list(call.expressions[:1]):
            inner = argument.this if isinstance(argument, exp.Cast) and _casts_to(argument, "oid") else argument
            if isinstance(inner, exp.Cast) and _casts_to(inner, "regclass"):
                argument.replace(inner.this.copy())
    return tree


def _casts_to(cast: exp.Cast, name: str) -> bool:
    return cast.to.sql("postgres").lower() == name


def name_calls(tree: exp.Expr) -> set[str]:
    """Replaces PostgreSQL's functions by ours; returns the parameters that they need."""
    found = list(find_calls(tree))
    for call in found:
        name = call.name.lower()
        if len(call.expressions) not in ARGUMENTS[name]:
            detail = f"function {name} with {len(call.expressions)} arguments does not exist"
            raise errors.UndefinedFunction(detail=detail)
        session = exp.Parameter(this=exp.Var(this=SESSION))
        own = exp.Anonymous(this=_own_name(name, len(call.expressions)), expressions=[session, *call.expressions])
        call.replace(own)
    return {SESSION} if found else set()


def _own_name(name: str, arguments: int) -> str:
    return f"seachange_{name}_{arguments}"


# The signatures of the functions.
_FORMS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("nextval", ("VARCHAR",)),
    ("currval", ("VARCHAR",)),
    ("lastval", ()),
    ("setval", ("VARCHAR", "BIGINT")),
    ("setval", ("VARCHAR", "BIGINT", "BOOLEAN")),
)


def serve(cursor: duckdb.DuckDBPyConnection) -> None:
    """Registers the functions with a DuckDB, unless they already are."""
    make_known(
        cursor,
        (
            SessionFunction(
                _own_name(name, len(given)), _vectorised(_FUNCTIONS[name], len(given)), given, result="BIGINT"
            )
            for name, given in _FORMS
        ),
    )


@cache
def _vectorised(run: Callable[..., list[int | None]], arguments: int) -> Callable[..., pa.Array]:
    def call(session: pa.Array, *given: pa.Array) -> pa.Array:
        caller = _CALLERS[session[0].as_py()]
        try:
            assert caller.port is not None
            values = run(caller.port.sequences, len(session), *(argument.to_pylist() for argument in given))
            return pa.array(values, pa.int64())
        except errors.Error as error:
            caller.failure = error
            raise

    return taking(arguments, call)


def _each(names: list[str | None], *others: list[Any]) -> Iterator[tuple[Any, ...] | None]:
    """The arguments of each row; None where one is NULL."""
    return (None if None in row else row for row in zip(names, *others, strict=True))


def _nextval(port: SequencePort, size: int, names: list[str | None]) -> list[int | None]:
    asked = {name: names.count(name) for name in dict.fromkeys(names) if name is not None}
    values = {name: iter(port.next_values(read_sequence(name), times)) for name, times in asked.items()}
    return [None if name is None else next(values[name]) for name in names]


def _currval(port: SequencePort, size: int, names: list[str | None]) -> list[int | None]:
    return [None if name is None else port.current_value(read_sequence(name)) for name in names]


def _lastval(port: SequencePort, size: int) -> list[int | None]:
    return [port.last_value()] * size


def _setval(port: SequencePort, size: int, *arguments: list[Any]) -> list[int | None]:
    found: list[int | None] = []
    for row in _each(*arguments):
        if row is not None:
            port.set_value(read_sequence(row[0]), row[1], row[2] if len(row) > 2 else True)
        found.append(None if row is None else row[1])
    return found


_FUNCTIONS: Final[dict[str, Callable[..., list[int | None]]]] = {
    "nextval": _nextval,
    "currval": _currval,
    "lastval": _lastval,
    "setval": _setval,
}
