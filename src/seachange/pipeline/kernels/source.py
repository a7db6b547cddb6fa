"""An index as of one sequence, as the kernels read it: in units that are the same in every attempt.

**Invariant:** the units of a source contain each of its visible rows exactly once. A unit's name identifies its rows:
units with the same name, in whatever attempt, have the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import duckdb
import numpy as np
import xxhash

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.model.change.work import Built
from seachange.model.ids import ColumnId, Epoch, GenerationId, IndexId, Seq
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.segments import IndexContents
from seachange.storage.arrow import column_name
from seachange.storage.image import FileSlice, ImageShape, IndexImage, SnapshotParts
from seachange.storage.keys import KeyCodec
from seachange.storage.plan import plan_columns
from seachange.storage.segment_footer import SEGMENT_ROWS_MAX
from seachange.storage.warehouse import Warehouse

# The rows of a unit are held once, spilled if necessary, and sorted for each index.
UNIT_ROWS_MAX = 4 * SEGMENT_ROWS_MAX
UNIT_BYTES_MAX = 256 << 20
# The id of a generation that is not attached yet; its units are identified by the ids of its files alone.
NOT_ATTACHED = GenerationId(0)


def size_of(parts: SnapshotParts) -> int:
    """The size of its files and inline rows."""
    inline: int = sum(table.nbytes for _, table in parts.inline)
    return inline + sum(file.segment.size_bytes for file in parts.files)


@dataclass(frozen=True, slots=True)
class Unit:
    """`positions` is a condition on `file_row_number`, for some of the rows of its files."""

    name: str
    parts: SnapshotParts
    positions: str = ""

    @property
    def rows(self) -> int:
        inline: int = sum(table.num_rows for _, table in self.parts.inline)
        return inline + sum(f.segment.rows - len(f.superseded) for f in self.parts.files)


@dataclass(frozen=True, slots=True)
class IndexSource:
    """`table` is the version at the sequence, with the primary index whose key the entries of `index` end with. Entries
    of rows whose keys in the primary index of `hidden` are among those of `hidden` are left out by a scan; `drawn` has
    values that rows of the same primary key got later."""

    table: Table
    index: Index
    generation_id: GenerationId
    parts: SnapshotParts
    hidden: IndexSource | None = None
    drawn: LaterValues | None = None

    @property
    def rows(self) -> int:
        return Unit("", self.parts).rows

    @property
    def size_bytes(self) -> int:
        return size_of(self.parts)

    def scan(
        self, columns: Sequence[Column], parts: SnapshotParts, warehouse: Warehouse, prefix: str, positions: str = ""
    ) -> Scan:
        """A scan of some columns, named by their ids."""
        if self.hidden is None and self.drawn is None:
            return plan_columns(self.table, self.index, columns, parts, warehouse, prefix, positions)
        key = self.table.primary.key if self.drawn is not None else ()
        hidden_key = self.hidden.table.primary.key if self.hidden is not None else ()
        read = dict.fromkeys([*columns, *(self.table.column_by_id[c] for c in (*key, *hidden_key))])
        scans = [plan_columns(self.table, self.index, list(read), parts, warehouse, prefix)]
        sql = f"FROM ({scans[0].sql}) r"
        if self.hidden is not None:
            known = self.hidden.table.column_by_id
            gone = self.hidden.scan([known[c] for c in hidden_key], self.hidden.parts, warehouse, f"{prefix}_hidden")
            scans.append(gone)
            sql = f"FROM (SELECT r.* {sql} ANTI JOIN ({gone.sql}) o ON {_same(hidden_key)}) r"
        drawn = self.drawn.columns if self.drawn is not None else frozenset[ColumnId]()
        if self.drawn is not None:
            values = self.drawn.scan(self.table.primary.key, warehouse, f"{prefix}_drawn")
            scans.append(values)
            sql = f"{sql} LEFT JOIN ({values.sql}) o ON {_same(key)}"
        names = ", ".join(f"{'o' if c.id in drawn else 'r'}.{column_name(c.id)}" for c in columns)
        parameters = {name: value for scan in scans for name, value in scan.parameters.items()}
        relations = {name: rows for scan in scans for name, rows in scan.relations.items()}
        return Scan(f"SELECT {names} {sql}", parameters, relations)

    def units(self, rows_max: int = UNIT_ROWS_MAX, bytes_max: int = UNIT_BYTES_MAX) -> list[Unit]:
        """Groups of files, and one unit for the inline rows."""
        units = [
            Unit(self._name(str(f.segment.id) for f in group), SnapshotParts(tuple(group), ()))
            for group in _grouped(self.parts.files, rows_max, bytes_max)
        ]
        if self.parts.inline:
            units.append(Unit(self._name(["inline"]), SnapshotParts((), self.parts.inline)))
        return units

    def _name(self, members: Iterable[str]) -> str:
        # At one sequence a generation determines which rows of a file are visible. The DuckDB version is part of the
        # name, since checksums use DuckDB's hash function.
        text = "/".join([duckdb.__version__, str(self.index.id), *members])
        return f"{self.generation_id}-{xxhash.xxh3_64_hexdigest(text.encode())}"


def _same(key: Sequence[ColumnId]) -> str:
    return " AND ".join(f"r.{column_name(c)} = o.{column_name(c)}" for c in key)


def _grouped(files: Iterable[FileSlice], rows_max: int, bytes_max: int) -> Iterator[list[FileSlice]]:
    """Files with adjacent keys are grouped, so that runs in the order of the source overlap little."""
    group: list[FileSlice] = []
    rows = size = 0
    for file in sorted(files, key=lambda f: (f.segment.key_min, f.segment.id)):
        live = file.segment.rows - len(file.superseded)
        if not live:
            continue
        if group and (rows + live > rows_max or size + file.segment.size_bytes > bytes_max):
            yield group
            group, rows, size = [], 0, 0
        group.append(file)
        rows, size = rows + live, size + file.segment.size_bytes
    if group:
        yield group


@dataclass(frozen=True, slots=True)
class LaterValues:
    """A primary index with the same key, and the columns whose values are taken from it."""

    source: IndexSource
    columns: frozenset[ColumnId]

    def scan(self, key: Sequence[ColumnId], warehouse: Warehouse, prefix: str) -> Scan:
        known = self.source.table.column_by_id
        return self.source.scan([known[c] for c in (*key, *sorted(self.columns))], self.source.parts, warehouse, prefix)


def seen_through(table: Table, primary_id: IndexId | None) -> Table:
    """The table with a new primary index as its primary one, if `primary_id` is such an index."""
    place = next((place for place, index in enumerate(table.coming) if index.id == primary_id), None)
    if place is None:
        return table
    primary, *later = table.coming[place:]
    return replace(table, primary=primary, next_primary=later[0] if later else None, later_primaries=tuple(later[1:]))


def built_source(table: Table, built: Built) -> IndexSource:
    """A primary index that was just built: as of its base it consists of its generation only."""
    nothing = np.array([], dtype=np.int64)
    files = tuple(FileSlice(member.segment, nothing) for member in built.members)
    return IndexSource(table, table.primary, NOT_ATTACHED, SnapshotParts(files, ()))


class RowSources(Protocol):
    """The tables that kernels read, and the contents of their indexes."""

    def tables(self) -> dict[int, Table]: ...

    def load(self, table: Table, index: Index) -> IndexSource:
        """`table` is `seen_through` the primary index whose key the entries of `index` end with."""

    def hidden(self, table: Table, index: Index) -> IndexSource | None:
        """The primary keys of rows that a transaction has written: an index that is new to it has the committed
        entries of these rows, which are no longer valid, and none of its own. None also if the entries of the index
        do not have these keys."""

    def replaced(self, table: Table) -> IndexSource | None:
        """What a transaction has written before the primary index of `table` was built, and leaves in the one before:
        it is not among what is loaded, which those of the committed rows that it has changed are left out of, and is
        checked when it is rebased."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Reads the catalog as of one sequence. The caller keeps the sequence readable; otherwise the catalog raises an
    error, never returns fewer rows."""

    catalog: Catalog
    epoch: Epoch
    warehouse: Warehouse
    at: Seq

    def tables(self) -> dict[int, Table]:
        published = self.catalog.descriptors(self.epoch, self.at)
        return {d.id: d.body for d in published if isinstance(d.body, Table)}

    def load(self, table: Table, index: Index) -> IndexSource:
        image, generation_id = self.open(table, index)
        return IndexSource(table, index, generation_id, image.parts(self.at))

    def hidden(self, table: Table, index: Index) -> IndexSource | None:
        return None

    def replaced(self, table: Table) -> IndexSource | None:
        return None

    def open(self, table: Table, index: Index) -> tuple[IndexImage, GenerationId]:
        """An image of its own, and the generation at the sequence."""
        contents = self.catalog.index_contents(self.epoch, index.id, self.at)
        if contents.generation is None:
            raise errors.Bug(detail=f"index {index.name} of {table.name} is read before it is complete")
        return open_image(table, index, self.warehouse, contents), contents.generation.id


def open_image(table: Table, index: Index, warehouse: Warehouse, contents: IndexContents) -> IndexImage:
    key = table.stored_columns(index, table.layout)[: len(table.entry_key(index))]
    shape = ImageShape(
        index_id=index.id,
        key_width=len(key),
        prefix_width=len(index.key) if index.id != table.primary.id else 0,
        columns=lambda layout_id: table.stored_columns(index, table.layout_by_id[layout_id]),
        key=lambda: key,
        table=lambda: table.full_name,
    )
    return IndexImage(shape, KeyCodec([type_ for _, type_ in key]), warehouse, contents)
