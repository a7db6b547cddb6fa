"""A session's DuckDB cursor: runs generated text with parameters and Arrow relations, and returns Python rows or Arrow
batches."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from weakref import finalize

import duckdb
import pyarrow as pa

from seachange import errors
from seachange.runtime.nonblocking import may_wait
from seachange.sql.duck.sequence_calls import SESSION, Caller, find_caller, serve
from seachange.sql.pgcatalog.calls import SESSION as CATALOG_SESSION
from seachange.sql.pgcatalog.calls import serve_catalog
from seachange.sql.pgcatalog.scan import PortContext
from seachange.sql.port.lazy_rows import LazyRows
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Row
from seachange.sql.translate.duck_errors import translate_error
from seachange.storage.arrow import write_stored
from seachange.storage.duck_functions import know_functions
from seachange.storage.plan import quote
from seachange.values.timezone import UTC
from seachange.values.types import from_duckdb

ZONED = "TIMESTAMP WITH TIME ZONE"
# The types of addresses, and those in which Arrow gets them.
_BITS = {"BIT": "BLOB", "BIT[]": "BLOB[]"}
_MOMENTS = frozenset({"DATE", "TIME", "TIMESTAMP"})
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# Maximum number of cached texts with zoned timestamps among their columns.
_WRAPPED_MAX = 1024
# The message in which DuckDB hides the KeyboardInterrupt that ended a query in the main thread.
_INTERRUPTED = "Query interrupted"


@dataclass(frozen=True, slots=True)
class DuckQuery:
    """Text with the values of its `$name` parameters and the Arrow tables of its relation names; `session_values` are
    parameters whose values the session provides. `shape` distinguishes tables whose files the same text reads: by the
    types of their columns."""

    sql: str
    parameters: Mapping[str, Any]
    relations: Mapping[str, Any]
    session_values: tuple[str, ...] = ()
    shape: Hashable = ()


@dataclass(frozen=True, slots=True)
class DuckRows:
    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class DuckParts:
    """Rows that are still being computed."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    parts: Iterator[list[Row]]


