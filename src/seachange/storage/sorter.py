"""The sorts of one bulk write, on a DuckDB instance that statements do not share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

import duckdb
import pyarrow as pa

from seachange.model.ids import ColumnId
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column
from seachange.model.segments import Segment
from seachange.runtime.filesystem import FileSystem
from seachange.storage.arrow import column_name
from seachange.storage.bulk import Distinct, guarded, sort_into_segments, sort_query_into_segments
from seachange.storage.duck_functions import know_functions
from seachange.storage.keys import Key
from seachange.storage.plan import quote
from seachange.storage.segment_writer import Reserve, SegmentShape
from seachange.storage.spill import Connect, SortLimits, sorting, sorting_connection


class Sorter:
    def __init__(
        self,
        files: FileSystem,
        spill: Path,
        reserve: Reserve,
        limits: SortLimits = SortLimits(),  # noqa: B008 - a value
        connect: Connect = sorting_connection,
    ) -> None:
        self._files = files
        self._spill = spill
        self._limits = limits
        self._connect = connect
        self._reserve = reserve
        self._stack = ExitStack()
        self._steps = 0

    def __enter__(self) -> Sorter:
        self._duck = self._stack.enter_context(self._connect(self._spill, self._limits))
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        # Passes the exception on, so that the owner of the instance can discard it.
        self._stack.__exit__(kind, value, tb)

    def interrupt(self) -> None:
        """Interrupts the running query; may be called from another thread."""
        self._duck.interrupt()

    def steps_done(self) -> float:
        """The number of finished queries, plus the fraction of the running one; may be called from another thread."""
        try:
            percent = self._duck.query_progress()
        except duckdb.Error:
            percent = 0.0
        return self._steps + min(max(percent, 0.0), 99.0) / 100

    @contextmanager
    def _step(self) -> Iterator[None]:
        yield
        self._steps += 1

    def sort_stream(
        self, rows: pa.RecordBatchReader, shape: SegmentShape, unique: Distinct | None = None
    ) -> list[Segment]:
        with self._step():
            return sort_into_segments(self._duck, rows, shape, self._files, self._reserve, unique)

    def sort_scan(self, scan: Scan, shape: SegmentShape) -> list[Segment]:
        """Sorts and writes rows that are known to be distinct, such as those of a snapshot."""
        if not scan.relations:
            return self.sort_query(scan.sql, scan.parameters, shape)
        # Sorted directly from the anti-joins, six million rows of eight columns exceeded DuckDB's 512 MB; from a table
        # it can spill.
        self.keep("unsorted", scan.sql, scan)
        try:
            return self.sort_query("SELECT * FROM unsorted", {}, shape)
        finally:
            self.drop("unsorted")

    def sort_query(
        self, sql: str, parameters: Mapping[str, object], shape: SegmentShape, unique: Distinct | None = None
    ) -> list[Segment]:
        know_functions(self._duck, sql)
        with self._step():
            return sort_query_into_segments(self._duck, sql, parameters, shape, self._files, self._reserve, unique)

    def hold(self, name: str, rows: pa.RecordBatchReader) -> int:
        """Stores a stream as a table for several queries, spilling if necessary; returns the number of rows."""
        with guarded(rows) as source, sorting():
            self._duck.register("stream", source)
            self._duck.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM stream")
            self._duck.unregister("stream")
        (count,) = self._duck.execute(f"SELECT count(*) FROM {name}").fetchall()[0]
        return int(count)

    def keep(self, name: str, sql: str, scan: Scan | None = None) -> None:
        """Stores the rows of a query, which may read a scan, as a table."""
        if scan is not None:
            self._register(scan)
        know_functions(self._duck, sql)
        with sorting(), self._step():
            self._duck.execute(
                f"CREATE TEMP TABLE {name} AS {sql}", dict(scan.parameters) if scan is not None else None
            )

    def keep_if_possible(self, name: str, sql: str) -> bool:
        """The same, unless the query fails for the values that it reads: then there is no table."""
        try:
            self.keep(name, sql)
        except (duckdb.DataError, duckdb.InvalidInputException):
            return False
        return True

    def append(self, name: str, rows: pa.Table) -> None:
        """Adds rows to a table, which the first ones create."""
        with sorting():
            self._duck.register("rows", rows)
            is_new = name not in {found for (found,) in self._duck.execute("SHOW TABLES").fetchall()}
            verb = f"CREATE TEMP TABLE {name} AS" if is_new else f"INSERT INTO {name}"
            self._duck.execute(f"{verb} SELECT * FROM rows")
            self._duck.unregister("rows")

    def arrow(self, sql: str, scan: Scan | None = None) -> pa.Table:
        """The rows of a query, which may read a scan."""
        if scan is not None:
            self._register(scan)
        know_functions(self._duck, sql)
        with sorting(), self._step():
            return self._duck.sql(sql, params=dict(scan.parameters) if scan is not None else None).to_arrow_table()

    def drop(self, name: str) -> None:
        self._duck.execute(f"DROP TABLE {name}")

    def ask(self, sql: str, scan: Scan | None = None) -> list[Key]:
        """The few rows of a query, which may read a scan."""
        if scan is not None:
            self._register(scan)
        know_functions(self._duck, sql)
        with sorting(), self._step():
            return self._duck.execute(sql, dict(scan.parameters) if scan is not None else None).fetchall()

    def fetch(self, sql: str, scan: Scan | None = None) -> list[Key]:
        """The same for values of any type: DuckDB returns timestamps with time zone only to Arrow."""
        found = self.arrow(sql, scan)
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def stream(self, sql: str, scan: Scan, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Streams the rows of a query that reads a scan."""
        self._register(scan)
        know_functions(self._duck, sql)
        parameters = dict(scan.parameters)
        with sorting(), self._step():
            reader = self._duck.sql(sql, params=parameters).to_arrow_reader(batch_rows)
            try:
                yield from reader
            except OSError as problem:
                # Arrow keeps only the text of DuckDB's exceptions; running the query again raises the original one.
                if str(problem).startswith("INTERRUPT"):
                    raise
                self._duck.execute(f"SELECT max(hash(COLUMNS(*))) FROM ({sql})", parameters)
                raise

    def first_common(
        self, existing: Scan, files: Sequence[str], key: Sequence[Column], nulls_distinct: bool
    ) -> Key | None:
        """A key that both the scan and the files have; the scan's columns are the key's."""
        names = ", ".join(f"f.{column_name(c.id)}" for c in key)
        equals = "=" if nulls_distinct else "IS NOT DISTINCT FROM"
        same = " AND ".join(f"f.{column_name(c.id)} {equals} e.{quote(c.name)}" for c in key)
        sql = f"SELECT {names} FROM read_parquet($new_files) f JOIN ({existing.sql}) e ON {same} LIMIT 1"
        self._register(existing)
        with sorting():
            row = self._duck.execute(sql, {**existing.parameters, "new_files": list(files)}).fetchone()
        return None if row is None else tuple(row)

    def first_repeated(self, files: Sequence[str], key: Sequence[ColumnId], nulls_distinct: bool) -> Key | None:
        """A key that occurs more than once in the files."""
        names = ", ".join(map(column_name, key))
        present = " AND ".join(f"{column_name(c)} IS NOT NULL" for c in key) if nulls_distinct else "true"
        sql = f"SELECT {names} FROM read_parquet($files) WHERE {present} GROUP BY ALL HAVING count(*) > 1 LIMIT 1"
        with sorting():
            row = self._duck.execute(sql, {"files": list(files)}).fetchone() if files else None
        return None if row is None else tuple(row)

    def _register(self, scan: Scan) -> None:
        for name, relation in scan.relations.items():
            self._duck.register(name, relation)
