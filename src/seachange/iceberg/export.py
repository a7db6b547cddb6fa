"""The export of a table: from its snapshot, and the last export, to the files that readers of Iceberg need.

**Invariant:** a file is named only by files that are published after it, and the metadata file is the last: a crash
leaves files that nothing refers to, which the next export of the table sweeps.

**Invariant:** the positions that a segment has lost only grow with the sequence, so a vector with as many positions as
before is the same vector.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import xxhash

from seachange.iceberg import avro_files, deletes, metadata
from seachange.iceberg.catalog_rows import encode_rows, shape_rows
from seachange.iceberg.folder import TableFolder
from seachange.iceberg.manifests import (
    FileContent,
    ListedFile,
    ListedManifest,
    ManifestPlan,
    NewManifest,
    entry_record,
    listed,
    manifest_record,
    plan_manifests,
    read_manifest,
)
from seachange.iceberg.metadata import Metadata
from seachange.iceberg.obstacles import check_files
from seachange.iceberg.statistics import FileStatistics, read_statistics
from seachange.iceberg.table_schema import DEFAULTS_FORMAT, map_columns
from seachange.model.ids import DescriptorId, Seq
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor
from seachange.model.segments import Segment
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.warehouse import Warehouse

_PARQUET = "PARQUET"
_PUFFIN = "PUFFIN"


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table at a sequence. `address` gives the address of a segment's file."""

    table: Table
    objects: Mapping[DescriptorId, Descriptor]
    parts: SnapshotParts
    seq: Seq
    uuid: str
    format_version: int
    address: Callable[[Segment], str]
    warehouse: Warehouse


@dataclass(frozen=True, slots=True)
class Exported:
    """What was exported last: the metadata, the address of its file, and the manifests of the current snapshot."""

    metadata: Metadata
    address: str
    manifests: tuple[ListedManifest, ...]

    @property
    def snapshot(self) -> int:
        return int(self.metadata["current-snapshot-id"])

    @property
    def snapshots(self) -> frozenset[int]:
        return frozenset(s["snapshot-id"] for s in self.metadata["snapshots"])


@dataclass(frozen=True, slots=True)
class Occasion:
    """When an export is made: the snapshots that stay, the age of metadata files that may go if there are many, and a
    new name."""

    now_ms: int
    retained: frozenset[int]
    oldest_ms: int
    token: str


def read_export(folder: TableFolder, address: str) -> Exported | None:
    """The export whose metadata is at an address; None if files are missing, as in a restored database."""
    content = folder.read(address)
    if content is None:
        return None
    found: Metadata = json.loads(content)
    current = next(s for s in found["snapshots"] if s["snapshot-id"] == found["current-snapshot-id"])
    manifests = _read_manifests(folder, current["manifest-list"])
    return None if manifests is None or found["location"] != folder.location else Exported(found, address, manifests)


def _read_manifests(folder: TableFolder, manifest_list: str) -> tuple[ListedManifest, ...] | None:
    content = folder.read(manifest_list)
    if content is None:
        return None
    manifests = []
    for record in avro_files.decode(content):
        entries = folder.read(record["manifest_path"])
        if entries is None:
            return None
        manifests.append(read_manifest(record, avro_files.decode(entries)))
    return tuple(manifests)


def export_table(source: TableSource, last: Exported | None, folder: TableFolder, occasion: Occasion) -> Exported:
    """The export at the source's sequence; `last` itself if nothing has changed. Raises Unmapped."""
    if last is not None and not _continues(last, source):
        last = None
    files = [file for file in source.parts.files if len(file.superseded) < file.segment.rows]
    fields = map_columns(source.table, source.objects, (f.segment.layout_id for f in files), source.format_version)
    before = _by_path(last)
    new = [file.segment for file in files if source.address(file.segment) not in before]
    check_files(source.table, new, source.warehouse)
    writer = _Writer(source, folder, occasion, before, fields, _widened(last, fields))
    data = plan_manifests(_of(last, FileContent.DATA), writer.data_files(files), FileContent.DATA)
    removed = plan_manifests(
        _of(last, FileContent.POSITION_DELETES), writer.delete_files(files), FileContent.POSITION_DELETES
    )
    found = last.metadata if last is not None else _first(source, folder)
    is_same = last is not None and metadata.find_schema(found, fields) == found["current-schema-id"]
    manifests = last.manifests if last is not None else ()
    # A snapshot that exists is not written again, though another release would encode its rows differently.
    is_new = last is None or last.snapshot < source.seq
    if is_new and (not is_same or data.written or removed.written):
        found = metadata.add_schema(found, source.table, fields)
        found, manifests = writer.add_snapshot(found, data, removed)
    found = metadata.retain(found, occasion.retained)
    if last is not None and found is last.metadata:
        return last
    return writer.publish(found, manifests, last)


