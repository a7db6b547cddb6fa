"""A file other than the one that was written gives an error that names it, never rows."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from seachange import errors
from seachange.storage.segment_footer import segment_name
from seachange.values.types import BIGINT, TEXT
from tests.storage.samples import Store


def flip_in_the_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


def overwrite(path: Path) -> None:
    path.write_bytes(b"\x00" * path.stat().st_size)


DAMAGES = [
    (flip_in_the_middle, "checksum differs"),
    (overwrite, "checksum differs"),
    (truncate, "truncated"),
    (empty, "truncated: 0 bytes"),
    (lengthen, "too long"),
    (Path.unlink, "missing"),
]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


@pytest.fixture
def shape(store):
    return store.shape((BIGINT, TEXT), key=(0,), rows_max=100)


@pytest.fixture
def segments(store, shape):
    return store.write(shape, [(i, f"t{i}") for i in range(200)])


def damage_of(error) -> str:
    assert error.value.sqlstate == "XX001"
    return str(error.value)


@pytest.mark.parametrize(("damage", "detail"), DAMAGES)
def test_damage_is_found_before_the_first_use(store, shape, segments, damage, detail):
    damage(Path(store.files.path(segment_name(segments[0].id))))
    for use in (store.warehouse.path, lambda segment: store.reader(shape, segment)):
        with pytest.raises(errors.SegmentDamaged) as error:
            use(segments[0])
        assert segment_name(segments[0].id) in damage_of(error)
        assert detail in damage_of(error)
    assert store.reader(shape, segments[1]).find((100,)) == (0, (100, "t100"))


def test_a_swapped_file_is_recognised(store, segments):
    first, second = (Path(store.files.path(segment_name(s.id))) for s in segments)
    first.write_bytes(second.read_bytes())
    with pytest.raises(errors.SegmentDamaged) as error:
        store.warehouse.paths(segments)
    # The two may differ in size, which is found first.
    assert segment_name(segments[0].id) in damage_of(error)


def test_a_swapped_file_of_the_same_size_is_named_after_its_owner(store):
    shape = store.shape((BIGINT,), key=(0,), rows_max=8)
    one, other = store.write(shape, [(i,) for i in range(8)] + [(i + 2**40,) for i in range(8)])
    shutil.copy(store.files.path(segment_name(other.id)), store.files.path(segment_name(one.id)))
    assert one.size_bytes == other.size_bytes
    with pytest.raises(errors.SegmentDamaged) as error:
        store.warehouse.path(one)
    assert f"belongs to another segment, {other.id}" in damage_of(error)


def test_a_file_that_vanishes_after_its_first_use_is_missed(store, segments):
    store.warehouse.paths(segments)
    Path(store.files.path(segment_name(segments[0].id))).unlink()
    with pytest.raises(errors.SegmentDamaged, match="missing"):
        store.warehouse.paths(segments)


def test_a_file_that_is_cut_short_under_an_open_reader_is_an_error(store, shape, segments):
    """Were the file mapped into memory, the process would die of a signal."""
    reader = store.reader(shape, segments[0])
    empty(Path(store.files.path(segment_name(segments[0].id))))
    with pytest.raises(errors.SegmentDamaged) as error:
        reader.find((50,))
    assert segment_name(segments[0].id) in damage_of(error)


def test_a_deleted_segment_is_forgotten(store, shape, segments):
    store.reader(shape, segments[0]).find((1,))
    store.warehouse.delete([segments[0].id])
    assert segment_name(segments[0].id) not in store.files.names()
    with pytest.raises(errors.SegmentDamaged, match="missing"):
        store.reader(shape, segments[0])


def test_verification_happens_once(store, segments):
    path = Path(store.warehouse.path(segments[0]))
    flip_in_the_middle(path)
    assert store.warehouse.path(segments[0]) == str(path)
    store.warehouse.forget(segments[0].id)
    with pytest.raises(errors.SegmentDamaged, match="checksum"):
        store.warehouse.path(segments[0])


def test_threads_share_readers(store, shape, segments):
    wrong: list[object] = []

    def look_up(start: int) -> None:
        for i in range(200):
            key = (start * 31 + i) % 200
            found = store.reader(shape, segments[key // 100]).find((key,))
            if found != (key % 100, (key, f"t{key}")):
                wrong.append((key, found))
            if i % 50 == 0:
                store.warehouse.forget(segments[0].id)

    threads = [threading.Thread(target=look_up, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
