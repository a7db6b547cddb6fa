"""Excerpts of files in an object store: what they have, that a reader of anything else fails, when they are removed."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import duckdb
import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("obstore", reason="obstore is not installed (make setup)")
pytest.importorskip("moto", reason="moto is not installed (make setup)")

from seachange import errors
from seachange.model.ids import ColumnId, IndexId, LayoutId, SegmentId
from seachange.model.segments import Segment
from seachange.runtime.object_store import ObjectStore
from seachange.runtime.segment_cache import SegmentCache
from seachange.runtime.store_files import StoreFiles
from seachange.storage.arrow import schema_of
from seachange.storage.excerpts import ExcerptReader, Needed, ScannedFile, check_pages
from seachange.storage.keys import EntryRanges, KeyCodec
from seachange.storage.segment_footer import stored_segment
from seachange.storage.segment_reader import reading
from seachange.storage.segment_writer import SegmentShape, SegmentWriter
from seachange.storage.thrift import ThriftReader
from seachange.values.types import BIGINT, TEXT
from tests.support.s3 import S3Server, environment

COLUMNS = ((ColumnId(1), BIGINT), (ColumnId(2), BIGINT), (ColumnId(3), TEXT), (ColumnId(4), TEXT))
ROWS, GROUP_ROWS = 4_000, 400
NUMBERS = frozenset({"c2"})


def open_files(url: str, folder: Path, bytes_max: int = 1 << 30) -> StoreFiles:
    return StoreFiles(ObjectStore(url), SegmentCache(folder, bytes_max), ranged_bytes_min=1)


@pytest.fixture
def url(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in environment(s3_server.port).items():
        monkeypatch.setenv(name, value)
    return s3_server.create_place()


@pytest.fixture
def segment(url: str, tmp_path: Path) -> Segment:
    """Its text takes most of the file."""
    keys = list(range(ROWS))
    texts = [[Random(k + n).randbytes(200).hex() for k in keys] for n in (0, ROWS)]
    arrays = [pa.array(keys), pa.array([-k for k in keys]), *map(pa.array, texts)]
    rows = pa.Table.from_arrays(arrays, schema=schema_of(COLUMNS))
    shape = SegmentShape(COLUMNS, (ColumnId(1),), IndexId(1), LayoutId(1), row_group_rows=GROUP_ROWS)
    with closing(open_files(url, tmp_path / "writer")) as files:
        (written,) = SegmentWriter(files, shape, lambda _: [SegmentId(1)]).write(rows)
    return written


@pytest.fixture
def files(url: str, segment: Segment, tmp_path: Path) -> Iterator[StoreFiles]:
    with closing(open_files(url, tmp_path / "reader")) as opened:
        yield opened


def within(low: int, high: int) -> EntryRanges:
    codec = KeyCodec([BIGINT])
    return EntryRanges([(codec.encode((low,)), codec.encode((high,)))])


def read(file: ScannedFile, columns: str) -> list[tuple[object, ...]]:
    return duckdb.connect().execute(f"select {columns} from read_parquet('{file.path}')").fetchall()


def opened(reader: ExcerptReader, needed: Needed) -> ScannedFile:
    (file,) = reader.open([needed])
    assert file is not None
    return file


def test_excerpt_has_the_columns_and_nothing_else(files: StoreFiles, segment: Segment):
    file = opened(ExcerptReader(files, gap_bytes_max=0), Needed(segment, NUMBERS))
    assert read(file, "c2") == [(-k,) for k in range(ROWS)]
    for other in ("c1", "c3", "sum(c1) + sum(c2)"):
        with pytest.raises(duckdb.Error):
            duckdb.connect().execute(f"select {other} from read_parquet('{file.path}')").fetchall()
    assert files.facts().downloaded_bytes < segment.size_bytes / 2


def test_excerpt_has_the_row_groups_of_the_keys(files: StoreFiles, segment: Segment):
    file = opened(ExcerptReader(files, gap_bytes_max=0), Needed(segment, NUMBERS | {"c3"}, within(500, 1_300)))
    assert read(file, "c2") == [(-k,) for k in range(400, 1_600)]
    assert file.rows == ((400, 800), (800, 1_200), (1_200, 1_600))
    positions = np.array([5, 399, 400, 450, 1_599, 1_600, 3_999], np.int64)
    assert file.positions(positions).tolist() == [0, 50, 1_199]


def test_excerpt_serves_what_it_has(files: StoreFiles, segment: Segment):
    reader = ExcerptReader(files, gap_bytes_max=0)
    some = opened(reader, Needed(segment, NUMBERS | {"c1"}, within(500, 1_300)))
    assert opened(reader, Needed(segment, NUMBERS, within(900, 910))) == some
    more = opened(reader, Needed(segment, NUMBERS, within(1_590, 1_610)))
    assert more != some
    every = opened(reader, Needed(segment, NUMBERS))
    assert read(every, "c2") == [(-k,) for k in range(ROWS)]


def test_much_of_a_file_is_not_taken_by_parts(files: StoreFiles, segment: Segment):
    reader = ExcerptReader(files, gap_bytes_max=0)
    assert reader.open([Needed(segment, frozenset({"c1", "c2", "c3", "c4"}))]) == [None]
    # What was read before counts.
    opened(reader, Needed(segment, NUMBERS, within(0, 10)))
    assert any(
        reader.open([Needed(segment, NUMBERS | {"c3"}, within(n, n + 1))]) == [None] for n in range(0, ROWS, 350)
    )


def test_excerpts_that_are_in_use_stay(url: str, segment: Segment, tmp_path: Path):
    with closing(open_files(url, tmp_path / "small", bytes_max=4)) as files:
        reader = ExcerptReader(files, gap_bytes_max=0)
        with files.uses.using():
            file = opened(reader, Needed(segment, NUMBERS, within(0, 10)))
            files.tidy()
            assert Path(file.path).exists()
        files.tidy()
        assert not Path(file.path).exists()
        assert opened(reader, Needed(segment, NUMBERS, within(0, 10))) != file


def test_excerpts_go_with_their_file(files: StoreFiles, segment: Segment):
    reader = ExcerptReader(files, gap_bytes_max=0)
    with files.uses.using():
        file = opened(reader, Needed(segment, NUMBERS))
        files.delete([stored_segment(segment).name])
        assert not Path(file.path).exists()
    assert files.facts().excerpt_bytes == 0


def test_unfinished_excerpt_leaves_nothing(url: str, s3_server: S3Server, files: StoreFiles, segment: Segment):
    s3_server.request("DELETE", f"/{url.removeprefix('s3://')}/{stored_segment(segment).name}")
    with pytest.raises(errors.SegmentDamaged):
        ExcerptReader(files, gap_bytes_max=0).open([Needed(segment, NUMBERS)])
    assert [path.name for path in Path(files.facts().folder).glob("procs/*/*")] == [".lock"]


def test_each_bit_of_a_page_is_checked(url: str, s3_server: S3Server, segment: Segment):
    name = stored_segment(segment).name
    _, content = s3_server.request("GET", f"/{url.removeprefix('s3://')}/{name}")
    metadata = pa.parquet.read_metadata(pa.BufferReader(content)).row_group(0).column(2)
    start = metadata.dictionary_page_offset or metadata.data_page_offset
    chunk = content[start : start + metadata.total_compressed_size]
    check_pages(memoryview(chunk), name)
    random = Random(3)
    # The header of a page has no checksum.
    header = ThriftReader(chunk)
    header.struct()
    for place in random.sample(range(header.position, len(chunk)), 300):
        damaged = bytearray(chunk)
        damaged[place] ^= 1 << random.randrange(8)
        with pytest.raises(errors.SegmentDamaged), reading(name):
            check_pages(memoryview(damaged), name)
    for damaged in (bytearray(len(chunk)), bytearray(chunk[:-1])):
        with pytest.raises(errors.SegmentDamaged), reading(name):
            check_pages(memoryview(damaged), name)
