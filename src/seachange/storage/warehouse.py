"""The segment files of a node: each is verified before its first use, then read through cached readers.

**Invariant:** no row is read from a file whose size and checksum are not those that the catalog recorded; of a file
that is read by parts, the size, the id of the segment and the checksum of each page are compared.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence, Set
from glob import escape

import pyarrow as pa
import pyarrow.parquet as pq

from seachange import errors
from seachange.model.ids import ColumnId, SegmentId
from seachange.model.segments import Segment
from seachange.runtime.checksum import checksum_of
from seachange.runtime.filesystem import FileSystem, StoredFile
from seachange.runtime.nonblocking import may_wait
from seachange.runtime.ranged_file import RangedFile
from seachange.storage.excerpts import ExcerptReader, Needed, ScannedFile
from seachange.storage.patched import PatchedColumns
from seachange.storage.row_groups import RowGroupCache
from seachange.storage.segment_footer import decode_footer, segment_name, stored_segment
from seachange.storage.segment_reader import SegmentReader, reading
from seachange.storage.shuffle_file import ShuffleFile, shuffle_name
from seachange.values.types import SqlType

# Each open reader holds a file descriptor.
READERS_MAX = 256
DECODED_BYTES_MAX = 256 << 20
PATCHED_BYTES_MAX = 256 << 20

KeyColumnTypes = Sequence[tuple[ColumnId, SqlType]]


class Warehouse:
    def __init__(
        self,
        files: FileSystem,
        readers_max: int = READERS_MAX,
        decoded_bytes_max: int = DECODED_BYTES_MAX,
        patched_bytes_max: int = PATCHED_BYTES_MAX,
    ) -> None:
        self.files = files
        self.patched = PatchedColumns(files, patched_bytes_max)
        self._excerpts = ExcerptReader(files)
        self._decoded = RowGroupCache(decoded_bytes_max)
        self._readers_max = readers_max
        self._readers: OrderedDict[tuple[object, ...], SegmentReader] = OrderedDict()
        self._verified: dict[SegmentId, bytes] = {}
        self._lock = threading.Lock()

    def name(self, segment_id: SegmentId) -> str:
        return segment_name(segment_id)

    def path(self, segment: Segment) -> str:
        """The path of the segment's file, after it has been verified."""
        return self._whole([segment])[0]

    def paths(self, segments: Iterable[Segment]) -> list[str]:
        """The paths for DuckDB, which takes them for patterns: they can be opened until the readers that have begun now
        have ended (`FileUses`)."""
        return [escape(path) for path in self._whole(list(segments))]

    def scanned(self, wanted: Sequence[Needed]) -> list[ScannedFile]:
        """The files to scan, valid as `paths` says. Of a large one that is elsewhere only what is needed is
        transferred, unless that is most of it."""
        found = self._excerpts.open(wanted)
        whole = [needed.segment for needed, file in zip(wanted, found, strict=True) if file is None]
        paths = iter(self._whole(whole))
        return [
            ScannedFile(segment_name(needed.segment.id), next(paths)) if file is None else file
            for needed, file in zip(wanted, found, strict=True)
        ]

    def check_shuffle_files(self, files: Iterable[ShuffleFile]) -> None:
        """Raises if one of the files is damaged."""
        self._whole(list(files))

    def footers(self, segments: Sequence[Segment]) -> list[pq.FileMetaData]:
        """What the files say of their columns and row groups. Of a large one that is elsewhere only its end is
        transferred."""
        ranged = [self.files.ranges(stored_segment(segment)) for segment in segments]
        whole = iter(self._whole([segment for segment, part in zip(segments, ranged, strict=True) if part is None]))
        return [
            _footer(segment, next(whole) if part is None else part)
            for segment, part in zip(segments, ranged, strict=True)
        ]

    def reader(self, segment: Segment, key: KeyColumnTypes) -> SegmentReader:
        """A reader for lookups by `key`: the entry key's columns, with the types in which keys are looked up."""
        name = (segment.id, *key)
        with self._lock:
            found = self._readers.get(name)
            if found is not None and not (found.is_ranged and self.files.ranges(stored_segment(segment)) is None):
                self._readers.move_to_end(name)
                return found
        may_wait()
        opened = SegmentReader(segment, self._opened(segment), key, self._decoded)
        with self._lock:
            # Another thread may have opened it in the meantime; both are equivalent.
            kept = self._readers.get(name, opened)
            if kept.is_ranged and not opened.is_ranged:
                kept = opened
            self._readers[name] = kept
            while len(self._readers) > self._readers_max:
                self._readers.popitem(last=False)
        return kept

    def _opened(self, segment: Segment) -> pa.NativeFile | RangedFile:
        """Of a large file that is elsewhere, only what is looked up is transferred."""
        ranged = self.files.ranges(stored_segment(segment))
        if ranged is not None:
            return ranged
        self.path(segment)
        return self.files.open_input(segment_name(segment.id))

    def remember(self, files: Iterable[Segment | ShuffleFile]) -> None:
        """Marks files that this process has written and read back as verified."""
        self._verified.update((file.id, file.checksum) for file in files)

    def forget(self, segment_id: SegmentId) -> None:
        """Drops everything known of a segment; its file stays."""
        self.release({segment_id})
        self._verified.pop(segment_id, None)
        self._excerpts.forget(segment_id)

    def release(self, segment_ids: Set[SegmentId]) -> None:
        """Closes the files, and frees what was read from them. They can be read again."""
        with self._lock:
            for name in [name for name in self._readers if name[0] in segment_ids]:
                del self._readers[name]
        for segment_id in segment_ids:
            self._decoded.forget(segment_id)
            self.patched.forget(segment_id)

    def tidy(self) -> None:
        """Called from time to time. A file that the cache of this machine has removed takes room while it is open."""
        self.files.tidy()
        with self._lock:
            for name, reader in list(self._readers.items()):
                if not reader.is_ranged and not self.files.keeps(reader.name):
                    del self._readers[name]

    def size(self, segment_id: SegmentId) -> int:
        """The size of a file as it is stored; 0 if there is none."""
        return self.files.size(segment_name(segment_id)) or self.files.size(shuffle_name(segment_id)) or 0

    def delete(self, segment_ids: Sequence[SegmentId]) -> None:
        for segment_id in segment_ids:
            self.forget(segment_id)
        # An id may have been reserved for either.
        self.files.delete([name(id_) for id_ in segment_ids for name in (segment_name, shuffle_name)])

    def close(self) -> None:
        """Closes every open file."""
        with self._lock:
            self._readers.clear()

    def _whole(self, files: Sequence[Segment | ShuffleFile]) -> list[str]:
        stored = [_stored(file) for file in files]
        paths = self.files.fetch(stored)
        for file, recorded in zip(files, stored, strict=True):
            if self._verified.get(file.id) != file.checksum:
                self._verify(file, recorded)
        return paths

    def _verify(self, file: Segment | ShuffleFile, recorded: StoredFile) -> None:
        try:
            self._verify_checksum(file, recorded.name)
        except errors.SegmentDamaged:
            # A copy on this machine can be replaced.
            if not self.files.refetch(recorded):
                raise
        self._verified[file.id] = file.checksum

    def _verify_checksum(self, file: Segment | ShuffleFile, name: str) -> None:
        with self.files.open_input(name) as source, reading(name):
            found = checksum_of(source)
        if found == file.checksum:
            return
        owner = self._owner(name)
        if owner not in (None, file.id):
            raise errors.SegmentDamaged(file=name, detail=f"it belongs to another segment, {owner}")
        raise errors.SegmentDamaged(file=name, detail="its checksum differs from the recorded one")

    def _owner(self, name: str) -> SegmentId | None:
        """The segment that a file with the wrong checksum says it is, as far as it can be read."""
        try:
            with self.files.open_input(name) as source:
                footer = decode_footer(pq.read_metadata(source).metadata)
        except (pa.ArrowException, OSError, ValueError, errors.Error):
            return None
        return footer.segment_id if footer else None


def _footer(segment: Segment, source: str | RangedFile) -> pq.FileMetaData:
    name = segment_name(segment.id)
    with reading(name):
        found = pq.read_metadata(source if isinstance(source, str) else pa.PythonFile(source, mode="r"))
        footer = decode_footer(found.metadata)
    if footer is None or footer.segment_id != segment.id:
        raise errors.SegmentDamaged(file=name, detail="it belongs to another segment")
    return found


def _stored(file: Segment | ShuffleFile) -> StoredFile:
    return stored_segment(file) if isinstance(file, Segment) else file.stored
