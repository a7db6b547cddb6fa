"""Feeds: positions in the log that consumers of changes keep, as the catalog records them."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.ids import Seq, TableId


@dataclass(frozen=True, slots=True)
class FeedRecord:
    """`position`: the last commit that its consumer has acknowledged; until the feed is dropped or `ended` the catalog
    keeps everything after it. `ended` is the reason, empty for a live feed."""

    name: str
    database: str
    owner: str
    tables: tuple[TableId, ...]
    position: Seq
    created_us: int
    ended: str = ""
