"""The files of an index, against the catalog's record of them.

The node's caches are not used: every byte is read again.

**Invariant:** only what was read of a file, or that it is not there, is an anomaly. A store or a folder that cannot be
reached, or a full disk, ends the check with its error.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.model.ids import SegmentId
from seachange.model.segments import GenerationMember, IndexContents, Segment, SegmentKind
from seachange.runtime.checksum import checksum_of
from seachange.runtime.filesystem import TEMPORARY_PREFIX, FileSystem
from seachange.storage.arrow import column_name, schema_of
from seachange.storage.batches import is_damaged
from seachange.storage.segment_footer import decode_footer, segment_name, stored_segment
from seachange.verify.anomalies import Anomaly, AnomalyKind
from seachange.verify.subject import CheckedIndex

# Anomalies of a file that make it impossible to compare its rows.
FATAL = frozenset(
    {
        *(
            AnomalyKind.FILE_MISSING,
            AnomalyKind.FILE_DAMAGED,
            AnomalyKind.FILE_COLUMNS,
            AnomalyKind.UNKNOWN_LAYOUT,
            AnomalyKind.BAD_DELETED,
        ),
        AnomalyKind.ROWS_DAMAGED,
    }
)
_NAME = re.compile(r"([0-9a-f]{16,})\.(parquet|arrow)")
_NAMES_MAX = 5


def segments_of(contents: IndexContents) -> Iterator[Segment]:
    for member in contents.generation.members if contents.generation else ():
        yield member.segment
    for delta in contents.deltas:
        yield from delta.segments


def check_files(subject: CheckedIndex, contents: IndexContents, files: FileSystem) -> list[Anomaly]:
    found = [a for segment in segments_of(contents) for a in _check_segment(subject, segment, files)]
    for member in contents.generation.members if contents.generation else ():
        found += _check_deleted(subject, member)
    for delta in contents.deltas:
        for layout in {batch.layout_id for batch in delta.batches} - set(subject.table.layout_by_id):
            found.append(subject.anomaly(AnomalyKind.UNKNOWN_LAYOUT, detail=f"layout {layout}"))
        if any(is_damaged(batch) for batch in delta.batches):
            found.append(
                subject.anomaly(AnomalyKind.ROWS_DAMAGED, detail=f"those of commit {delta.seq} by their checksum")
            )
    return found


def _check_segment(subject: CheckedIndex, segment: Segment, files: FileSystem) -> Iterator[Anomaly]:
    name = segment_name(segment.id)
    size = files.size(name)
    if size is None:
        yield subject.anomaly(AnomalyKind.FILE_MISSING, detail=name)
        return
    if size != segment.size_bytes:
        yield subject.anomaly(
            AnomalyKind.FILE_DAMAGED, detail=f"{name} has {size} bytes instead of {segment.size_bytes}"
        )
        return
    try:
        recorded = stored_segment(segment)
        # The copy on this machine may be whole although the file in the store is not.
        if not files.refetch(recorded):
            files.fetch([recorded])
        with files.open_input(name) as source:
            checksum = checksum_of(source)
        if checksum != segment.checksum:
            yield subject.anomaly(AnomalyKind.FILE_DAMAGED, detail=f"{name} has another checksum")
            return
        with files.open_input(name) as source:
            yield from _check_content(subject, segment, pq.ParquetFile(source))
    except (pa.ArrowException, OSError, ValueError, errors.SegmentDamaged) as problem:
        yield subject.anomaly(AnomalyKind.FILE_DAMAGED, detail=f"{name}: {problem}")
    except errors.InputOutputError as problem:
        # Everything else that prevents a file from being read says nothing about the file.
        if not _is_unreadable(problem.__cause__):
            raise
        yield subject.anomaly(AnomalyKind.FILE_DAMAGED, detail=f"{name}: {problem}")


def _is_unreadable(cause: BaseException | None) -> bool:
    """Whether the disk has lost the bytes."""
    return isinstance(cause, OSError) and cause.errno == errno.EIO


def _check_content(subject: CheckedIndex, segment: Segment, file: pq.ParquetFile) -> Iterator[Anomaly]:
    name = segment_name(segment.id)
    footer = decode_footer(file.metadata.metadata)
    claimed = (footer.segment_id, footer.index_id, footer.layout_id) if footer else None
    recorded = (segment.id, segment.index_id, segment.layout_id)
    if claimed != recorded or segment.index_id != subject.index.id:
        yield subject.anomaly(AnomalyKind.FILE_DIFFERS, detail=f"{name} says it is {claimed}, the catalog {recorded}")
    if file.metadata.num_rows != segment.rows:
        detail = f"{name} has {file.metadata.num_rows} rows instead of {segment.rows}"
        yield subject.anomaly(AnomalyKind.FILE_DIFFERS, detail=detail)
    problem = _check_columns(subject, segment, file)
    if problem is not None:
        yield problem
        return
    yield from _check_order(subject, segment, file)


def _check_columns(subject: CheckedIndex, segment: Segment, file: pq.ParquetFile) -> Anomaly | None:
    layout = subject.table.layout_by_id.get(segment.layout_id)
    if layout is None:
        return subject.anomaly(AnomalyKind.UNKNOWN_LAYOUT, detail=f"layout {segment.layout_id}")
    columns = subject.table.stored_columns(subject.index, layout)
    if segment.kind is SegmentKind.TOMBSTONES:
        columns = columns[: len(subject.key)]
    expected, found = schema_of(columns), file.schema_arrow
    if found.names != expected.names or found.types != expected.types:
        names = ", ".join(f"{field.name} {field.type}" for field in found)
        return subject.anomaly(AnomalyKind.FILE_COLUMNS, detail=f"{segment_name(segment.id)} has {names}")
    return None


def _check_order(subject: CheckedIndex, segment: Segment, file: pq.ParquetFile) -> Iterator[Anomaly]:
    """Keys rise strictly, from the recorded first to the recorded last."""
    codec, names = subject.codec(), [column_name(column.id) for column in subject.key]
    first = last = b""
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, columns=names, use_threads=False)
        for key in zip(*[table.column(name).to_pylist() for name in names], strict=True):
            encoded = codec.encode(key)
            if encoded <= last:
                yield subject.anomaly(AnomalyKind.UNSORTED, key, segment_name(segment.id))
                return
            first, last = first or encoded, encoded
    if (first, last) != (segment.key_min, segment.key_max):
        detail = f"{segment_name(segment.id)} does not start and end with the recorded keys"
        yield subject.anomaly(AnomalyKind.FILE_DIFFERS, detail=detail)


def _check_deleted(subject: CheckedIndex, member: GenerationMember) -> Iterator[Anomaly]:
    name = segment_name(member.segment.id)
    if len(member.deleted) % 4:
        yield subject.anomaly(AnomalyKind.BAD_DELETED, detail=f"{len(member.deleted)} bytes for {name}")
        return
    positions = np.frombuffer(member.deleted, dtype="<u4").astype(np.int64)
    if len(positions) and (positions[-1] >= member.segment.rows or (np.diff(positions) <= 0).any()):
        detail = f"up to {positions.max()} of {member.segment.rows} rows of {name}, in rising order or not"
        yield subject.anomaly(AnomalyKind.BAD_DELETED, detail=detail)


# Stray files: the files of a database's folder, against everything that its catalog knows.
#
# **Invariant:** a file of a live writer is never reported. Its id is in the catalog before the file exists, and is
# removed only after the file was deleted: so the folder is listed first, then the catalog is read, and a file that the
# catalog does not know is checked once more.
def check_folder(catalog: Catalog, files: FileSystem) -> tuple[list[Anomaly], list[str]]:
    """Files that nothing refers to: those that will never be deleted are anomalies, those that garbage collection is
    going to delete are remarks."""
    names = files.names()
    known = catalog.known_files()
    needed = {file.id for file in known.attached} | known.in_use
    garbage = [name for name in names if _id_of(name) in known.garbage]
    strays = [name for name in names if _id_of(name) not in needed and name not in garbage]
    found = [
        Anomaly(AnomalyKind.FILE_UNREFERENCED, "", "", detail=name) for name in strays if files.size(name) is not None
    ]
    return found, list(_remarks(garbage))


def _remarks(garbage: list[str]) -> Iterator[str]:
    if garbage:
        more = ", ..." if len(garbage) > _NAMES_MAX else ""
        yield (
            f"{len(garbage)} files that nothing refers to are left for garbage collection: "
            f"{', '.join(garbage[:_NAMES_MAX])}{more}"
        )


def _id_of(name: str) -> SegmentId | None:
    """None if it is no name that the engine gives."""
    parsed = _NAME.fullmatch(name.removeprefix(TEMPORARY_PREFIX))
    return SegmentId(int(parsed[1], 16)) if parsed else None
