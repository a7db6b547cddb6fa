"""The change feed as a transaction reads it: up to its snapshot, without its own writes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.feed.change_feed import FEED_SCHEMA, ChangeFeed, FeedSpan
from seachange.engine.reads.row_reads import RowReads
from seachange.model.ids import Seq, TableId
from seachange.sql.port.lazy_rows import LazyRows

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class FeedReads:
    """`FeedPort`."""

    state: TransactionState
    reads: RowReads

    def read(
        self, tables: Sequence[TableId], since: int | dt.datetime | None, until: int | dt.datetime | None
    ) -> LazyRows:
        state = self.state
        for id_ in tables:
            table = state.schema.table_by_id(id_)
            if table is not None:
                self.reads.note_scan(table)
        floor = state.epoch.catalog.floor() if since is None else Seq(0)
        span = FeedSpan(
            tuple(tables),
            floor if since is None else self._sequence(since),
            state.snapshot.seq if until is None else min(state.snapshot.seq, self._sequence(until)),
        )
        feed = ChangeFeed(state.parts, state.epoch, span)
        if span.since < span.until:
            feed.check_kept()
        return LazyRows(FEED_SCHEMA, partial(feed.batches, state.client.interrupts))

    def _sequence(self, position: int | dt.datetime) -> Seq:
        if isinstance(position, dt.datetime):
            moment = position if position.tzinfo is not None else position.replace(tzinfo=dt.UTC)
            return self.state.epoch.catalog.sequence_at((moment - _EPOCH) // _MICROSECOND)
        return Seq(position)