def referenced_names(folder: TableFolder, exported: Exported, known: dict[str, frozenset[str]]) -> frozenset[str]:
    """The names of all files in the folder that the export needs; `known` keeps those of each snapshot."""
    lists = {s["manifest-list"] for s in exported.metadata["snapshots"]}
    for each in [each for each in known if each not in lists]:
        del known[each]
    for each in lists - known.keys():
        known[each] = _names_of_list(folder, each)
    logged = (entry["metadata-file"] for entry in exported.metadata["metadata-log"])
    own = (folder.name_of(address) for address in (exported.address, *logged))
    return frozenset(name for name in own if name is not None).union(*known.values())


def snapshot_names(folder: TableFolder, address: str, snapshot: int) -> frozenset[str]:
    """The names of the metadata file at an address, and of the files of a snapshot that it lists."""
    content, own = folder.read(address), folder.name_of(address)
    if content is None or own is None:
        return frozenset()
    lists = [s["manifest-list"] for s in json.loads(content)["snapshots"] if s["snapshot-id"] == snapshot]
    return frozenset({own}).union(*(_names_of_list(folder, each) for each in lists))


def _names_of_list(folder: TableFolder, manifest_list: str) -> frozenset[str]:
    manifests = _read_manifests(folder, manifest_list) or ()
    paths = [file.path for manifest in manifests for file in manifest.files]
    names = (folder.name_of(path) for path in (manifest_list, *(m.path for m in manifests), *paths))
    return frozenset(name for name in names if name is not None)


def replaced_names(folder: TableFolder, last: Exported, exported: Exported) -> list[str]:
    """The names of metadata files that the export, which continues the last one, lists no more."""
    kept = {entry["metadata-file"] for entry in exported.metadata["metadata-log"]}
    if last.address not in kept:
        return []
    gone = (entry["metadata-file"] for entry in last.metadata["metadata-log"])
    found = (folder.name_of(address) for address in gone if address not in kept)
    return [name for name in found if name is not None]


def _widened(last: Exported | None, fields: Sequence[Mapping[str, Any]]) -> frozenset[int]:
    if last is None:
        return frozenset()
    schemas = {schema["schema-id"]: schema for schema in last.metadata["schemas"]}
    types = {field["id"]: field["type"] for field in schemas[last.metadata["current-schema-id"]]["fields"]}
    return frozenset(field["id"] for field in fields if types.get(field["id"], field["type"]) != field["type"])


def _continues(last: Exported, source: TableSource) -> bool:
    found = last.metadata
    is_same = found["table-uuid"] == source.uuid and found["format-version"] == source.format_version
    return is_same and last.snapshot <= source.seq


def _first(source: TableSource, folder: TableFolder) -> Metadata:
    return metadata.first_metadata(source.table, source.uuid, folder.location, source.format_version)


def _of(last: Exported | None, content: FileContent) -> list[ListedManifest]:
    return [m for m in last.manifests if m.record["content"] == content] if last is not None else []


def _by_path(last: Exported | None) -> dict[str, ListedFile]:
    return {file.path: file for manifest in (last.manifests if last is not None else ()) for file in manifest.files}


