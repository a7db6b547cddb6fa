"""A failing write names the file and the reason, leaves nothing behind, and succeeds when it is retried."""

import errno
import os
import subprocess

import pytest

from seachange import errors
from seachange.runtime.faults import FAULTS
from seachange.storage.segment_footer import segment_name
from seachange.storage.segment_writer import SegmentWriter
from seachange.values.types import BIGINT, TEXT, Kind, SqlType
from tests.storage.samples import Store, table_of


@pytest.fixture
def store(tmp_path):
    yield Store(tmp_path / "warehouse")
    FAULTS.disarm()


def rows(count):
    return [(i, f"t{i}") for i in range(count)]


def refuse(code):
    def act():
        raise OSError(code, os.strerror(code))

    return act


@pytest.mark.parametrize(("code", "error"), [(errno.ENOSPC, errors.DiskFull), (errno.EIO, errors.InputOutputError)])
@pytest.mark.parametrize("point", ["segment.written", "segment.synced", "segment.renamed", "segment.published"])
@pytest.mark.parametrize("occurrence", [1, 3])
def test_a_refused_step_leaves_no_file(store, point, code, error, occurrence):
    shape = store.shape((BIGINT, TEXT), key=(0,), rows_max=50)
    FAULTS.arm(point, refuse(code), occurrence)
    with pytest.raises(error) as raised:
        store.write(shape, rows(300))
    assert ".parquet" in str(raised.value)
    assert store.files.names() == []
    segments = store.write(shape, rows(300))
    assert sum(segment.rows for segment in segments) == 300
    assert store.files.names() == [segment_name(segment.id) for segment in segments]


def test_a_source_that_fails_leaves_no_file(store):
    shape = store.shape((BIGINT, TEXT), key=(0,), rows_max=50)

    def batches():
        yield from table_of(shape, rows(120)).to_batches()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        SegmentWriter(store.files, shape, store.reserve).write(batches())
    assert store.files.names() == []


def test_a_refused_reservation_leaves_no_file(store):
    shape = store.shape((BIGINT, TEXT), key=(0,), rows_max=50)
    left = [3]

    def reserve(count):
        left[0] -= 1
        if not left[0]:
            raise errors.StaleNode(node="n")
        return store.reserve(count)

    with pytest.raises(errors.StaleNode):
        SegmentWriter(store.files, shape, reserve).write(table_of(shape, rows(300)))
    assert store.files.names() == []


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_that_is_really_full(small_disk):
    store = Store(small_disk / "warehouse")
    shape = store.shape((BIGINT, SqlType(Kind.BYTEA)), key=(0,), row_group_rows=1_000, rows_max=20_000)
    incompressible = [(i, os.urandom(100)) for i in range(40_000)]
    with pytest.raises(errors.DiskFull) as raised:
        store.write(shape, incompressible)
    assert ".parquet" in str(raised.value)
    assert store.files.names() == []
    (segment,) = store.write(shape, incompressible[:1_000])
    assert store.reader(shape, segment).find((999,)) == (999, incompressible[999])
