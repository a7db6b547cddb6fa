"""A table as the feed follows it through the log: its version, and its rows as of the last commit that was read.

**Invariant:** `image()` shows the rows as of `at`. It is opened where the reading begins and continued from the log,
and opened again over a newer generation where many rows have come: what it holds depends on what compaction leaves, not
on how much log is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seachange import errors
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_parts import NodeParts
from seachange.model.ids import DescriptorId, LayoutId, Seq, TableId
from seachange.model.log import LogEntry
from seachange.model.schema.descriptor import Table
from seachange.model.schema.enums import labels_of
from seachange.model.schema.objects import Descriptor, EnumType
from seachange.model.segments import IndexDelta, InlineBatch
from seachange.pipeline.kernels.source import open_image
from seachange.storage.batches import BatchCodec, read_batch
from seachange.storage.image import IndexImage
from seachange.storage.json_rows import ShownLabels
from seachange.storage.keys import KeyCodec
from seachange.storage.warehouse import Warehouse

Row = tuple[Any, ...]
# So many inline rows are followed before a newer generation is looked for.
_ROWS_MAX = 50_000


class TableState:
    def __init__(
        self,
        parts: NodeParts,
        epoch: EpochState,
        table_id: TableId,
        table: Table | None,
        objects: Mapping[DescriptorId, Descriptor],
        at: Seq,
    ) -> None:
        self.id = table_id
        self.table = table
        self._objects = objects
        self.at = at
        # Whether all rows have come with the commit that is read.
        self.is_whole = False
        self._parts = parts
        self._epoch = epoch
        self._image: IndexImage | None = None
        self._rows_followed = 0
        self._codecs: dict[LayoutId, BatchCodec] = {}
        self._keys: KeyCodec | None = None

    @property
    def labels(self) -> ShownLabels:
        """Of the enum types of its columns."""
        enums = {c.type.enum for c in self.known.visible_columns if c.type.enum}
        found = {number: self._objects.get(DescriptorId(number)) for number in enums}
        return {number: labels_of(type_).shown for number, type_ in found.items() if isinstance(type_, EnumType)}

    @property
    def known(self) -> Table:
        if self.table is None:
            raise errors.Bug(detail=f"rows of table {self.id} are read where it does not exist")
        return self.table

    @property
    def keys(self) -> KeyCodec:
        if self._keys is None:
            types = {c.id: c.type for c in self.known.columns}
            self._keys = KeyCodec([types[c] for c in self.known.primary.key])
        return self._keys

    def image(self) -> IndexImage:
        if self._image is None:
            self._image = self.open_at(self.at)
        return self._image

    def open_at(self, at: Seq) -> IndexImage:
        """The rows as of a commit, in the version of now."""
        table = self.known
        contents = self._epoch.catalog.index_contents(self._epoch.epoch, table.primary.id, at)
        return open_image(table, table.primary, self._parts.warehouse, contents)

    def reach(self, at: Seq) -> None:
        """No commit up to this one has changed the rows any more."""
        self.at = max(self.at, at)

    def become(self, table: Table | None, is_whole: bool) -> None:
        """From the next commit on it has this version; `is_whole`: all of its rows came with that commit."""
        self.table, self.is_whole = table, is_whole
        self._image, self._keys, self._rows_followed = None, None, 0
        self._codecs.clear()

    def concerns(self, entry: LogEntry) -> bool:
        return self.table is not None and self.table.primary.id in entry.touched

    def delta(self, entry: LogEntry) -> IndexDelta:
        id_ = self.known.primary.id
        batches = tuple(b for b in entry.batches if b.index_id == id_)
        return IndexDelta(entry.seq, batches, tuple(s for s in entry.segments if s.index_id == id_))

    def advance(self, delta: IndexDelta) -> None:
        """The rows are those after this commit."""
        if self._image is not None:
            self._image.apply(delta)
        self._reach(delta.seq, sum(batch.rows for batch in delta.batches))

    def advance_by(self, seq: Seq, layout_id: LayoutId, ops: Sequence[int], rows: Sequence[Row]) -> None:
        """The same for rows that have been read already: a commit has one batch for each layout."""
        if self._image is not None:
            self._image.apply_rows(seq, layout_id, ops, rows)
        self._reach(seq, len(rows))

    def _reach(self, seq: Seq, rows: int) -> None:
        self.at, self.is_whole = seq, False
        self._rows_followed += rows
        if self._image is None or self._rows_followed > _ROWS_MAX:
            # It is opened again when it is needed.
            self._image, self._rows_followed = None, 0

    def read(self, batch: InlineBatch) -> tuple[list[int], list[Row]]:
        return read_batch(batch, self.known.full_name, self._codec)

    def _codec(self, layout_id: LayoutId) -> BatchCodec:
        found = self._codecs.get(layout_id)
        if found is None:
            table = self.known
            stored = table.stored_columns(table.primary, table.layout_by_id[layout_id])
            found = self._codecs[layout_id] = BatchCodec(stored)
        return found

    @property
    def warehouse(self) -> Warehouse:
        return self._parts.warehouse
