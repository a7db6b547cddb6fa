"""Manifests of a snapshot: which of the last snapshot's are kept, which are rewritten, and what is new.

**Invariant:** the live entries of a snapshot's manifests are exactly the files that it was given. A manifest is written
only if one of its files has gone or has other statistics, or for new files; all others are referred to as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from seachange.iceberg.avro_files import Record
from seachange.iceberg.statistics import NO_STATISTICS, FileStatistics

# The most files of a manifest: what is rewritten if one of them goes.
MANIFEST_FILES_MAX = 1_000
# The most manifests of a snapshot that have fewer files than they could; then they are merged.
SMALL_MANIFESTS_MAX = 20


class FileContent(IntEnum):
    DATA = 0
    POSITION_DELETES = 1


class EntryStatus(IntEnum):
    EXISTING = 0
    ADDED = 1
    DELETED = 2


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file as a manifest lists it. `snapshot` and `sequence` are those that added it; `referenced` is the data file
    that deletes are of, `offset` and `length` the place of a deletion vector in its file."""

    content: FileContent
    path: str
    format: str
    rows: int
    size_bytes: int
    referenced: str | None = None
    offset: int | None = None
    length: int | None = None
    snapshot: int = 0
    sequence: int = 0
    first_row_id: int | None = None
    statistics: FileStatistics = NO_STATISTICS


@dataclass(frozen=True, slots=True)
class ListedManifest:
    """A manifest as a manifest list refers to it, and its live files."""

    record: Record
    files: tuple[ListedFile, ...]

    @property
    def path(self) -> str:
        return str(self.record["manifest_path"])


@dataclass(frozen=True, slots=True)
class NewManifest:
    """The entries of a manifest that is to be written."""

    content: FileContent
    entries: tuple[tuple[EntryStatus, ListedFile], ...]


@dataclass(frozen=True, slots=True)
class ManifestPlan:
    kept: tuple[ListedManifest, ...]
    written: tuple[NewManifest, ...]

    def files(self, status: EntryStatus, content: FileContent) -> list[ListedFile]:
        """The files of the manifests that are written, by what happened to them."""
        entries = (entry for new in self.written if new.content is content for entry in new.entries)
        return [file for found, file in entries if found is status]


