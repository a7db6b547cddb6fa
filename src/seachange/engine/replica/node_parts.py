"""The parts of a node that its transactions share across epochs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seachange.catalog.port import Catalog
from seachange.engine.context.meters import Meters
from seachange.engine.context.retention import Retention
from seachange.engine.context.sequences import NodeSequences
from seachange.engine.context.statement_statistics import StatementStatistics
from seachange.engine.encode.write_plan import Row, WritePlan, compile_read, compile_write_plan
from seachange.engine.replica.open_sessions import OpenSessions
from seachange.model.ids import DescriptorId, Epoch, IndexId, LayoutId
from seachange.model.schema.descriptor import Table
from seachange.planner.rules.release import CURRENT
from seachange.runtime.clock import Clock
from seachange.runtime.entropy import Entropy
from seachange.runtime.event_log import SILENT, EventLog
from seachange.runtime.filesystem import FileSystem
from seachange.runtime.opening import CacheOptions
from seachange.storage.duck import Duck
from seachange.storage.spill import SortPool
from seachange.storage.warehouse import Warehouse

_BITS = 36
RETENTION_US = 24 * 3_600 * 1_000_000
# Up to this many rows of an index are stored inline in the catalog; more become a sorted file.
INLINE_ROWS_MAX = 5_000
_PLANS_MAX = 4_096
_SECRET_BYTES = 32
# The folder for data that statements spill to disk.
TEMPORARY = "tmp"


class RowIds:
    """Hidden row ids: unique without coordination, ascending within a node. An epoch owns the ids whose upper bits are
    its number; the lower ones count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: dict[Epoch, int] = {}

    def take(self, epoch: Epoch, count: int = 1) -> int:
        """The first of `count` consecutive ids."""
        with self._lock:
            first = self._next.get(epoch, 0)
            self._next[epoch] = first + count
        return (epoch << _BITS) + first


@dataclass(slots=True)
class NodeParts:
    # The local folder: that of the data, or the one beside an object store.
    data: Path
    catalog: Catalog
    files: FileSystem
    warehouse: Warehouse
    duck: Duck
    clock: Clock
    entropy: Entropy
    # The id of the database, in its catalog and its folder.
    identity: str | None = None
    rowids: RowIds = field(default_factory=RowIds)
    sorts: SortPool = field(default_factory=SortPool)
    inline_rows_max: int = INLINE_ROWS_MAX
    sessions: OpenSessions = field(default_factory=OpenSessions)
    sequences: NodeSequences = field(init=False)
    meters: Meters = field(init=False)
    # What its sessions have run, by statement.
    statements: StatementStatistics = field(default_factory=StatementStatistics)
    log: EventLog = SILENT
    compaction_locks: CompactionLocks = field(init=False)
    # Whether queries use indexes; if not, they scan, with the same results.
    seeks: bool = True
    # The release of the newest schema change rules that the node knows.
    release: int = CURRENT.number
    # The settings of the database's configuration file, for every session and job.
    settings: dict[str, str] = field(default_factory=dict)
    # How long history is kept.
    retention: Retention = field(default_factory=lambda: Retention(RETENTION_US))
    # The cache of the object store, for the tasks of Spark.
    cache: CacheOptions = CacheOptions()  # noqa: RUF009 - a value
    # Roles whose passwords are set in the environment of this process.
    fixed_passwords: frozenset[str] = frozenset()
    # Primary indexes in which scans have met rows of older layouts, of tables that migrate them then.
    layouts_met: set[IndexId] = field(default_factory=set)
    _plans: dict[tuple[DescriptorId, int], tuple[Table, WritePlan]] = field(default_factory=dict)
    _reads: dict[tuple[DescriptorId, int, LayoutId], tuple[Table, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sequences = NodeSequences(self.catalog)
        self.meters = Meters(self.clock)
        self.compaction_locks = CompactionLocks(self.catalog)

    def shared_secret(self) -> bytes:
        """The secret that all nodes of the database know."""
        return bytes.fromhex(self.catalog.secret(self.entropy.token(_SECRET_BYTES).hex()))

    def close(self) -> None:
        self.catalog.close()
        self.duck.close()
        self.sorts.close()
        self.warehouse.close()
        self.files.close()

    def write_plan(self, table: Table) -> WritePlan:
        # A pending version may be rolled back and its number reused, so the identity is compared too.
        cached = self._plans.get((table.id, table.version))
        if cached is not None and cached[0] is table:
            return cached[1]
        if len(self._plans) > _PLANS_MAX:
            self._plans.clear()
        plan = compile_write_plan(table)
        self._plans[table.id, table.version] = (table, plan)
        return plan

    def read_projection(self, table: Table, layout_id: LayoutId) -> Callable[[Row], Row] | None:
        cached = self._reads.get((table.id, table.version, layout_id))
        if cached is not None and cached[0] is table:
            return cached[1]  # type: ignore[no-any-return]
        if len(self._reads) > _PLANS_MAX:
            self._reads.clear()
        project = compile_read(table, table.primary, layout_id)
        self._reads[table.id, table.version, layout_id] = (table, project)
        return project


class CompactionLocks:
    """The right to compact an index: held by one thread at a time, in this node and between nodes.

    It only saves work: two compactions are kept apart because a generation replaces the newest one or none.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._held: set[IndexId] = set()

    @contextmanager
    def holding(self, epoch: Epoch, index_id: IndexId) -> Iterator[bool]:
        """Whether it is the caller's meanwhile; the catalog keeps nodes apart, not the threads of one."""
        with self._lock:
            is_free = index_id not in self._held
            self._held.add(index_id)
        if not is_free:
            yield False
            return
        resource = f"compact:{index_id}"
        try:
            is_ours = self._catalog.claim(epoch, resource)
            try:
                yield is_ours
            finally:
                if is_ours:
                    self._catalog.release(epoch, resource)
        finally:
            with self._lock:
                self._held.discard(index_id)
