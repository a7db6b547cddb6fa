"""The changes of tables over a span of the log, in commit order, as Arrow batches.

It reads the log in slices and follows the rows of each table along, so it holds no more than a slice, however long the
span is. A commit of many rows is read from its files as a stream.

**Invariant:** every change of a row and of a schema by a commit in (since, until] is there once, at its place; what
moves rows without changing them (compaction, backfills, builds of indexes, migrations of layouts) is none. Rows have
the shape of their commit.

**Invariant:** a part of the log, or a row before a change, that is no longer kept is an error (72000), never a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa

from seachange import errors
from seachange.engine.context.interrupts import SessionInterrupts
from seachange.engine.feed.bulk_changes import read_bulk, read_whole
from seachange.engine.feed.feed_shape import is_emptied, schema_event
from seachange.engine.feed.inline_changes import InlineChanges
from seachange.engine.feed.table_state import TableState
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_parts import NodeParts
from seachange.model.ids import DescriptorId, Seq, TableId
from seachange.model.log import LogEntry
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor
from seachange.sql.duck.cursor import DuckSession

FEED_SCHEMA = pa.schema(
    [
        ("seq", pa.int64()),
        ("committed_at", pa.timestamp("us", tz="UTC")),
        ("ordinal", pa.int64()),
        ("relation", pa.string()),
        ("op", pa.string()),
        ("before", pa.string()),
        ("after", pa.string()),
        ("schema", pa.string()),
    ]
)
Bodies = Mapping[DescriptorId, Descriptor | None]
# Commits that are read from the log at once, and changes that are collected before they are shown.
_SLICE = 1_000
_CHANGES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class FeedSpan:
    tables: tuple[TableId, ...]
    since: Seq
    until: Seq


@dataclass(slots=True)
class _Rows:
    """Rows of the output, by column."""

    columns: tuple[list[object], ...] = field(default_factory=lambda: tuple([] for _ in FEED_SCHEMA))

    def add(self, *values: object) -> None:
        for column, value in zip(self.columns, values, strict=True):
            column.append(value)

    def batch(self) -> pa.RecordBatch:
        arrays = [pa.array(values, f.type) for values, f in zip(self.columns, FEED_SCHEMA, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=FEED_SCHEMA)


class ChangeFeed:
    def __init__(self, parts: NodeParts, epoch: EpochState, span: FeedSpan) -> None:
        self._parts = parts
        self._epoch = epoch
        self._span = span

    def check_kept(self) -> None:
        """Raises unless all of the span is kept."""
        floor = self._epoch.catalog.floor()
        if self._span.since < floor:
            raise errors.FeedTooOld(since=self._span.since, floor=floor)

    def batches(self, interrupts: SessionInterrupts) -> Iterator[pa.RecordBatch]:
        try:
            with closing(DuckSession(self._parts.duck.cursor(), {})) as duck, interrupts.reaching(duck):
                yield from self._read(duck, interrupts)
        except (errors.SnapshotTooOld, errors.SegmentDamaged):
            # A file that is missing because its part of the log was given up is not damage.
            self.check_kept()
            raise

    def _read(self, duck: DuckSession, interrupts: SessionInterrupts) -> Iterator[pa.RecordBatch]:
        span = self._span
        schema = self._epoch.schema(span.since)
        objects = dict(schema.objects)
        states = [
            TableState(self._parts, self._epoch, id_, schema.by_id.get(id_), objects, span.since) for id_ in span.tables
        ]
        reader = _LogReader(states, objects, duck)
        after = span.since
        while after < span.until:
            interrupts.check()
            upto = Seq(min(after + _SLICE, span.until))
            for entry in self._epoch.catalog.follow(self._epoch.epoch, after, upto):
                yield from reader.take(entry)
            after = upto
        yield from reader.flush()


class _LogReader:
    """Takes the entries of the log in order; collects small changes, and shows them before anything else is."""

    def __init__(
        self, states: Sequence[TableState], objects: dict[DescriptorId, Descriptor], duck: DuckSession
    ) -> None:
        """`objects` are those that the states see, such as types: as of the entry that is taken."""
        self._states = states
        self._objects = objects
        self._duck = duck
        self._collected: dict[TableId, InlineChanges] = {}
        # For each collected change its commit and its table.
        self._order: list[tuple[LogEntry, TableState]] = []

    def take(self, entry: LogEntry) -> Iterator[pa.RecordBatch]:
        published = {d.id for d in entry.descriptors}
        concerned = [state for state in self._states if state.concerns(entry)]
        is_defined = any(state.id in published for state in self._states) or bool(
            published & {number for state in self._states if state.table is not None for number in state.labels}
        )
        if not is_defined:
            self._define_objects(entry)
        if not is_defined and not concerned:
            return
        if not is_defined and not any(state.delta(entry).segments for state in concerned):
            self._collect(entry, concerned)
            if len(self._order) >= _CHANGES_MAX:
                yield from self.flush()
            return
        yield from self.flush()
        yield from self._show_commit(entry)

    def _collect(self, entry: LogEntry, concerned: Sequence[TableState]) -> None:
        for state in concerned:
            if state.id not in self._collected:
                state.reach(Seq(entry.seq - 1))
                self._collected[state.id] = InlineChanges(state)
            changes = self._collected[state.id]
            known = len(changes)
            for batch in state.delta(entry).batches:
                changes.add(entry.seq, batch)
            self._order += [(entry, state)] * (len(changes) - known)

    def flush(self) -> Iterator[pa.RecordBatch]:
        if not self._order:
            return
        shown = {id_: iter(changes.show(self._duck)) for id_, changes in self._collected.items()}
        rows, seq, ordinal = _Rows(), 0, 0
        for entry, state in self._order:
            change = next(shown[state.id])
            if not change.op:
                continue
            ordinal = ordinal + 1 if entry.seq == seq else 1
            seq = entry.seq
            place = (seq, entry.timestamp_us, ordinal, state.known.full_name)
            rows.add(*place, change.op, change.before, change.after, None)
        for changes in self._collected.values():
            changes.follow()
        self._collected.clear()
        self._order = []
        yield rows.batch()

    def _show_commit(self, entry: LogEntry) -> Iterator[pa.RecordBatch]:
        """A commit that changes a schema, or many rows."""
        self._define_objects(entry)
        bodies = {d.id: d.body for d in entry.descriptors}
        ordinal = 0
        for show in (self._define, self._change):
            for state in self._states:
                for rows in show(state, entry, bodies):
                    yield _placed(rows, entry, ordinal)
                    ordinal += rows.batch.num_rows

    def _define_objects(self, entry: LogEntry) -> None:
        for published in entry.descriptors:
            if published.body is None:
                self._objects.pop(published.id, None)
            elif not isinstance(published.body, Table):
                self._objects[published.id] = published.body

    def _define(self, state: TableState, entry: LogEntry, bodies: Bodies) -> Iterator[_Shown]:
        """Moves a table to its next version. Rows that go as a whole go before that, in the shape that they had."""
        before = state.table
        after = bodies.get(state.id, before)
        assert after is None or isinstance(after, Table)
        state.reach(Seq(entry.seq - 1))
        if before is not None and after is not None and is_emptied(before, after):
            for batch in read_whole(state, state.image().parts(state.at), "delete", self._duck):
                yield _Shown(before.full_name, batch)
        event = schema_event(before, after, self._objects)
        state.become(after, is_whole=after is not None and (before is None or is_emptied(before, after)))
        if event is not None:
            named = after or before
            assert named is not None
            yield _Shown(named.full_name, pa.RecordBatch.from_pydict({"schema": [event]}))

    def _change(self, state: TableState, entry: LogEntry, _: Bodies) -> Iterator[_Shown]:
        if state.table is None:
            return
        name, delta = state.table.full_name, state.delta(entry)
        if state.is_whole:
            batches = read_whole(state, state.open_at(entry.seq).parts(entry.seq), "insert", self._duck)
        else:
            batches = read_bulk(state, delta, self._duck)
        for batch in batches:
            yield _Shown(name, batch)
        state.advance(delta)


@dataclass(frozen=True, slots=True)
class _Shown:
    """Changes of a table by one commit: rows with `op`, `was` and `made`, or one event with `schema`."""

    relation: str
    batch: pa.RecordBatch


def _placed(shown: _Shown, entry: LogEntry, ordinal: int) -> pa.RecordBatch:
    batch, count = shown.batch, shown.batch.num_rows
    nothing = pa.nulls(count, pa.string())
    if "schema" in batch.schema.names:
        row = [pa.array(["schema"] * count), nothing, nothing, batch.column("schema")]
    else:
        row = [*(batch.column(name).cast(pa.string()) for name in ("op", "was", "made")), nothing]
    numbers = pa.array(range(ordinal + 1, ordinal + 1 + count), pa.int64())
    seq, moment = (
        pa.repeat(pa.scalar(value, FEED_SCHEMA.field(name).type), count)
        for name, value in (("seq", entry.seq), ("committed_at", entry.timestamp_us))
    )
    relation = pa.repeat(pa.scalar(shown.relation), count)
    return pa.RecordBatch.from_arrays([seq, moment, numbers, relation, *row], schema=FEED_SCHEMA)
