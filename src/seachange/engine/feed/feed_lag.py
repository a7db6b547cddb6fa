"""How far consumers are behind, and the end of feeds that are too far.

**Invariant:** a feed keeps the log only while what its tables have written since its position is within
`seachange.feed_limit`: a consumer that does not come back cannot fill the disk.
"""

from __future__ import annotations

from dataclasses import dataclass

from seachange.catalog.port import Catalog
from seachange.engine.replica.epoch import EpochState
from seachange.model.feeds import FeedRecord
from seachange.model.ids import Seq


@dataclass(frozen=True, slots=True)
class FeedLag:
    """What its consumer has not acknowledged yet."""

    rows: int
    bytes: int
    since_us: int


def find_feed(catalog: Catalog, database: str, name: str) -> FeedRecord | None:
    return next((feed for feed in catalog.feeds() if (feed.database, feed.name) == (database, name)), None)


def measure_lag(catalog: Catalog, epoch: EpochState, feed: FeedRecord) -> FeedLag:
    """By the primary indexes that its tables have now. `since_us` is the time of the first commit behind the position,
    0 if there is none."""
    tables = [epoch.schemas.newest.by_id[id_] for id_ in feed.tables if id_ in epoch.schemas.newest.by_id]
    written = [catalog.written_since(table.primary.id, feed.position) for table in tables]
    rows, size = (sum(each) for each in zip(*written, strict=True)) if written else (0, 0)
    later = catalog.follow(epoch.epoch, feed.position, Seq(feed.position + 1)) if rows and not feed.ended else ()
    return FeedLag(rows, size, later[0].timestamp_us if later else 0)


def end_lagging(catalog: Catalog, epoch: EpochState, limit_bytes: int) -> None:
    for feed in catalog.feeds() if limit_bytes else ():
        if not feed.ended:
            lag = measure_lag(catalog, epoch, feed)
            if lag.bytes > limit_bytes:
                reason = f"its consumer is {lag.bytes} bytes behind, more than seachange.feed_limit ({limit_bytes})"
                catalog.end_feed(feed.database, feed.name, reason)
                catalog.log_event(f"feed {feed.name} was ended: {reason}")
