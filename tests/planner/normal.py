"""Catalogs without what a change may leave behind: versions, layouts of the past, ids that were used up."""

from dataclasses import replace
from typing import Any

from seachange.model.ids import ColumnId, ConstraintId, LayoutId
from seachange.model.schema.descriptor import Table
from seachange.planner.known_schema import KnownSchema


def normal(catalog: KnownSchema) -> dict[int, Any]:
    return {id_: normal_descriptor(descriptor) for id_, descriptor in catalog.descriptors.items()}


def normal_descriptor(descriptor: Any) -> Any:
    descriptor = replace(descriptor, version=0)
    if isinstance(descriptor, Table):
        return replace(
            descriptor,
            layouts=(replace(descriptor.layout, id=LayoutId(0)),),
            next_column_id=ColumnId(0),
            next_constraint_id=ConstraintId(0),
            secondary=tuple(sorted(descriptor.secondary, key=lambda index: index.id)),
            checks=tuple(sorted(descriptor.checks, key=lambda check: check.id)),
            foreign_keys=tuple(sorted(descriptor.foreign_keys, key=lambda key: key.id)),
        )
    if hasattr(descriptor, "next_value_id"):
        return replace(descriptor, next_value_id=0)
    return descriptor
