"""The Python interface: DB-API 2.0 (PEP 249) over an embedded session."""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

import pyarrow as pa

from seachange import errors
from seachange.engine.database.opening import acquire_node, release_node
from seachange.engine.dataframes.dataframe_read import DataFrame, SparkSession, spark_table
from seachange.engine.dataframes.dataframe_write import insert_dataframe
from seachange.engine.datasource.frame_merge import merge_dataframe
from seachange.engine.node.node import Node
from seachange.engine.replica.registry import SnapshotPins
from seachange.engine.result_arrow import arrow_table, to_pandas, to_polars
from seachange.engine.session.copy_file import CopyFile, reading, writing
from seachange.engine.session.session import Session
from seachange.engine.session.session_state import TransactionStatus
from seachange.engine.transaction.transaction import Transaction
from seachange.runtime.ctrl_c import CtrlCHeld
from seachange.runtime.location import find_location
from seachange.runtime.memory_folder import MemoryFolder
from seachange.sql.copy.arrow_load import ArrowSource, load_arrow
from seachange.sql.copy.copy import CopyIn
from seachange.sql.copy.copy_text import copy_format
from seachange.sql.port.result import Result, Row
from seachange.sql.text.placeholders import Parameters, number_parameters

# Closed when the interpreter exits, so that a program that forgets to close leaves no epoch behind.
_open_connections: WeakSet[Connection] = WeakSet()

# The address of a database that is deleted with its connection.
MEMORY = ":memory:"

Description = list[tuple[str, int, None, None, int | None, int | None, None]]


def connect(
    data: str | PathLike[str],
    catalog: str | None = None,
    user: str = "seachange",
    database: str = "seachange",
    autocommit: bool = False,
    local: str | PathLike[str] | None = None,
) -> Connection:
    """Opens the database in the folder or object store `data`, creating it if there is none; ":memory:" is a new one
    that is deleted when the connection is closed. `catalog` is a URL: sqlite:///... (the default, inside the folder)
    or postgresql://... `local` is a folder of this machine for the temporary files and the cache of an object
    store."""
    with CtrlCHeld(_do_nothing):
        return _connect(data, catalog, user, database, autocommit, local)


def _do_nothing() -> None:
    pass


def _connect(
    data: str | PathLike[str],
    catalog: str | None,
    user: str,
    database: str,
    autocommit: bool,
    local: str | PathLike[str] | None,
) -> Connection:
    memory = _memory_folder(catalog, local) if data == MEMORY else None
    try:
        node = acquire_node(find_location(data if memory is None else memory.data, local), catalog)
        try:
            connection = Connection(node, user, database, autocommit, memory)
        except BaseException:
            release_node(node)
            raise
    except BaseException:
        if memory is not None:
            memory.remove()
        raise
    try:
        connection.session.check_login()
    except BaseException:
        connection.close()
        raise
    return connection


def _memory_folder(catalog: str | None, local: str | PathLike[str] | None) -> MemoryFolder:
    if catalog is not None or local is not None:
        raise errors.DataFolderProblem(path=MEMORY, detail="it has neither a catalog nor a folder of its own")
    return MemoryFolder()


