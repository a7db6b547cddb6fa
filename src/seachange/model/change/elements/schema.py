"""Elements of databases and schemas."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.ids import DescriptorId


@dataclass(frozen=True, slots=True)
class DatabaseElement:
    descriptor_id: DescriptorId


@dataclass(frozen=True, slots=True)
class SchemaElement:
    descriptor_id: DescriptorId


SchemaTopic = DatabaseElement | SchemaElement
