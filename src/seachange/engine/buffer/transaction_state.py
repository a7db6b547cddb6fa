"""The state of a transaction, in parts with names: what its reads, its writes and its commit share."""

from __future__ import annotations

from dataclasses import dataclass

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
from seachange.engine.context.statement_context import BLOCK, TransactionMode
from seachange.engine.locks.session_context import SessionContext, driven_by_hand
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_parts import NodeParts
from seachange.engine.replica.registry import OpenWriter
from seachange.model.ids import DescriptorId, Seq
from seachange.model.isolation import Isolation


@dataclass(frozen=True, slots=True)
class TransactionState:
    """The parts stay the same; each says how it changes."""

    parts: NodeParts
    epoch: EpochState
    isolation: Isolation
    mode: TransactionMode
    client: SessionContext
    statement: CurrentStatement
    snapshot: TransactionSnapshot
    buffer: WriteBuffer
    pending: PendingSchema
    # Its schema changes in several stages.
    block: BlockChanges
    declared: Declarations
    # Stays empty below SERIALIZABLE.
    read_set: ReadSet
    # What tables look like to its statements.
    shapes: Shapes
    schema: SchemaView
    rights: Rights
    sequences: SequenceValues
    write_locks: WriteLocks
    # Tables used, with the version that they were planned with.
    used: dict[DescriptorId, int]

    def planned_versions(self) -> dict[DescriptorId, int]:
        """Of the tables that were used: the version that its rows fit, else the one that it was last read in."""
        fits = self.buffer.fits
        written = {id_: fits[id_].table.version for id_ in self.used if id_ in fits and self.buffer.writes_to(id_)}
        return {**self.used, **written}


def begin_state(
    parts: NodeParts,
    epoch: EpochState,
    isolation: Isolation,
    as_of: Seq | None = None,
    client: SessionContext | None = None,
    may_write: bool = True,
    mode: TransactionMode = BLOCK,
) -> TransactionState:
    """Of a new transaction, which is registered and has its snapshot."""
    writer, used = None, dict[DescriptorId, int]()
    if may_write:
        name, actor = (client.name, client.actor) if client is not None else ("a transaction of its own", 0)
        writer = OpenWriter(name, parts.clock.wall_us(), actor, used)
    snapshot = TransactionSnapshot(epoch, as_of, writer)
    client = client if client is not None else driven_by_hand(snapshot.ticket)
    statement = CurrentStatement(client, mode, parts.clock, epoch.epoch)
    pending, declared, read_set, shapes = PendingSchema(), Declarations(), ReadSet(), Shapes(statement)
    schema = SchemaView(epoch, isolation, snapshot, pending, statement, shapes, read_set)
    rights = Rights(epoch, pending, statement, schema)
    sequences = SequenceValues(parts, epoch.epoch, snapshot, statement, schema, rights, client.drawn)
    write_locks = WriteLocks(epoch, snapshot.ticket, client, statement, declared.shares, mode.is_contended)
    return TransactionState(
        parts=parts,
        epoch=epoch,
        isolation=isolation,
        mode=mode,
        client=client,
        statement=statement,
        snapshot=snapshot,
        buffer=WriteBuffer(),
        pending=pending,
        block=BlockChanges(),
        declared=declared,
        read_set=read_set,
        shapes=shapes,
        schema=schema,
        rights=rights,
        sequences=sequences,
        write_locks=write_locks,
        used=used,
    )