class Connection:
    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(
        self, node: Node, user: str, database: str, autocommit: bool, memory: MemoryFolder | None = None
    ) -> None:
        self._node = node
        self._memory = memory
        self._session = Session(node, user, database)
        self._autocommit = autocommit
        self._closed = False
        # Snapshots of DataFrames that were created outside of a transaction.
        self._holds = SnapshotPins()
        _open_connections.add(self)

    @property
    def session(self) -> Session:
        if self._closed:
            raise errors.NodeClosed()
        return self._session

    @property
    def autocommit(self) -> bool:
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if self.session.status is not TransactionStatus.IDLE:
            raise errors.ActiveTransaction(detail="autocommit cannot be changed within a transaction")
        self._autocommit = value

    @property
    def notices(self) -> list[str]:
        """Messages of earlier statements; the caller may clear the list."""
        return self._session.notices

    def cursor(self) -> Cursor:
        self.session  # noqa: B018 - a closed connection gives no cursor
        return Cursor(self)

    def execute(self, operation: str, parameters: Parameters = None) -> Cursor:
        return self.cursor().execute(operation, parameters)

    def commit(self) -> None:
        with self.held():
            self.session.commit()

    def rollback(self) -> None:
        with self.held():
            self.session.rollback()

    def held(self) -> CtrlCHeld:
        """Around all work of the session, apart from Spark's, which handles Ctrl-C itself."""
        return CtrlCHeld(self._session.interrupt)

    def close(self) -> None:
        """Rolls back the open transaction. Closing twice is not an error."""
        if self._closed:
            return
        self._closed = True
        _open_connections.discard(self)
        with self.held():
            try:
                self._holds.release()
                self._session.close()
            finally:
                release_node(self._node)
                if self._memory is not None:
                    self._memory.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if not self._closed:
                if kind is None:
                    self.commit()
                else:
                    self.rollback()
        finally:
            self.close()

    def load_arrow(self, table: str, source: ArrowSource) -> int:
        """Inserts the rows of an Arrow table or reader, columns by name, in bounded memory; returns their number."""
        schema, _, name = table.rpartition(".")
        self.start()

        def load(transaction: Transaction) -> int:
            port = self.session.port(transaction)
            return load_arrow(port, port.names.table(schema or None, name), source)

        with self.held():
            return self.session.in_transaction(load)

    def spark_table(self, table: str, spark: SparkSession) -> DataFrame:
        """A table as a Spark DataFrame, at the snapshot of the transaction. It is valid until the transaction ends, or
        until the connection is closed if there is none."""
        schema, _, name = table.rpartition(".")
        self.start()
        own = self._holds if self.session.status is TransactionStatus.IDLE else None

        def read(transaction: Transaction) -> DataFrame:
            target = transaction.schema.table(schema or None, name)
            transaction.state.rights.check_access(target, "SELECT")
            return spark_table(transaction, target, spark, own if own is not None else transaction.pins)

        return self.session.in_transaction(read)

    def insert_dataframe(self, table: str, frame: DataFrame) -> int:
        """Inserts the rows of a Spark DataFrame, columns by name, written by Spark's executors; atomically, visible at
        commit. Returns their number."""
        schema, _, name = table.rpartition(".")
        self.start()
        settings = self.session.settings.for_jobs()

        def insert(transaction: Transaction) -> int:
            target = transaction.schema.table(schema or None, name)
            transaction.state.rights.check_access(target, "INSERT")
            return insert_dataframe(transaction, target, frame, settings)

        return self.session.in_transaction(insert, repeatable=True)

    def merge_dataframe(self, table: str, frame: DataFrame, keys: Sequence[str]) -> int:
        """Updates the given columns of rows with the same key, and inserts the others; atomically, visible at commit.
        `keys` are the columns of the primary key or of a unique index. Returns the number of rows."""
        schema, _, name = table.rpartition(".")
        self.start()
        return merge_dataframe(
            self.session, lambda transaction: transaction.schema.table(schema or None, name), frame, keys
        )

    def copy_from(
        self,
        table: str,
        file: CopyFile,
        format: str = "csv",  # noqa: A002 - the name of PostgreSQL's option
        header: bool = False,
        delimiter: str | None = None,
        null: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> int:
        """COPY table FROM file, a path or an open text file, atomically. Returns the number of rows."""
        options = copy_format(format, header, delimiter, null)
        schema, _, name = table.rpartition(".")
        self.start()
        with self.held(), reading(file) as source:

            def copy(transaction: Transaction) -> int:
                port = self.session.port(transaction)
                return CopyIn(port, port.names.table(schema or None, name), columns, options).run(source)

            return self.session.in_transaction(copy)

    def copy_to(
        self,
        query: str,
        file: CopyFile,
        format: str = "csv",  # noqa: A002 - the name of PostgreSQL's option
        header: bool = False,
        delimiter: str | None = None,
        null: str | None = None,
    ) -> int:
        """COPY (query) TO file, a path or an open text file. A path is created atomically."""
        options = copy_format(format, header, delimiter, null)
        self.start()
        with self.held(), writing(file) as sink:
            return self.session.copy_out(query, sink, options)

    def compact(self, table: str) -> None:
        """Compacts the recent changes of a table into its base segments now."""
        schema, _, name = table.rpartition(".")
        with self.held():
            target = self.session.in_transaction(lambda transaction: transaction.schema.table(schema or None, name))
            self._node.compact(target)

    def node_statistics(self) -> dict[str, int]:
        self.session  # noqa: B018 - a closed connection has no node
        return self._node.statistics()

    def start(self) -> None:
        """Begins the transaction that PEP 249 requires around statements."""
        if not self._autocommit and self.session.status is TransactionStatus.IDLE:
            self.session.begin()


@atexit.register
def _close_connections() -> None:
    for connection in list(_open_connections):
        connection.close()


class Cursor:
    """All rows of a statement are available when `execute` returns."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._result: Result | None = None
        self._position = 0
        self._closed = False
        self.rowcount = -1

    def execute(self, operation: str, parameters: Parameters = None) -> Self:
        session = self._open()
        self._result = None
        self.rowcount = -1
        with self.connection.held():
            self.connection.start()
            if parameters is None:
                result = session.execute(operation)
            else:
                numbered = number_parameters(operation)
                result = session.execute(numbered.text, numbered.values(parameters))
        self._take(result)
        return self

    def executemany(self, operation: str, parameters: Iterable[Parameters]) -> Self:
        """Runs all of them in one transaction, also with autocommit."""
        session = self._open()
        own = session.status is TransactionStatus.IDLE and self.connection.autocommit
        if own:
            session.begin()
        total = 0
        try:
            for values in parameters:
                self.execute(operation, values if values is not None else ())
                total += max(self.rowcount, 0)
        except BaseException:
            if own:
                self.connection.rollback()
            raise
        if own:
            self.connection.commit()
        self._result = None
        self.rowcount = total
        return self

    def _take(self, result: Result) -> None:
        self._result = result if result.columns is not None else None
        self._position = 0
        self.rowcount = result.count

    @property
    def description(self) -> Description | None:
        if self._result is None or self._result.columns is None:
            return None
        return [
            (c.name, c.oid, None, None, c.precision or None, c.scale if c.precision else None, None)
            for c in self._result.columns
        ]

    def fetchone(self) -> Row | None:
        rows = self._rows()
        if self._position >= len(rows):
            return None
        self._position += 1
        return rows[self._position - 1]

    def fetchmany(self, size: int | None = None) -> list[Row]:
        rows = self._rows()
        start = self._position
        self._position = min(len(rows), start + (self.arraysize if size is None else size))
        return list(rows[start : self._position])

    def fetchall(self) -> list[Row]:
        rows = self._rows()
        start, self._position = self._position, len(rows)
        return list(rows[start:])

    def fetch_arrow(self) -> pa.Table:
        """The remaining rows as an Arrow table."""
        rows = self.fetchall()
        zone = self.connection.session.settings.typed.timezone
        return arrow_table(replace(self._found(), rows=rows), zone)

    def fetch_df(self) -> Any:
        """The remaining rows as a pandas DataFrame; needs pandas."""
        return to_pandas(self.fetch_arrow())

    def fetch_polars(self) -> Any:
        """The remaining rows as a polars DataFrame; needs polars."""
        return to_polars(self.fetch_arrow())

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def close(self) -> None:
        self._closed = True
        self._result = None

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Required by PEP 249; does nothing."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Required by PEP 249; does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> Session:
        if self._closed:
            raise errors.CursorClosed()
        return self.connection.session

    def _rows(self) -> Sequence[Row]:
        return self._found().rows

    def _found(self) -> Result:
        self._open()
        if self._result is None:
            raise errors.NoResult()
        return self._result
