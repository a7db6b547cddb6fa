"""What statements need to know of earlier definitions: dropped objects, and the history of changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from seachange.model.statements import DdlStatement, RevertChange, UndropTable
from seachange.planner.known_schema import KnownSchema
from seachange.sql.change.object_access import without_lost_roles
from seachange.sql.port.port import TransactionPort


def with_past(statements: Sequence[DdlStatement], catalog: KnownSchema, port: TransactionPort) -> KnownSchema:
    """The catalog with as much of the past as the statements need: nothing for most of them."""
    reverts = [statement for statement in statements if isinstance(statement, RevertChange)]
    if not any(isinstance(statement, RevertChange | UndropTable) for statement in statements):
        return catalog
    dropped = port.schema.dropped_objects()
    first = min((revert.change_id for revert in reverts), default=None)
    history = port.schema.past_changes(first) if first is not None else ()
    return replace(catalog, dropped=tuple(without_lost_roles(kept, port) for kept in dropped), history=history)
