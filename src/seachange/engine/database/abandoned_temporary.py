"""Temporary tables of sessions that ended without dropping them, because their process was killed."""

from __future__ import annotations

from contextlib import closing, suppress

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.schema.temporary import epoch_of
from seachange.storage.plan import quote


def drop_left(node: Node) -> None:
    """Called by each node that opens the database. A table that cannot be dropped now is left to the next node."""
    found = [table for table in node.epoch.schemas.newest.by_id.values() if epoch_of(table.schema) is not None]
    if not found:
        return
    live = {other.epoch for other in node.parts.catalog.nodes() if other.live}
    left = [table for table in found if epoch_of(table.schema) not in live]
    for database in {table.database for table in left}:
        with suppress(errors.Error), closing(Session(node, database=database)) as session:
            session.execute("set lock_timeout = '100ms'")
            for table in left:
                if table.database == database:
                    session.execute(f"drop table if exists {quote(table.schema)}.{quote(table.name)} cascade")