class DuckSession:
    # The session that answers sequence calls; most sessions have none.
    _caller: Caller | None = None
    # DuckDB complains at process exit about an unclosed cursor with functions.
    _has_functions = False
    _port: TransactionPort | None = None
    # Whether rows come in the order of their source.
    _keeps_order = False
    _tell: Callable[[], Mapping[str, Any]] = dict

    def __init__(self, cursor: duckdb.DuckDBPyConnection, session_values: Mapping[str, Any]) -> None:
        self._cursor = cursor
        self._session_values = dict(session_values)
        self._registered: dict[str, Any] = {}
        self._zone = UTC
        self._functions: set[str] = set()
        # By everything that the result types depend on: the text alone does not decide them.
        self._wrapped: dict[Hashable, tuple[tuple[str, ...], tuple[str, ...], str]] = {}
        # 7 / 2 is 3 in PostgreSQL.
        cursor.execute("SET integer_division = true").fetchall()

    def close(self) -> None:
        self._cursor.close()

    def interrupt(self) -> None:
        # A session that is closing runs nothing.
        with suppress(duckdb.ConnectionException):
            self._cursor.interrupt()

    def serve(self, port: TransactionPort | None) -> None:
        """Calls of sequence and catalog functions are answered by that transaction; None: by none any more."""
        self._port = port
        if self._caller is not None:
            self._caller.port = port

    def ask(self, tell: Callable[[], Mapping[str, Any]]) -> None:
        """Sets the source of session values that change with each statement."""
        self._tell = tell

    def set_zone(self, name: str) -> None:
        """The time zone in which texts without an offset are read, and timestamptz is displayed and truncated."""
        if name != self._zone:
            try:
                self._cursor.execute(f"SET TimeZone = '{name}'").fetchall()
            except duckdb.Error:
                raise errors.InvalidSetting(name="timezone", value=name) from None
            self._zone = name

    def rows(self, query: DuckQuery) -> DuckRows:
        with self._running(query):
            names, types = self._begin(query)
            return DuckRows(names, types, _to_datetimes(self._cursor.fetchall(), types))

    @contextmanager
    def parts(self, query: DuckQuery, rows_max: int) -> Iterator[DuckParts]:
        """The same in batches of `rows_max`, computed on demand."""
        with self._running(query):
            names, types = self._begin(query)
            yield DuckParts(names, types, self._fetch(types, rows_max))

    def _fetch(self, types: Sequence[str], rows_max: int) -> Iterator[list[Row]]:
        while rows := self._cursor.fetchmany(rows_max):
            yield _to_datetimes(rows, types)

    def few_rows(self, query: DuckQuery, count_max: int) -> DuckRows | None:
        """The same, or None if there are more than `count_max`: then no more are fetched."""
        with self._running(query):
            names, types = self._begin(query)
            rows = self._cursor.fetchmany(count_max + 1)
            if len(rows) > count_max:
                self._cursor.abort()
                return None
            return DuckRows(names, types, _to_datetimes(rows, types))

    def _begin(self, query: DuckQuery) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Runs the query, so that rows can be fetched; returns the names and types of its columns. DuckDB needs a
        package that we do not use to make zoned datetimes, so they are requested as microseconds; and Python's interval
        type has only a length."""
        key = _typed_key(query)
        wrapped = self._wrapped.get(key)
        if wrapped is None:
            self._execute(query.sql, self._parameters(query))
            names, types = self._description()
            if not any(map(_is_held_otherwise, types)):
                return names, types
            wrapped = names, types, _ask_as_held(query.sql, types)
            self._remember(key, wrapped)
        names, types, sql = wrapped
        self._execute(sql, self._parameters(query))
        return names, types

    @contextmanager
    def batches(self, query: DuckQuery, batch_rows: int) -> Iterator[pa.RecordBatchReader]:
        with self._running(query):
            parameters = self._parameters(query)
            relation = self._cursor.sql(query.sql, params=parameters)
            types = [str(type_) for type_ in relation.types]
            if any(type_ in _BITS for type_ in types):
                relation = self._cursor.sql(_ask_for_bytes(query.sql, relation.columns, types), params=parameters)
            reader = relation.to_arrow_reader(batch_rows)
            try:
                yield reader
            finally:
                # An open reader would keep the cursor busy.
                reader.close()

    def describe(self, query: DuckQuery) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names and types of the columns, without running the query."""
        with self._running(query):
            relation = self._cursor.sql(query.sql, params=self._parameters(query))
            return tuple(relation.columns), tuple(str(type_) for type_ in relation.types)

    @contextmanager
    def _running(self, query: DuckQuery) -> Iterator[None]:
        may_wait()
        if self._caller is not None:
            # A failed call of an earlier query is no error of this one.
            self._caller.failure = None
        try:
            self._register(query.relations)
            if know_functions(self._cursor, query.sql, self._functions) and not self._has_functions:
                self._has_functions = True
                finalize(self, self._cursor.close)
            yield
        except BaseException as error:
            # No result may stay open in any case: it would keep the cursor busy.
            self._cursor.abort()
            if isinstance(error, RuntimeError) and str(error) == _INTERRUPTED:
                raise KeyboardInterrupt from None
            if isinstance(error, OverflowError):
                # Python's dates end at the year 9999.
                raise errors.DatetimeFieldOverflow(type="date", value=str(error)) from error
            if isinstance(error, UnicodeDecodeError):
                # DuckDB's message, which may cut a value in the middle of a character.
                raise translate_error(OSError(error.object.decode(errors="replace"))) from error
            if isinstance(error, duckdb.Error):
                self._raise_failure(query)
                raise translate_error(error) from error
            raise

    def _raise_failure(self, query: DuckQuery) -> None:
        """Of a function or a source of the query, which DuckDB reports as a text."""
        if self._caller is not None and self._caller.failure is not None:
            raise self._caller.failure from None
        for rows in query.relations.values():
            if isinstance(rows, LazyRows) and rows.failure is not None:
                raise rows.failure from None

    def _register(self, relations: Mapping[str, Any]) -> None:
        """Registers the relations of the query and unregisters those of earlier ones, so that no old data is held."""
        for name in self._registered.keys() - relations.keys():
            self._cursor.unregister(name)
            del self._registered[name]
        for name, table in relations.items():
            if self._registered.get(name) is not table:
                # Replaces the relation of that name, which DuckDB then releases.
                self._cursor.register(name, table)
                if isinstance(table, LazyRows) and not self._keeps_order:
                    self._keeps_order = True
                    self._cursor.execute("SET SESSION preserve_insertion_order = true").fetchall()
                self._registered[name] = table

    def _serve_calls(self) -> None:
        """Only where there are calls: most sessions never need it."""
        if self._caller is None:
            self._caller = Caller()
            self._caller.port = self._port
            self._session_values[SESSION] = self._caller.number
            serve(self._cursor)
            # DuckDB complains at process exit about an unclosed cursor with functions.
            finalize(self, self._cursor.close)
        self._caller.failure = None

    def _serve_catalog(self) -> None:
        self._serve_calls()
        assert self._caller is not None
        if CATALOG_SESSION not in self._session_values:
            self._session_values[CATALOG_SESSION] = self._caller.number
            serve_catalog(self._cursor, _answer)

    def _parameters(self, query: DuckQuery) -> dict[str, Any]:
        if not query.session_values:
            return dict(query.parameters)
        if SESSION in query.session_values:
            self._serve_calls()
        if CATALOG_SESSION in query.session_values:
            self._serve_catalog()
        known = {**self._session_values, **self._tell()}
        return {**query.parameters, **{name: known[name] for name in query.session_values}}

    def _execute(self, sql: str, parameters: dict[str, Any]) -> None:
        if parameters:
            self._cursor.execute(sql, parameters)
        else:
            self._cursor.execute(sql)

    def _description(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        columns = self._cursor.description or []
        return tuple(c[0] for c in columns), tuple(str(c[1]) for c in columns)

    def _remember(self, key: Hashable, wrapped: tuple[tuple[str, ...], tuple[str, ...], str]) -> None:
        if len(self._wrapped) >= _WRAPPED_MAX:
            self._wrapped.clear()
        self._wrapped[key] = wrapped


def _typed_key(query: DuckQuery) -> Hashable:
    relations = tuple([(name, getattr(rows, "schema", None)) for name, rows in query.relations.items()])
    return query.sql, query.shape, relations, tuple([_kind(value) for value in query.parameters.values()])


def _kind(value: Any) -> Hashable:
    """What DuckDB infers the type of a parameter from."""
    match value:
        case bool():
            return bool
        case int():
            return int, value.bit_length() // 32
        case Decimal():
            return Decimal, len(value.as_tuple().digits), value.as_tuple().exponent
        case _:
            return type(value).__name__


def _answer(number: int) -> tuple[PortContext, Callable[[errors.Error], None]]:
    """The statement of the session that a call comes from, and the callback that records its error."""
    caller = find_caller(number)
    assert caller.port is not None

    def fail(error: errors.Error) -> None:
        caller.failure = error

    return PortContext(caller.port), fail


def _is_held_otherwise(type_: str) -> bool:
    """Whether rows store such values in another form than DuckDB returns to Python."""
    return ZONED in type_ or "INTERVAL" in type_ or type_ == "UUID[]" or type_ in _BITS


def _ask_as_held(sql: str, types: Sequence[str]) -> str:
    names = [f"c{i}" for i in range(len(types))]
    wanted = [_as_held(n, t) for n, t in zip(names, types, strict=True)]
    return f"SELECT {', '.join(wanted)} FROM ({sql}) AS held({', '.join(names)})"  # noqa: S608 - generated


def _ask_for_bytes(sql: str, names: Sequence[str], types: Sequence[str]) -> str:
    """Arrow gets bits with a byte that counts those that are not used."""
    renamed = [f"c{i}" for i in range(len(types))]
    wanted = [
        f"{f'CAST({column} AS {_BITS[type_]})' if type_ in _BITS else column} AS {quote(name)}"
        for column, name, type_ in zip(renamed, names, types, strict=True)
    ]
    return f"SELECT {', '.join(wanted)} FROM ({sql}) AS held({', '.join(renamed)})"  # noqa: S608 - generated


def _as_held(name: str, type_: str) -> str:
    if type_ == ZONED:
        return f"epoch_us({name})"
    if type_ == f"{ZONED}[]":
        return f"list_transform({name}, lambda moment: epoch_us(moment))"
    found = from_duckdb(type_) if _is_held_otherwise(type_) else None
    if found is not None:
        return write_stored(name, found)
    # Inside a list of lists or a row no conversion can follow.
    return f"CAST({name} AS VARCHAR)" if _is_held_otherwise(type_) else name


def _check_years(rows: list[Row], types: Sequence[str]) -> None:
    """DuckDB gives dates and times that Python cannot hold, such as those after the year 9999, as texts."""
    for place, type_ in enumerate(types):
        name = type_.removesuffix("[]")
        if name not in _MOMENTS:
            continue
        values = [row[place] for row in rows]
        if name != type_:
            values = [element for value in values if value is not None for element in value]
        outside = next((value for value in values if type(value) is str), None)
        if outside is not None:
            raise errors.DatetimeFieldOverflow(type=str(from_duckdb(name)), value=outside)


def _to_datetimes(rows: list[Row], types: Sequence[str]) -> list[Row]:
    _check_years(rows, types)
    made = [_DATETIMES.get(type_) for type_ in types]
    if not any(made):
        return rows
    return [
        tuple(value if make is None or value is None else make(value) for value, make in zip(row, made, strict=True))
        for row in rows
    ]


def _datetime(microseconds: int) -> dt.datetime:
    try:
        return _EPOCH + dt.timedelta(microseconds=microseconds)
    except OverflowError:
        raise errors.DatetimeFieldOverflow(type=ZONED.lower(), value=f"{microseconds} microseconds") from None


def _datetimes(values: list[int | None]) -> list[dt.datetime | None]:
    return [None if value is None else _datetime(value) for value in values]


_DATETIMES: dict[str, Callable[[Any], Any]] = {ZONED: _datetime, f"{ZONED}[]": _datetimes}
