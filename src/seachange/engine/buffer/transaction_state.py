"""The view of a transaction that the parts of a commit need."""

from __future__ import annotations

from typing import Any, Protocol

from seachange.engine.buffer.declarations import Declarations
from seachange.engine.buffer.pending_schema import PendingSchema
from seachange.engine.buffer.read_set import ReadSet
from seachange.engine.buffer.rights import Rights
from seachange.engine.buffer.write_buffer import WriteBuffer
from seachange.engine.buffer.write_locks import WriteLocks
from seachange.engine.locks.session_context import SessionContext
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_parts import NodeParts
from seachange.model.ids import DescriptorId, Seq
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.storage.image import SnapshotParts


class TransactionState(Protocol):
    parts: NodeParts
    epoch: EpochState
    buffer: WriteBuffer
    pending: PendingSchema
    snapshot: Seq
    rights: Rights
    reads: ReadSet
    write_locks: WriteLocks
    declared: Declarations
    client: SessionContext
    # Whether a commit attempt has rebased the buffer since the last statement.
    is_adapted: bool

    @property
    def is_autocommit(self) -> bool: ...

    def index_parts(self, table: Table, index: Index) -> SnapshotParts: ...

    def defaults(self, column: Column, count: int) -> list[Any]: ...

    def written_versions(self) -> dict[DescriptorId, int]: ...
