"""The changes of a table as rows of a DataFrame: the columns of one shape, and four that describe the change.

**Invariant:** the rows of a span of the log are the same whenever they are read, so a batch that Spark repeats is the
one that it has seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from seachange.engine.feed.change_feed import ChangeFeed, FeedSpan
from seachange.engine.feed.feed_shape import schema_event
from seachange.engine.replica.epoch import EpochState
from seachange.engine.session.session import Session
from seachange.model.ids import Seq, TableId
from seachange.model.log import LogEntry
from seachange.model.schema.descriptor import Column, Table
from seachange.model.segments import SegmentKind
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.storage.frame_rows import document_value, frame_value
from seachange.storage.plan import quote
from seachange.storage.projection import literal
from seachange.values.canonical import parse_canonical

CHANGE, SEQ, ORDINAL, MOMENT = "_change", "_seq", "_ordinal", "_committed_at"
# The columns that describe a change, and their types in Spark.
DESCRIBING = ((CHANGE, "string"), (SEQ, "bigint"), (ORDINAL, "bigint"), (MOMENT, "timestamp"))
INSERT = "insert"
# One operation gives the row before, the row after, or both.
_ROWS = (
    ("insert", "insert", "after"),
    ("delete", "delete", "before"),
    ("update", "update_before", "before"),
    ("update", "update_after", "after"),
)
_SLICE = 1_000
_BATCH_ROWS = 50_000
_EVENT = "schema"


@dataclass(frozen=True, slots=True)
class ChangeSpan:
    """What the log has after a position: `end` is the last commit that concerns the table, None if there is none;
    `changed` the first that changes its schema as clients see it."""

    end: Seq | None
    changed: Seq | None


def survey(
    epoch: EpochState, table_id: TableId, since: Seq, until: Seq, rows_max: int | None, commits_max: int | None
) -> ChangeSpan:
    """At least one commit, and no more rows and commits than these."""
    schema = epoch.schema(since)
    table, objects = schema.by_id.get(table_id), dict(schema.objects)
    end: Seq | None = None
    rows = commits = 0
    for entry in _entries(epoch, since, until):
        published = next((d for d in entry.descriptors if d.id == table_id), None)
        if published is not None:
            body = published.body
            assert body is None or isinstance(body, Table)
            if schema_event(table, body, objects) is not None:
                return ChangeSpan(end, entry.seq)
            table = body
        count = _rows_of(entry, table)
        if not count:
            continue
        rows, commits = rows + count, commits + 1
        if end is not None and ((rows_max and rows > rows_max) or (commits_max and commits > commits_max)):
            break
        end = entry.seq
    return ChangeSpan(end, None)


def _entries(epoch: EpochState, since: Seq, until: Seq) -> Iterator[LogEntry]:
    for after in range(since, until, _SLICE):
        yield from epoch.catalog.follow(epoch.epoch, Seq(after), Seq(min(after + _SLICE, until)))


def _rows_of(entry: LogEntry, table: Table | None) -> int:
    if table is None or table.primary.id not in entry.touched:
        return 0
    id_ = table.primary.id
    inline = sum(batch.rows for batch in entry.batches if batch.index_id == id_)
    filed = (s for s in entry.segments if s.index_id == id_ and s.kind in (SegmentKind.DATA, SegmentKind.TOMBSTONES))
    return max(inline + sum(segment.rows for segment in filed), 1)


class ChangeRows:
    """`columns` are those of the shape."""

    def __init__(self, session: Session, table_id: TableId, columns: Sequence[Column]) -> None:
        self._parts = session.node.parts
        self._interrupts = session.client.interrupts
        self._table_id = table_id
        self._columns = tuple(columns)

    def read(self, epoch: EpochState, since: Seq, until: Seq) -> Iterator[pa.Table]:
        """In commit order, in pieces."""
        feed = ChangeFeed(self._parts, epoch, FeedSpan((self._table_id,), since, until))
        feed.check_kept()
        table = epoch.schema(since).by_id.get(self._table_id)
        with closing(DuckSession(self._parts.duck.cursor(), {})) as duck:
            for batch in feed.batches(self._interrupts):
                for part in _between_events(batch):
                    if part.column("op")[0].as_py() == _EVENT:
                        table = epoch.schema(Seq(part.column("seq")[0].as_py())).by_id.get(self._table_id)
                    else:
                        yield from self._typed(part, table, duck)

    def _typed(self, changes: pa.RecordBatch, table: Table | None, duck: DuckSession) -> Iterator[pa.Table]:
        values = ", ".join(f"{self._value(column, table)} AS {quote(column.name)}" for column in self._columns)
        described = f"change AS {CHANGE}, seq AS {SEQ}, ordinal AS {ORDINAL}, committed_at AS {MOMENT}"
        rows = " UNION ALL ".join(
            f"SELECT '{change}' AS change, seq, ordinal, committed_at, CAST({side} AS JSON) AS doc "  # noqa: S608 - constants
            f"FROM changed_rows WHERE op = '{op}'"
            for op, change, side in _ROWS
        )
        names = f"{values}, {described}" if values else described
        sql = f"SELECT {names} FROM ({rows}) ORDER BY seq, ordinal, change DESC"  # noqa: S608 - quoted
        query = DuckQuery(sql, {}, {"changed_rows": pa.Table.from_batches([changes])})
        with duck.batches(query, _BATCH_ROWS) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])

    def _value(self, column: Column, table: Table | None) -> str:
        """From the column of the commit's version with the same id, or else of the same name, which has taken its place
        or had it before. A column that has come later has its frozen value; one that has gone has none."""
        known = {} if table is None else {c.id: c for c in table.visible_columns}
        named = {c.name: c for c in known.values()}
        found = known.get(column.id) or named.get(column.name)
        if found is not None:
            return document_value("doc", found.name, column.type)
        was_there = table is not None and column.id in {each.column.id for each in table.retired}
        value = None if was_there else parse_canonical(column.type, column.frozen)
        return frame_value(literal(column.type, value), column.type, {})


def _between_events(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Runs of changes, and schema events by themselves."""
    first = 0
    for place, op in enumerate(batch.column("op").to_pylist()):
        if op == _EVENT:
            if first < place:
                yield batch.slice(first, place - first)
            yield batch.slice(place, 1)
            first = place + 1
    if first < batch.num_rows:
        yield batch.slice(first)
