"""What the feed shows of a table's schema: the document of a schema event, and when there is one.

**Invariant:** there is an event exactly where the columns that clients see, their types, the key or the name change, or
the rows are rewritten: what states and indexes a change goes through on its way is not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seachange.model.ids import DescriptorId
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.objects import Descriptor, EnumType
from seachange.values.json_text import show_json

# How the rows that are there already get the values of a column.
KEPT, CONSTANT, COMPUTED = "kept", "constant", "computed"


def schema_event(before: Table | None, after: Table | None, objects: Mapping[DescriptorId, Descriptor]) -> str | None:
    """The document of the schema after a commit; None if clients see no other one than before. For a table that was
    dropped it is the document `null`."""
    if after is None:
        return "null" if before is not None else None
    shown = _describe(after, objects)
    if before is not None and shown == _describe(before, objects) and not is_rewritten(before, after):
        return None
    columns = [
        {**described, "rows": _origin(before, after, column)}
        for described, column in zip(shown["columns"], after.visible_columns, strict=True)
    ]
    for described, column in zip(columns, after.visible_columns, strict=True):
        if described["rows"] == CONSTANT:
            described["value"] = column.frozen
    return show_json({**shown, "columns": columns})


def is_rewritten(before: Table, after: Table) -> bool:
    """Whether a change that had been building another primary index ends with it."""
    return before.primary.id != after.primary.id and not is_emptied(before, after)


def is_emptied(before: Table, after: Table) -> bool:
    """Whether the rows were replaced as a whole, as by TRUNCATE: the new primary index is none that writers of the
    version before have maintained."""
    return before.primary.id != after.primary.id and after.primary.id not in {index.id for index in before.coming}


def _describe(table: Table, objects: Mapping[DescriptorId, Descriptor]) -> dict[str, Any]:
    columns = [
        {"id": c.id, "name": c.name, "type": _type_name(c, objects), "nullable": c.nullable}
        for c in table.visible_columns
    ]
    names = {c.id: c.name for c in table.visible_columns}
    key = [names[c] for c in table.primary.key if c in names]
    return {"schema": table.schema, "table": table.name, "columns": columns, "primary_key": key}


def _type_name(column: Column, objects: Mapping[DescriptorId, Descriptor]) -> str:
    found = objects.get(DescriptorId(column.type.enum)) if column.type.enum else None
    if not isinstance(found, EnumType):
        return str(column.type)
    return f"{found.schema}.{found.name}" + ("[]" if column.type.element is not None else "")


def _origin(before: Table | None, after: Table, column: Column) -> str:
    known = before.column_by_id.get(column.id) if before is not None else None
    if before is None or (known is not None and known in before.visible_columns):
        return KEPT
    stored = any(column.id in dict(layout.columns) for layout in before.layouts)
    return COMPUTED if stored or before.primary.id != after.primary.id else CONSTANT
