"""Shuffle files: Arrow batches on their way to a sort, partitioned into key ranges and unsorted within them.

Each file is read once, a range at a time, and soon deleted. It is not made durable, since its source still exists.

**Invariant:** in a file with n ranges, batch b holds rows of range b mod n.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from seachange import errors
from seachange.model.ids import SegmentId
from seachange.runtime.checksum import checksum_of
from seachange.runtime.filesystem import FileSystem, StoredFile
from seachange.storage.segment_reader import reading
from seachange.storage.segment_writer import writing


def shuffle_name(id_: SegmentId) -> str:
    return f"{id_:016x}.arrow"


@dataclass(frozen=True, slots=True)
class ShuffleFile:
    """`counts` are the rows of each range. Its id is reserved as a segment id that no segment will have."""

    id: SegmentId
    size_bytes: int
    checksum: bytes
    counts: tuple[int, ...]

    @property
    def stored(self) -> StoredFile:
        return StoredFile(shuffle_name(self.id), self.size_bytes, self.checksum)


class ShuffleWriter:
    """A context manager: an unfinished file is removed."""

    def __init__(self, files: FileSystem, id_: SegmentId, schema: pa.Schema, ranges: int) -> None:
        self._files = files
        self._id = id_
        self._schema = schema
        self._counts = np.zeros(ranges, dtype=np.int64)
        self._path = files.temporary_path(shuffle_name(id_))

    def __enter__(self) -> ShuffleWriter:
        with writing(shuffle_name(self._id)):
            self._sink = pa.OSFile(self._path, "wb")
            self._writer = pa.ipc.new_file(self._sink, self._schema)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._sink.close()
        if kind is not None:
            with suppress(errors.Error):
                self._files.discard(shuffle_name(self._id))

    def write(self, rows: pa.RecordBatch, places: NDArray[np.uint16]) -> None:
        """`places` are the ranges of the rows; a number above the last range means that the row is skipped."""
        ranges = len(self._counts)
        counts = np.bincount(places, minlength=ranges + 1)[:ranges]
        # Stable, which for small numbers is a radix sort.
        order = np.argsort(places, kind="stable")[: counts.sum()]
        partitioned = rows.take(pa.array(order))
        start = 0
        with writing(shuffle_name(self._id)):
            for count in counts.tolist():
                self._writer.write_batch(partitioned.slice(start, count))
                start += count
        self._counts += counts

    def finish(self) -> ShuffleFile:
        name = shuffle_name(self._id)
        with writing(name):
            self._writer.close()
            self._sink.close()
            with pa.OSFile(self._path) as written:
                size_bytes, checksum = written.size(), checksum_of(written)
        self._files.publish(name, durable=False)
        return ShuffleFile(self._id, size_bytes, checksum, tuple(self._counts.tolist()))


def read_range(files: FileSystem, file: ShuffleFile, number: int) -> Iterator[pa.RecordBatch]:
    name = shuffle_name(file.id)
    files.fetch([file.stored])
    with files.open_input(name) as source, reading(name):
        reader = pa.ipc.open_file(source)
        for place in range(number, reader.num_record_batches, len(file.counts)):
            yield reader.get_batch(place)
