"""The index images that a node has loaded, one or more per index.

After a compaction the new generation gets an image of its own; the old image stays as long as there are snapshots below
the new base.

**Invariant:** files that no image shows any more, because of a newer generation or a dropped index, are closed. So the
number of open files depends on the data, not on how long the node has run or on what retention keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.engine.replica.schema_history import SchemaVersion
from seachange.model.ids import Epoch, IndexId, LayoutId, Seq
from seachange.model.log import LogEntry
from seachange.model.schema.descriptor import Index, Table
from seachange.model.segments import IndexDelta
from seachange.storage.image import ImageShape, IndexImage, Row
from seachange.storage.keys import KeyCodec
from seachange.storage.projection import StoredColumns
from seachange.storage.warehouse import Warehouse


class Images:
    """All methods except `current` require the epoch's lock."""

    def __init__(self, catalog: Catalog, epoch: Epoch, warehouse: Warehouse) -> None:
        self._catalog = catalog
        self._epoch = epoch
        self._warehouse = warehouse
        self._images: dict[IndexId, tuple[IndexImage, ...]] = {}
        self._tables: dict[IndexId, Table] = {}
        # The key columns of each index, cached per table version, since every lookup needs them.
        self._keys: dict[IndexId, tuple[Table, StoredColumns]] = {}

    def current(self, index_id: IndexId, snapshot: Seq) -> IndexImage | None:
        """The newest loaded image that can show `snapshot`."""
        for image in reversed(self._images.get(index_id, ())):
            if image.base <= snapshot:
                return image
        return None

    def load(self, table: Table, index: Index, at: Seq) -> IndexImage:
        """Reads the index from the catalog as of `at`, which is what the node has applied."""
        image = self._read(table, index, at)
        self._images[index.id] = (*self._images.get(index.id, ()), image)
        return image

    def load_past(self, table: Table, index: Index, at: Seq) -> IndexImage:
        """An image for a snapshot below everything that is loaded; it does not follow the log."""
        return self._read(table, index, at)

    def _read(self, table: Table, index: Index, at: Seq) -> IndexImage:
        known = self._tables.get(index.id)
        if known is None or known.version < table.version:
            self._tables[index.id] = table
        contents = self._catalog.index_contents(self._epoch, index.id, at)
        shape = ImageShape(
            index_id=index.id,
            key_width=len(table.entry_key(index)),
            prefix_width=0 if table.holds_rows(index) else len(index.key),
            columns=lambda layout_id: self._stored(index, layout_id),
            key=lambda: self._key(index),
            table=lambda: self._tables[index.id].full_name,
        )
        codec = KeyCodec([type_ for _, type_ in self._key(index)])
        return IndexImage(shape, codec, self._warehouse, contents)

    def _key(self, index: Index) -> StoredColumns:
        table = self._tables[index.id]
        known = self._keys.get(index.id)
        if known is None or known[0] is not table:
            known = table, table.stored_columns(index, table.layout)[: len(table.entry_key(index))]
            self._keys[index.id] = known
        return known[1]

    def _stored(self, index: Index, layout_id: LayoutId) -> StoredColumns:
        table = self._tables[index.id]
        layout = table.layout_by_id.get(layout_id)
        if layout is None:
            raise errors.Bug(detail=f"layout {layout_id} of index {index.id} is not known")
        return table.stored_columns(index, layout)

    def learn(self, table: Table) -> None:
        """Registers a newer version of a table: it may have layouts that later batches are written in."""
        for index in table.maintained:
            if index.id in self._tables:
                self._tables[index.id] = table

    def apply(self, entry: LogEntry) -> None:
        for descriptor in entry.descriptors:
            if isinstance(descriptor.body, Table):
                self.learn(descriptor.body)
        for index_id in entry.touched:
            images = self._images.get(index_id)
            if images:
                delta = IndexDelta(
                    entry.seq,
                    tuple(b for b in entry.batches if b.index_id == index_id),
                    tuple(s for s in entry.segments if s.index_id == index_id),
                )
                with self._forgetting_damaged(index_id):
                    for image in images:
                        image.apply(delta)
        for generation in entry.generations:
            self._rebase(generation.index_id, entry.seq)

    @contextmanager
    def _forgetting_damaged(self, index_id: IndexId) -> Iterator[None]:
        """The node continues with other tables. A statement that needs this one loads it again and gets the error."""
        try:
            yield
        except errors.InlineRowsDamaged:
            del self._images[index_id]

    def add_local(
        self, index_id: IndexId, seq: Seq, layout_id: LayoutId, ops: Sequence[int], rows: Sequence[Row]
    ) -> None:
        """Adds rows of the node's own commit, which need no decoding."""
        for image in self._images.get(index_id, ()):
            image.apply_rows(seq, layout_id, ops, rows)

    def _rebase(self, index_id: IndexId, seq: Seq) -> None:
        images = self._images.get(index_id)
        if images:
            contents = self._catalog.index_contents(self._epoch, index_id, seq)
            if contents.generation and contents.generation.base > images[-1].base:
                with self._forgetting_damaged(index_id):
                    self._images[index_id] = (*images, images[-1].rebased(contents))

    def drop_below(self, mark: Seq, *schemas: SchemaVersion) -> None:
        """Drops images that only snapshots below `mark` could need. `schemas` are those at the mark and now: an index
        that is in none of them was dropped."""
        for index_id, images in list(self._images.items()):
            kept = images if any(self._is_in(schema, index_id) for schema in schemas) else ()
            while len(kept) > 1 and kept[1].base <= mark:
                kept = kept[1:]
            if len(kept) < len(images):
                self._images[index_id] = kept
                shown = {id_ for image in kept for id_ in image.segment_ids}
                self._warehouse.release({id_ for image in images for id_ in image.segment_ids} - shown)
            if not kept:
                del self._images[index_id]

    def _is_in(self, schema: SchemaVersion, index_id: IndexId) -> bool:
        table = schema.by_id.get(self._tables[index_id].id)
        return table is not None and index_id in table.index_by_id

    def loaded(self) -> tuple[IndexImage, ...]:
        return tuple(images[-1] for images in list(self._images.values()))
