"""The metadata of a table: schemas, snapshots and their history, as the JSON of the Iceberg specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seachange.iceberg.manifests import EntryStatus, FileContent, ListedFile, ManifestPlan
from seachange.iceberg.table_schema import DEFAULTS_FORMAT, last_column_id
from seachange.model.ids import Seq
from seachange.model.schema.descriptor import Table

Metadata = dict[str, Any]
BRANCH = "main"
# How many metadata files that were replaced are kept.
LOGGED_MAX = 100
# Iceberg's vectorized reader for Spark fails at the delta encodings that segments have; its other reader knows them.
_PROPERTIES = {"read.parquet.vectorization.enabled": "false"}


def first_metadata(table: Table, uuid: str, location: str, format_version: int) -> Metadata:
    """Of a table without schema and snapshots."""
    rows = {"next-row-id": 0} if format_version >= DEFAULTS_FORMAT else {}
    return {
        "format-version": format_version,
        "table-uuid": uuid,
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": last_column_id(table),
        "current-schema-id": -1,
        "schemas": [],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {**_PROPERTIES},
        "current-snapshot-id": -1,
        "refs": {},
        "snapshots": [],
        "snapshot-log": [],
        "metadata-log": [],
        **rows,
    }


def find_schema(metadata: Metadata, fields: Sequence[Mapping[str, Any]]) -> int | None:
    """The id of the schema with these fields."""
    return next((schema["schema-id"] for schema in metadata["schemas"] if schema["fields"] == fields), None)


def add_schema(metadata: Metadata, table: Table, fields: Sequence[Mapping[str, Any]]) -> Metadata:
    """With these fields as the current schema."""
    id_ = find_schema(metadata, fields)
    schemas = metadata["schemas"]
    if id_ is None:
        id_ = 1 + max((schema["schema-id"] for schema in schemas), default=-1)
        schemas = [*schemas, {"type": "struct", "schema-id": id_, "fields": [*fields]}]
    last = max(metadata["last-column-id"], last_column_id(table))
    return metadata | {"schemas": schemas, "current-schema-id": id_, "last-column-id": last}


def summarize(data: ManifestPlan, deletes: ManifestPlan) -> dict[str, str]:
    """The summary of a snapshot."""
    files, vectors = _live(data), _live(deletes)
    added = data.files(EntryStatus.ADDED, FileContent.DATA)
    gone = data.files(EntryStatus.DELETED, FileContent.DATA)
    changes = [*gone, *deletes.files(EntryStatus.ADDED, FileContent.POSITION_DELETES)]
    numbers = {
        "added-data-files": len(added),
        "added-records": sum(file.rows for file in added),
        "deleted-data-files": len(gone),
        "total-data-files": len(files),
        "total-records": sum(file.rows for file in files),
        "total-delete-files": len(vectors),
        "total-position-deletes": sum(file.rows for file in vectors),
    }
    operation = "overwrite" if changes else "append"
    return {"operation": operation, **{name: str(number) for name, number in numbers.items()}}


def _live(plan: ManifestPlan) -> list[ListedFile]:
    kept = [file for manifest in plan.kept for file in manifest.files]
    entries = [entry for new in plan.written for entry in new.entries]
    return kept + [file for status, file in entries if status is not EntryStatus.DELETED]


def add_snapshot(
    metadata: Metadata, seq: Seq, now_ms: int, manifest_list: str, summary: Mapping[str, str], rows_added: int
) -> Metadata:
    """With a snapshot of the current schema, whose id and sequence number are that of the commit log."""
    parent = metadata["current-snapshot-id"]
    # Timestamps increase, whatever the clock does.
    now_ms = max(now_ms, metadata["last-updated-ms"] + 1)
    snapshot = {
        "snapshot-id": seq,
        **({"parent-snapshot-id": parent} if parent >= 0 else {}),
        "sequence-number": seq,
        "timestamp-ms": now_ms,
        "manifest-list": manifest_list,
        "summary": {**summary},
        "schema-id": metadata["current-schema-id"],
    }
    changed = metadata | {
        "last-sequence-number": seq,
        "last-updated-ms": now_ms,
        "current-snapshot-id": seq,
        "refs": {BRANCH: {"snapshot-id": seq, "type": "branch"}},
        "snapshot-log": [*metadata["snapshot-log"], {"snapshot-id": seq, "timestamp-ms": now_ms}],
    }
    if "next-row-id" in metadata:
        snapshot |= {"first-row-id": metadata["next-row-id"], "added-rows": rows_added}
        changed["next-row-id"] = metadata["next-row-id"] + rows_added
    return changed | {"snapshots": [*metadata["snapshots"], snapshot]}


def retain(metadata: Metadata, snapshots: frozenset[int]) -> Metadata:
    """With only these snapshots and the current one, and the schemas that they need. A snapshot whose parent is gone
    keeps its number, as the specification allows."""
    kept = [s for s in metadata["snapshots"] if s["snapshot-id"] in {*snapshots, metadata["current-snapshot-id"]}]
    if len(kept) == len(metadata["snapshots"]):
        return metadata
    ids = {s["snapshot-id"] for s in kept}
    used = {metadata["current-schema-id"], *(s["schema-id"] for s in kept)}
    return metadata | {
        "snapshots": kept,
        "snapshot-log": [entry for entry in metadata["snapshot-log"] if entry["snapshot-id"] in ids],
        "schemas": [schema for schema in metadata["schemas"] if schema["schema-id"] in used],
    }


def log_metadata(metadata: Metadata, replaced: str, replaced_ms: int) -> Metadata:
    """With the metadata file that this one replaces in its log."""
    entry = {"metadata-file": replaced, "timestamp-ms": replaced_ms}
    return metadata | {"metadata-log": [*metadata["metadata-log"], entry]}


def forget_metadata(metadata: Metadata, oldest_ms: int) -> Metadata:
    """Without the entries of the log that are older, except the newest ones: each file lists all snapshots, so their
    sizes add up."""
    log = metadata["metadata-log"]
    newest = log[-LOGGED_MAX:]
    recent = [entry for entry in log[:-LOGGED_MAX] if entry["timestamp-ms"] >= oldest_ms]
    return metadata | {"metadata-log": [*recent, *newest]}
