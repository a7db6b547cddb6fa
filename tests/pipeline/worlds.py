"""Tables with their rows in files of several layouts, partly superseded, and inline; without an engine."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from seachange.engine.context.interrupts import SessionInterrupts
from seachange.model.change.work import Built, UnitDone
from seachange.model.ids import ColumnId, GenerationId, IndexId, LayoutId, TableId
from seachange.model.schema.descriptor import Column, Index, Layout, Table
from seachange.model.schema.expression import Expression
from seachange.model.segments import Segment
from seachange.pipeline.kernels.backfill import Report, backfill
from seachange.pipeline.kernels.executor import LocalExecutor, Sizes
from seachange.pipeline.kernels.kernel_context import KernelContext
from seachange.pipeline.kernels.runs import BuiltIndex, base_shape
from seachange.pipeline.kernels.source import IndexSource
from seachange.sql.translate.duck_errors import translate_error
from seachange.storage.arrow import column_name, schema_of
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.keys import KeyCodec
from seachange.storage.segment_writer import SegmentWriter
from seachange.values.types import SqlType
from tests.storage.samples import Store, same

Row = dict[int, Any]
PRIMARY = IndexId(100)


def make_table(layouts: Sequence[Sequence[Column]], columns: Sequence[Column] | None = None, **more: Any) -> Table:
    """Column 1 is the key; the columns of the last layout are those of the table, and `columns` virtual ones."""
    current = tuple(layouts[-1])
    return Table(
        id=TableId(1),
        version=len(layouts),
        schema="public",
        name="t",
        columns=(*current, *(columns or ())),
        primary=more.pop("primary", Index(PRIMARY, "t_pkey", (ColumnId(1),), True)),
        secondary=more.pop("secondary", ()),
        layouts=tuple(Layout(LayoutId(i + 1), tuple((c.id, c.type) for c in ls)) for i, ls in enumerate(layouts)),
        next_column_id=ColumnId(99),
        **more,
    )


def virtual(id_: int, type_: SqlType, text: str, *inputs: int) -> Column:
    expression = Expression(text, tuple(map(ColumnId, inputs)))
    return Column(ColumnId(id_), f"v{id_}", type_, hidden=True, generated=expression, virtual=True)


@dataclass
class World:
    folder: Path
    table: Table
    store: Store = field(init=False)
    files: list[FileSlice] = field(default_factory=list)
    inline: list[tuple[LayoutId, pa.Table]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = Store(self.folder / "files")
        self.interrupts = SessionInterrupts()

    def _columns(self, layout: int) -> tuple[tuple[ColumnId, SqlType], ...]:
        return self.table.stored_columns(self.table.primary, self.table.layouts[layout])

    def _arrow(self, layout: int, rows: Sequence[Row]) -> pa.Table:
        columns = self._columns(layout)
        types = dict(columns)
        codec = KeyCodec([types[c] for c in self.table.primary.key])
        ordered = sorted(rows, key=lambda row: codec.encode(tuple(row[c] for c in self.table.primary.key)))
        schema = schema_of(columns)
        arrays = [pa.array([row[c] for row in ordered], f.type) for (c, _), f in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def add_file(self, rows: Sequence[Row], layout: int = -1, superseded: Sequence[Row] = ()) -> None:
        """A file of live rows, and of rows with other keys that are not to be read."""
        table = self._arrow(layout, [*rows, *superseded])
        shape = replace(
            base_shape(self.table, self.table.primary),
            columns=self._columns(layout),
            layout_id=self.table.layouts[layout].id,
            row_group_rows=16,
        )
        (segment,) = SegmentWriter(self.store.files, shape, self.store.reserve).write(table)
        gone = {row[1] for row in superseded}
        positions = [i for i, key in enumerate(table.column("c1").to_pylist()) if key in gone]
        self.files.append(FileSlice(segment, np.array(positions, dtype=np.int64)))

    def add_inline(self, rows: Sequence[Row], layout: int = -1) -> None:
        self.inline.append((self.table.layouts[layout].id, self._arrow(layout, rows)))

    @property
    def source(self) -> IndexSource:
        return IndexSource(
            self.table, self.table.primary, GenerationId(5), SnapshotParts(tuple(self.files), tuple(self.inline))
        )

    def targets(self) -> list[BuiltIndex]:
        return [BuiltIndex(self.table, index) for index in self.table.secondary]

    @property
    def kernel_context(self) -> KernelContext:
        return KernelContext(
            self.store.warehouse, self.folder / "spill", self.store.reserve, self.interrupts, translate_error
        )

    def executor(self, sizes: Sizes = Sizes()) -> LocalExecutor:  # noqa: B008 - a value
        return LocalExecutor(self.kernel_context, sizes)

    def backfill(
        self,
        targets: Sequence[BuiltIndex],
        done: Sequence[UnitDone],
        report: Report,
        sizes: Sizes = Sizes(),  # noqa: B008
    ) -> tuple[Built, ...]:
        return backfill(self.source, targets, self.executor(sizes), self.store.warehouse, done, report)

    def read(self, segment: Segment) -> list[tuple[Any, ...]]:
        table = pq.read_table(self.store.warehouse.path(segment))
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def entries(self, built: Built) -> list[tuple[Any, ...]]:
        return [row for member in built.members for row in self.read(member.segment)]


def expected_entries(target: BuiltIndex, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """The oracle: the rows, with virtual values, that have entries in the index, in its order."""
    columns = [c for c, _ in target.shape.columns]
    types = dict(target.shape.columns)
    codec = KeyCodec([types[c] for c in target.shape.key])
    width = len(target.shape.key)
    return sorted((tuple(row[c] for c in columns) for row in rows), key=lambda entry: codec.encode(entry[:width]))


def assert_generation(world: World, target: BuiltIndex, built: Built, rows: Sequence[Row]) -> None:
    found, wanted = world.entries(built), expected_entries(target, rows)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert all(map(same, one, other)), (one, other)
    segments = [member.segment for member in built.members]
    assert sum(segment.rows for segment in segments) == len(wanted)
    for before, after in pairwise(segments):
        assert before.key_max < after.key_min
    for segment in segments:
        codec = KeyCodec([dict(target.shape.columns)[c] for c in target.shape.key])
        entries, width = world.read(segment), len(target.shape.key)
        assert segment.key_min == codec.encode(entries[0][:width])
        assert segment.key_max == codec.encode(entries[-1][:width])
        assert segment.index_id == target.index.id
        assert segment.layout_id == target.table.layout.id
        # The order of files that are to be merged does not matter.
        metadata = pq.read_metadata(world.store.warehouse.path(segment))
        assert len(metadata.row_group(0).sorting_columns) == len(target.shape.key)
        assert [f.name for f in pq.read_schema(world.store.warehouse.path(segment))] == [
            column_name(c) for c, _ in target.shape.columns
        ]


@contextmanager
def held(_: int) -> Iterator[None]:
    yield