def plan_manifests(
    last: Iterable[ListedManifest], wanted: Mapping[str, ListedFile], content: FileContent
) -> ManifestPlan:
    """From the last snapshot's manifests of this content to those that list the wanted files, by path."""
    manifests = [manifest for manifest in last if manifest.files]
    whole = [manifest for manifest in manifests if all(wanted.get(file.path) == file for file in manifest.files)]
    broken = [manifest for manifest in manifests if manifest not in whole]
    small = [manifest for manifest in whole if len(manifest.files) < MANIFEST_FILES_MAX // 2]
    if len(small) > SMALL_MANIFESTS_MAX:
        whole = [manifest for manifest in whole if manifest not in small]
        broken += small
    known = {file.path for manifest in manifests for file in manifest.files}
    added = [file for path, file in wanted.items() if path not in known]
    kept_files = [wanted[file.path] for manifest in broken for file in manifest.files if file.path in wanted]
    gone = [file for manifest in broken for file in manifest.files if file.path not in wanted]
    entries = [
        *((EntryStatus.EXISTING, file) for file in kept_files),
        *((EntryStatus.DELETED, file) for file in gone),
    ]
    written = [*_cut(entries, content), *_cut([(EntryStatus.ADDED, file) for file in added], content)]
    return ManifestPlan(tuple(whole), tuple(written))


def _cut(entries: Sequence[tuple[EntryStatus, ListedFile]], content: FileContent) -> Iterable[NewManifest]:
    for first in range(0, len(entries), MANIFEST_FILES_MAX):
        yield NewManifest(content, tuple(entries[first : first + MANIFEST_FILES_MAX]))


def entry_record(status: EntryStatus, file: ListedFile, snapshot: int) -> Record:
    """As Avro writes it. What an added file inherits from its manifest is left out."""
    is_added = status is EntryStatus.ADDED
    statistics = file.statistics
    return {
        "status": int(status),
        "snapshot_id": file.snapshot if status is EntryStatus.EXISTING else snapshot,
        "sequence_number": None if is_added else file.sequence,
        "file_sequence_number": None if is_added else file.sequence,
        "data_file": {
            "content": int(file.content),
            "file_path": file.path,
            "file_format": file.format,
            "partition": {},
            "record_count": file.rows,
            "file_size_in_bytes": file.size_bytes,
            "value_counts": _pairs(statistics.values),
            "null_value_counts": _pairs(statistics.nulls),
            "lower_bounds": _pairs(statistics.lower),
            "upper_bounds": _pairs(statistics.upper),
            "first_row_id": None if is_added else file.first_row_id,
            "referenced_data_file": file.referenced,
            "content_offset": file.offset,
            "content_size_in_bytes": file.length,
        },
    }


def _pairs(found: Iterable[tuple[int, Any]]) -> list[Record] | None:
    return [{"key": key, "value": value} for key, value in found] or None


def _unpaired(found: Iterable[Record] | None) -> tuple[tuple[int, Any], ...]:
    return tuple((each["key"], each["value"]) for each in found or ())


def manifest_record(new: NewManifest, path: str, size_bytes: int, snapshot: int, first_row_id: int | None) -> Record:
    counts: dict[EntryStatus, tuple[int, int]] = {}
    for status, file in new.entries:
        files, rows = counts.get(status, (0, 0))
        counts[status] = files + 1, rows + file.rows
    names = {EntryStatus.ADDED: "added", EntryStatus.EXISTING: "existing", EntryStatus.DELETED: "deleted"}
    found = [(name, counts.get(status, (0, 0))) for status, name in names.items()]
    sequences = [file.sequence for status, file in new.entries if status is EntryStatus.EXISTING]
    return {
        "manifest_path": path,
        "manifest_length": size_bytes,
        "partition_spec_id": 0,
        "content": int(new.content),
        "sequence_number": snapshot,
        "min_sequence_number": min(sequences, default=snapshot),
        "added_snapshot_id": snapshot,
        **{f"{name}_files_count": files for name, (files, _) in found},
        **{f"{name}_rows_count": rows for name, (_, rows) in found},
        "first_row_id": first_row_id,
    }


def listed(new: NewManifest, record: Record, snapshot: int) -> ListedManifest:
    """A manifest that was written, with what its files inherit."""
    return read_manifest(record, [entry_record(status, file, snapshot) for status, file in new.entries])


def read_manifest(record: Record, entries: Iterable[Record]) -> ListedManifest:
    files: list[ListedFile] = []
    next_row_id = record.get("first_row_id")
    for entry in entries:
        if entry["status"] == EntryStatus.DELETED:
            continue
        file = _read_file(entry["data_file"])
        if file.first_row_id is None and next_row_id is not None:
            file = replace(file, first_row_id=next_row_id)
            next_row_id += file.rows
        sequence = entry["sequence_number"]
        files.append(
            replace(
                file,
                snapshot=entry["snapshot_id"],
                sequence=record["sequence_number"] if sequence is None else sequence,
            )
        )
    return ListedManifest(record, tuple(files))


def _read_file(found: Mapping[str, Any]) -> ListedFile:
    return ListedFile(
        content=FileContent(found["content"]),
        path=found["file_path"],
        format=found["file_format"],
        rows=found["record_count"],
        size_bytes=found["file_size_in_bytes"],
        referenced=found["referenced_data_file"],
        offset=found["content_offset"],
        length=found["content_size_in_bytes"],
        first_row_id=found["first_row_id"],
        # Manifests of older releases have no counts.
        statistics=FileStatistics(
            _unpaired(found.get("value_counts")),
            _unpaired(found.get("null_value_counts")),
            _unpaired(found["lower_bounds"]),
            _unpaired(found["upper_bounds"]),
        ),
    )
