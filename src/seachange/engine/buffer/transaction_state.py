"""The state of a transaction, in parts with names: what its reads, its writes and its commit share."""

from __future__ import annotations

from typing import Final

from seachange.engine.buffer.block_changes import BlockChanges
from seachange.engine.buffer.current_statement import CurrentStatement
from seachange.engine.buffer.declarations import Declarations
from seachange.engine.buffer.pending_schema import PendingSchema
from seachange.engine.buffer.read_set import ReadSet
from seachange.engine.buffer.rights import Rights
from seachange.engine.buffer.schema_view import SchemaView
from seachange.engine.buffer.sequence_values import SequenceValues
from seachange.engine.buffer.shapes import Shapes
from seachange.engine.buffer.snapshot import TransactionSnapshot
from seachange.engine.buffer.write_buffer import WriteBuffer
from seachange.engine.buffer.write_locks import WriteLocks
from seachange.engine.context.statement_context import BLOCK, StatementContext, TransactionMode
from seachange.engine.locks.session_context import SessionContext, driven_by_hand
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_parts import NodeParts
from seachange.engine.replica.registry import OpenWriter
from seachange.model.ids import DescriptorId, Seq
from seachange.model.isolation import Isolation


class TransactionState:
    """Of a transaction that is registered and has its snapshot. The parts stay the same; each says how it changes."""

    def __init__(
        self,
        parts: NodeParts,
        epoch: EpochState,
        isolation: Isolation,
        as_of: Seq | None = None,
        client: SessionContext | None = None,
        may_write: bool = True,
        mode: TransactionMode = BLOCK,
        context: StatementContext | None = None,
    ) -> None:
        # Tables used, with the version that they were planned with.
        self.used: Final[dict[DescriptorId, int]] = {}
        # Objects that a block has changed, with the last statement that did, for sessions that wait for it.
        self.changed: Final[dict[DescriptorId, str]] = {}
        writer = None
        if may_write:
            name, actor = (client.name, client.actor) if client is not None else ("a transaction of its own", 0)
            writer = OpenWriter(name, parts.clock.wall_us(), actor, self.used, self.changed)
        self.parts: Final = parts
        self.epoch: Final = epoch
        self.isolation: Final = isolation
        self.mode: Final = mode
        self.snapshot: Final = TransactionSnapshot(epoch, as_of, writer)
        self.client: Final = client if client is not None else driven_by_hand(self.snapshot.ticket)
        self.statement: Final = CurrentStatement(self.client, mode, parts.clock, epoch.epoch, context)
        self.buffer: Final = WriteBuffer()
        self.pending: Final = PendingSchema()
        # Its schema changes in several stages.
        self.block: Final = BlockChanges(epoch)
        self.declared: Final = Declarations()
        # Stays empty below SERIALIZABLE.
        self.read_set: Final = ReadSet()
        # What tables look like to its statements.
        self.shapes: Final = Shapes(self.statement)
        self.schema: Final = SchemaView(
            epoch, isolation, self.snapshot, self.pending, self.statement, self.shapes, self.read_set
        )
        self.rights: Final = Rights(epoch, self.pending, self.statement, self.schema)
        self.write_locks: Final = WriteLocks(
            epoch, self.snapshot.ticket, self.client, self.statement, self.declared.shares, mode.is_contended
        )

    @property
    def has_begun(self) -> bool:
        """Whether it has read or written something. Until then it can take another snapshot, at every level."""
        return bool(self.used or self.pending or self.declared.locked) or not self.buffer.is_empty

    @property
    def sequences(self) -> SequenceValues:
        statement, client = self.statement, self.client
        return SequenceValues(
            self.parts, self.epoch.epoch, self.snapshot, statement, self.schema, self.rights, client.drawn
        )

    def planned_versions(self) -> dict[DescriptorId, int]:
        """Of the tables that were used: the version that its rows fit, else the one that it was last read in."""
        fits = self.buffer.fits
        written = {id_: fits[id_].table.version for id_ in self.used if id_ in fits and self.buffer.writes_to(id_)}
        return {**self.used, **written}
