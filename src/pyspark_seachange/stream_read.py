"""Reading a stream: the table at a snapshot, then what commits change, in micro-batches that end between commits.

**Invariant:** offsets are sequence numbers, and what lies between two of them never changes: a query that goes on from
its checkpoint neither loses a change nor repeats one. A feed in the catalog keeps the history from the last offset that
Spark has committed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_seachange.batch_read import ReadPlace, UnitPartition, read_place, read_snapshot, read_unit
from pyspark_seachange.options import SourceOptions, read_options, shown_errors
from seachange import errors
from seachange.engine.api import Connection
from seachange.engine.datasource.change_rows import DESCRIBING, INSERT, ChangeRows, survey
from seachange.engine.datasource.table_units import find_column
from seachange.engine.feed.feed_lag import find_feed
from seachange.engine.replica.epoch import EpochState
from seachange.model.ids import Seq
from seachange.model.schema.descriptor import Column, Table
from seachange.model.statements import AdvanceFeed, CreateFeed
from seachange.sql.parsing.call_statement import parse_relation

_SNAPSHOT, _LATEST = "snapshot", "latest"
# So long a reader waits for a commit before it says that there is none.
_WAIT_SECONDS = 0.05
# An offset goes past commits that do not concern the table when there are so many of them, to let history go.
_IDLE_COMMITS_MAX = 10_000


class OnChange(StrEnum):
    """What a stream does at a schema change."""

    PIN = "pin"
    STOP = "stop"
    FOLLOW = "follow"


@dataclass(frozen=True, slots=True)
class Offset:
    """Everything up to commit `seq` was read; `is_begun`: the snapshot at it, too. `table` is the id of the table."""

    seq: Seq
    is_begun: bool
    feed: str
    table: int

    def to_json(self) -> dict[str, Any]:
        return {"seq": self.seq, "begun": self.is_begun, "feed": self.feed, "table": self.table}


def _offset(found: Mapping[str, Any]) -> Offset:
    return Offset(Seq(found["seq"]), bool(found["begun"]), str(found["feed"]), int(found["table"]))


@dataclass(frozen=True)
class ChangesPartition(InputPartition):
    """Changes as an Arrow stream."""

    rows: bytes


@dataclass(frozen=True)
class SnapshotPartition(InputPartition):
    """Rows of the snapshot, as inserts."""

    unit: UnitPartition
    seq: int


class ChangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark makes several; only the one whose offsets it asks for opens the database."""

    def __init__(self, given: Mapping[str, str], schema: StructType, at: int | None) -> None:
        with shown_errors():
            self._options = read_options(given)
            self._on_change = _on_change(self._options)
            self._rows_max = self._options.count("maxrowsperbatch")
            self._commits_max = self._options.count("maxcommitsperbatch")
        self._schema = schema
        self._loaded = at
        self._target: Seq | None = None
        self._source: _Source | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_source": None}

    def _open(self) -> _Source:
        if self._source is None:
            self._source = _Source(self._options, self._schema, self._loaded)
        return self._source

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - PySpark's name
        return ReadMaxRows(self._rows_max) if self._rows_max else ReadAllAvailable()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        with shown_errors():
            return self._open().begin().to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - PySpark's name
        with shown_errors():
            self._target = self._open().head()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        with shown_errors():
            source, begin = self._open(), _offset(start)
            source.check(begin)
            if not begin.is_begun:
                return replace(begin, is_begun=True).to_json()
            rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
            return replace(begin, seq=self._reach(source, begin.seq, rows_max)).to_json()

    def _reach(self, source: _Source, since: Seq, rows_max: int | None) -> Seq:
        head = source.head() if self._target is None else self._target
        if head <= since:
            source.wait()
            return since
        end, at = since, since
        while True:
            found = source.survey(at, head, rows_max, self._commits_max)
            if found.end is not None:
                end = found.end
            if found.changed is None or self._stops_at(source, found.changed):
                break
            # A change that does not stop the stream: a batch may end there, and what follows is in the next one.
            end = at = found.changed
            if rows_max or self._commits_max:
                break
        if end > since:
            return end
        if found.changed is not None:
            raise errors.StreamSchemaChanged(table=source.name, seq=found.changed)
        if head - since >= _IDLE_COMMITS_MAX:
            return head
        source.wait()
        return since

    def _stops_at(self, source: _Source, changed: Seq) -> bool:
        if source.is_gone_at(changed):
            return True
        match self._on_change:
            case OnChange.PIN:
                return False
            case OnChange.STOP:
                return True
            case OnChange.FOLLOW:
                return changed > source.loaded

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with shown_errors():
            source, begin, last = self._open(), _offset(start), _offset(end)
            found: list[InputPartition] = []
            if not begin.is_begun and last.is_begun:
                found += source.snapshot(begin.seq)
            if last.seq > begin.seq:
                found += source.changes(begin.seq, last.seq)
            return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(self._schema, timezone="UTC")
        with shown_errors():
            if isinstance(partition, SnapshotPartition):
                yield from _as_inserts(partition, schema)
            elif isinstance(partition, ChangesPartition):
                with pa.ipc.open_stream(partition.rows) as rows:
                    for batch in rows:
                        arrays = [c.cast(t) for c, t in zip(batch.columns, schema.types, strict=True)]
                        yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def commit(self, end: dict[str, Any]) -> None:
        with shown_errors():
            self._open().acknowledge(_offset(end))

    def stop(self) -> None:
        if self._source is not None:
            self._source.close()


