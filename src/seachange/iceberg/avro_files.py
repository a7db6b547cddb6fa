"""Manifests and manifest lists: Avro files with the field ids of the Iceberg specification."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any, Final

from seachange.iceberg.encoders import load_encoder

Record = dict[str, Any]


def _field(name: str, type_: Any, id_: int) -> Record:
    return {"name": name, "type": type_, "field-id": id_}


def _optional(name: str, type_: Any, id_: int) -> Record:
    return {"name": name, "type": ["null", type_], "default": None, "field-id": id_}


def _by_column(name: str, id_: int, key_id: int, value_id: int, value: str) -> Record:
    items = {
        "type": "record",
        "name": f"k{key_id}_v{value_id}",
        "fields": [_field("key", "int", key_id), _field("value", value, value_id)],
    }
    return _optional(name, {"type": "array", "items": items, "logicalType": "map"}, id_)


_DATA_FILE: Final = {
    "type": "record",
    "name": "r2",
    "fields": [
        _field("content", "int", 134),
        _field("file_path", "string", 100),
        _field("file_format", "string", 101),
        _field("partition", {"type": "record", "name": "r102", "fields": []}, 102),
        _field("record_count", "long", 103),
        _field("file_size_in_bytes", "long", 104),
        _by_column("value_counts", 109, 119, 120, "long"),
        _by_column("null_value_counts", 110, 121, 122, "long"),
        _by_column("lower_bounds", 125, 126, 127, "bytes"),
        _by_column("upper_bounds", 128, 129, 130, "bytes"),
        _optional("first_row_id", "long", 142),
        _optional("referenced_data_file", "string", 143),
        _optional("content_offset", "long", 144),
        _optional("content_size_in_bytes", "long", 145),
    ],
}
_ENTRY: Final = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        _field("status", "int", 0),
        _optional("snapshot_id", "long", 1),
        _optional("sequence_number", "long", 3),
        _optional("file_sequence_number", "long", 4),
        _field("data_file", _DATA_FILE, 2),
    ],
}
_MANIFEST: Final = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _field("manifest_path", "string", 500),
        _field("manifest_length", "long", 501),
        _field("partition_spec_id", "int", 502),
        _field("content", "int", 517),
        _field("sequence_number", "long", 515),
        _field("min_sequence_number", "long", 516),
        _field("added_snapshot_id", "long", 503),
        _field("added_files_count", "int", 504),
        _field("existing_files_count", "int", 505),
        _field("deleted_files_count", "int", 506),
        _field("added_rows_count", "long", 512),
        _field("existing_rows_count", "long", 513),
        _field("deleted_rows_count", "long", 514),
        _optional("first_row_id", "long", 520),
    ],
}


def encode_manifest(entries: Iterable[Record], about: Mapping[str, str]) -> bytes:
    return _encode(_ENTRY, entries, about)


def encode_manifest_list(manifests: Iterable[Record], about: Mapping[str, str]) -> bytes:
    return _encode(_MANIFEST, manifests, about)


def decode(content: bytes) -> list[Record]:
    return list(load_encoder("fastavro").reader(io.BytesIO(content)))


def _encode(schema: Any, records: Iterable[Record], about: Mapping[str, str]) -> bytes:
    sink = io.BytesIO()
    load_encoder("fastavro").writer(sink, schema, records, codec="deflate", metadata=dict(about))
    return sink.getvalue()
