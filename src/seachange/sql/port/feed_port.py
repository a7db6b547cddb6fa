"""The port of a statement to the change feed, which the engine implements."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Protocol

from seachange.model.ids import TableId
from seachange.sql.port.lazy_rows import LazyRows


class FeedPort(Protocol):
    """Changes of tables."""

    def read(
        self, tables: Sequence[TableId], since: int | dt.datetime | None, until: int | dt.datetime | None
    ) -> LazyRows:
        """The changes after `since` (None: all that are kept) up to `until` (None: the snapshot), in commit order.
        Raises FeedTooOld if some are no longer kept."""