@dataclass(slots=True)
class _Writer:
    """Writes the files of one export."""

    source: TableSource
    folder: TableFolder
    occasion: Occasion
    before: Mapping[str, ListedFile]
    fields: Sequence[Mapping[str, Any]]
    # The columns whose types have changed since the last export.
    widened: frozenset[int]
    _number: Iterator[int] = field(default_factory=count)

    def _write(self, kind: str, content: bytes, suffix: str) -> str:
        name = f"{self.source.seq}-{self.occasion.token}-{kind}{next(self._number)}.{suffix}"
        return self.folder.write(name, content)

    def data_files(self, files: Sequence[FileSlice]) -> dict[str, ListedFile]:
        found: dict[str, ListedFile] = {}
        segments = {self.source.address(file.segment): file.segment for file in files}
        new = {path: segment for path, segment in segments.items() if path not in self.before}
        footers = dict(zip(new, self.source.warehouse.footers(list(new.values())), strict=True))
        for path, segment in segments.items():
            if path in footers:
                statistics = read_statistics(footers[path], self.source.table, self.fields)
                known = ListedFile(FileContent.DATA, path, _PARQUET, segment.rows, segment.size_bytes)
                found[path] = replace(known, statistics=statistics)
            else:
                known = self.before[path]
                found[path] = replace(known, statistics=known.statistics.without_bounds(self.widened))
        rows = self._catalog_rows()
        return found if rows is None else {**found, rows.path: rows}

    def _catalog_rows(self) -> ListedFile | None:
        if not self.source.parts.inline:
            return None
        rows = shape_rows(self.source.table, self.source.parts)
        content = encode_rows(rows)
        mark = f"-rows-{xxhash.xxh3_64_hexdigest(content)}.parquet"
        same = next((file for path, file in self.before.items() if path.endswith(mark)), None)
        if same is not None:
            return same
        path = self.folder.write(f"{self.source.seq}-{self.occasion.token}{mark}", content)
        return ListedFile(FileContent.DATA, path, _PARQUET, rows.num_rows, len(content))

    def delete_files(self, files: Sequence[FileSlice]) -> dict[str, ListedFile]:
        last = {file.referenced: file for file in self.before.values() if file.referenced is not None}
        found: dict[str, ListedFile] = {}
        for file in files:
            if len(file.superseded):
                same = last.get(self.source.address(file.segment))
                is_same = same is not None and same.rows == len(file.superseded)
                deleted = same if same is not None and is_same else self._deletes(file)
                found[deleted.path] = deleted
        return found

    def _deletes(self, file: FileSlice) -> ListedFile:
        of, rows = self.source.address(file.segment), len(file.superseded)
        if self.source.format_version >= DEFAULTS_FORMAT:
            vector = deletes.encode_vector(file.superseded)
            content = deletes.encode_puffin(vector, of, rows)
            path = self._write("deletes", content, "puffin")
            place = (of, deletes.VECTOR_OFFSET, len(vector))
            return ListedFile(FileContent.POSITION_DELETES, path, _PUFFIN, rows, len(content), *place)
        content = deletes.encode_position_deletes(file.superseded, of)
        path = self._write("deletes", content, "parquet")
        made = ListedFile(FileContent.POSITION_DELETES, path, _PARQUET, rows, len(content), of)
        bounds = ((deletes.PATH_ID, of.encode()),)
        return replace(made, statistics=FileStatistics(lower=bounds, upper=bounds))

    def add_snapshot(
        self, found: Metadata, data: ManifestPlan, removed: ManifestPlan
    ) -> tuple[Metadata, tuple[ListedManifest, ...]]:
        seq, parent = self.source.seq, found["current-snapshot-id"]
        schema = next(s for s in found["schemas"] if s["schema-id"] == found["current-schema-id"])
        first = next_row_id = found.get("next-row-id")
        written: list[ListedManifest] = []
        for new in (*data.written, *removed.written):
            row_id = next_row_id if new.content is FileContent.DATA else None
            made = self._manifest(new, schema, row_id)
            written.append(made)
            if row_id is not None:
                next_row_id = row_id + made.record["added_rows_count"] + made.record["existing_rows_count"]
        manifests = (*written, *data.kept, *removed.kept)
        about = {
            "snapshot-id": str(seq),
            "parent-snapshot-id": str(parent) if parent >= 0 else "null",
            "sequence-number": str(seq),
            "format-version": str(self.source.format_version),
        }
        content = avro_files.encode_manifest_list([m.record for m in manifests], about)
        path = self._write("snapshot", content, "avro")
        summary = metadata.summarize(data, removed)
        rows_added = 0 if first is None or next_row_id is None else next_row_id - first
        return metadata.add_snapshot(found, seq, self.occasion.now_ms, path, summary, rows_added), manifests

    def _manifest(self, new: NewManifest, schema: Mapping[str, Any], first_row_id: int | None) -> ListedManifest:
        seq = self.source.seq
        about = {
            "schema": json.dumps(schema),
            "schema-id": str(schema["schema-id"]),
            "partition-spec": "[]",
            "partition-spec-id": "0",
            "format-version": str(self.source.format_version),
            "content": "data" if new.content is FileContent.DATA else "deletes",
        }
        content = avro_files.encode_manifest([entry_record(status, f, seq) for status, f in new.entries], about)
        path = self._write("manifest", content, "avro")
        return listed(new, manifest_record(new, path, len(content), seq, first_row_id), seq)

    def publish(self, found: Metadata, manifests: tuple[ListedManifest, ...], last: Exported | None) -> Exported:
        if last is not None:
            found = metadata.log_metadata(found, last.address, last.metadata["last-updated-ms"])
        found = metadata.forget_metadata(found, self.occasion.oldest_ms)
        address = self._write("table", json.dumps(found).encode(), "metadata.json")
        return Exported(found, address, manifests)