def _on_change(options: SourceOptions) -> OnChange:
    try:
        return OnChange(options.text("schemachanges").lower() or "pin")
    except ValueError:
        raise errors.InvalidParameterValue(
            detail=f"option schemaChanges is none of {', '.join(OnChange)}: {options.text('schemachanges')}"
        ) from None


def _as_inserts(partition: SnapshotPartition, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    described = [name for name, _ in DESCRIBING]
    plain = pa.schema([each for each in schema if each.name not in described])
    constants = {described[0]: INSERT, described[1]: partition.seq, described[2]: 0, described[3]: None}
    for batch in read_unit(partition.unit, plain):
        arrays = {name: batch.column(name) for name in plain.names}
        arrays |= {
            each.name: pa.array([constants[each.name]] * batch.num_rows, each.type)
            for each in schema
            if each.name in constants
        }
        yield pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


class _Source:
    """The database, opened by the process that plans the stream, and the shape of its rows."""

    def __init__(self, options: SourceOptions, schema: StructType, loaded: int | None) -> None:
        self._options = options
        self._db: Connection = options.connect()
        self._pause = threading.Event()
        found = read_snapshot(self._db, replace(options, given={**options.given, "as_of": ""}), loaded)
        self.loaded = found.at
        self._table: Table = found.table
        self.name = found.table.full_name
        described = {name for name, _ in DESCRIBING}
        self._names = [name for name in schema.fieldNames() if name not in described]
        if set(schema.fieldNames()) & described != described:
            raise errors.InvalidParameterValue(
                detail='a stream has columns that say what has changed: add .option("changes", "true")'
            )
        self._columns: tuple[Column, ...] = tuple(
            replace(column, name=name) for name, column in zip(self._names, found.choose(self._names), strict=True)
        )
        self._order = schema.fieldNames()

    def close(self) -> None:
        self._db.close()

    def head(self) -> Seq:
        return self._db.session.node.in_epoch(lambda epoch: epoch.catch_up())

    def wait(self) -> None:
        self._pause.wait(_WAIT_SECONDS)

    # Positions.

    def begin(self) -> Offset:
        """Where a new stream starts, with the feed that keeps what follows."""
        text = self._options.text("startingposition") or _SNAPSHOT
        node = self._db.session.node
        name = self._options.text("feed") or f"stream_{node.parts.entropy.token(8).hex()}"
        position = "" if text in (_SNAPSHOT, _LATEST) else text
        relation = parse_relation(self._options.table)
        with suppress(errors.DuplicateObject):
            # A query that was started before, and ended before its first offset was noted.
            self._db.session.change_feed(CreateFeed(name, (relation,), position))
        record = find_feed(node.parts.catalog, self._options.database, name)
        if record is None or record.tables != (self._table.id,):
            raise errors.DuplicateObject(kind="feed", name=name)
        return Offset(record.position, text != _SNAPSHOT, name, self._table.id)

    def check(self, offset: Offset) -> None:
        if offset.table != self._table.id:
            raise errors.StreamTableReplaced(table=self.name)
        record = find_feed(self._db.session.node.parts.catalog, self._options.database, offset.feed)
        if record is None:
            raise errors.UndefinedObject(kind="feed", name=offset.feed)
        if record.ended:
            raise errors.FeedEnded(name=offset.feed, reason=record.ended)

    def acknowledge(self, offset: Offset) -> None:
        self._db.session.change_feed(AdvanceFeed(offset.feed, str(offset.seq)))

    # Rows.

    def survey(self, since: Seq, until: Seq, rows_max: int | None, commits_max: int | None) -> Any:
        node = self._db.session.node
        return node.in_epoch(lambda epoch: survey(epoch, self._table.id, since, until, rows_max, commits_max))

    def is_gone_at(self, seq: Seq) -> bool:
        node = self._db.session.node
        return node.in_epoch(lambda epoch: self._table.id not in epoch.schema(seq).by_id)

    def snapshot(self, at: Seq) -> list[InputPartition]:
        found = read_snapshot(self._db, self._options, at)
        place: ReadPlace = read_place(self._db)
        visible = {column.id: column for column in found.columns}
        columns = tuple(visible.get(c.id) or find_column(found.table, c.name) for c in self._columns)
        units = (replace(unit, columns=columns) for unit in found.units)
        return [SnapshotPartition(UnitPartition(unit, place), at) for unit in units]

    def changes(self, since: Seq, until: Seq) -> list[InputPartition]:
        session = self._db.session
        rows = ChangeRows(session, self._table.id, self._columns)

        def read(epoch: EpochState) -> list[InputPartition]:
            return [ChangesPartition(_packed(each.select(self._order))) for each in rows.read(epoch, since, until)]

        return session.node.in_epoch(read)


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(rows)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
