"""Columns of touched files in memory: kept while nothing changes, bounded, and never text."""

import numpy as np
import pyarrow as pa
import pytest

from seachange.model.ids import ColumnId, IndexId, LayoutId, SegmentId
from seachange.runtime.filesystem import LocalFileSystem
from seachange.storage.arrow import schema_of
from seachange.storage.patched import PatchedColumns, TouchedFile, in_memory
from seachange.storage.segment_footer import segment_name
from seachange.storage.segment_writer import SegmentShape, SegmentWriter
from seachange.values.types import BIGINT, TEXT

COLUMNS = ((ColumnId(1), BIGINT), (ColumnId(2), BIGINT), (ColumnId(3), TEXT))
ROWS = 100
SCHEMA = pa.schema([("c2", pa.int64())])
BYTES = 8 * ROWS


@pytest.fixture
def files(tmp_path):
    return LocalFileSystem(tmp_path)


@pytest.fixture
def segments(files):
    shape = SegmentShape(COLUMNS, (ColumnId(1),), IndexId(1), LayoutId(1), rows_max=ROWS, row_group_rows=30)
    ids = iter(range(1, 10))
    keys = list(range(3 * ROWS))
    arrays = [pa.array(keys), pa.array([-k for k in keys]), pa.array([str(k) for k in keys])]
    rows = pa.Table.from_arrays(arrays, schema=schema_of(COLUMNS))
    return SegmentWriter(files, shape, lambda count: [SegmentId(next(ids)) for _ in range(count)]).write(rows)


def touched(segment, *positions):
    return TouchedFile(segment, np.array(positions, np.int64), segment_name(segment.id))


def values(patched, *wanted):
    return [table.column("c2").to_pylist() for table in patched.tables(wanted, SCHEMA)]


def test_superseded_rows_are_left_out_in_order(files, segments):
    patched = PatchedColumns(files, 10 * BYTES)
    first, second = values(patched, touched(segments[0], 99, 0), touched(segments[1], 50))
    assert first == [-k for k in range(1, 99)]
    assert second == [-k for k in range(100, 200) if k != 150]


def test_a_column_is_read_once_for_each_number_of_superseded_rows(files, segments):
    patched = PatchedColumns(files, 10 * BYTES)
    (before,) = patched.tables([touched(segments[0], 5)], SCHEMA)
    (again,) = patched.tables([touched(segments[0], 5)], SCHEMA)
    assert again.column("c2").chunk(0).buffers()[1].address == before.column("c2").chunk(0).buffers()[1].address
    assert values(patched, touched(segments[0], 5, 6)) == [[-k for k in range(ROWS) if k not in (5, 6)]]
    assert before.num_rows == ROWS - 1


def test_memory_is_bounded(files, segments):
    patched = PatchedColumns(files, 2 * BYTES)
    wanted = [touched(segment, 1) for segment in segments]
    assert patched.has_room(segments[:2], SCHEMA.types)
    assert not patched.has_room(segments, SCHEMA.types)
    assert not patched.has_room(segments[:1], [pa.string()])
    # Even if it is asked for more than there is room for, nothing is missing.
    assert [len(column) for column in values(patched, *wanted)] == [ROWS - 1] * 3
    assert patched.nbytes <= 2 * BYTES


def test_nothing_is_kept_of_a_forgotten_segment(files, segments):
    patched = PatchedColumns(files, 10 * BYTES)
    values(patched, touched(segments[0], 1))
    patched.forget(segments[0].id)
    assert patched.nbytes == 0


@pytest.mark.parametrize(
    ("type_", "kept"),
    [
        (pa.decimal128(18, 2), pa.decimal64(18, 2)),
        (pa.decimal128(19, 2), pa.decimal128(19, 2)),
        (pa.int32(), pa.int32()),
        (pa.string(), pa.string()),
    ],
)
def test_decimals_are_kept_as_narrow_as_they_can_be(type_, kept):
    assert in_memory(type_) == kept
