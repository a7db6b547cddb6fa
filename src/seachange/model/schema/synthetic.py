"""Two versions of a table that exist side by side while a transaction block changes it: other sessions know the
*published* one, with the hidden states of the change; the block plans with a *synthetic* one, in which it is done.

**Invariant:** the layouts of the published version are the first ones of the synthetic version, under the same ids:
what other sessions write meanwhile, and what the block has written, can be read with the version that it commits.
"""

from __future__ import annotations

from dataclasses import replace

from seachange.model.ids import ColumnId, ConstraintId, LayoutId
from seachange.model.schema.descriptor import Layout, Table


def follow_published(table: Table, published: Table) -> Table:
    """A synthetic version as the one that comes after a published version."""
    return replace(align_layouts(table, published), version=max(table.version, published.version + 1))


def align_layouts(table: Table, other: Table) -> Table:
    """A version of a table whose first layouts are those of another version of it."""
    known = {layout.id for layout in other.layouts}
    layouts = (*other.layouts, *(layout for layout in table.layouts if layout.id not in known))
    if layouts[-1].columns != table.layout.columns:
        layouts = (*layouts, Layout(LayoutId(layouts[-1].id + 1), table.layout.columns))
    return replace(
        table,
        layouts=layouts,
        next_column_id=ColumnId(max(table.next_column_id, other.next_column_id)),
        next_constraint_id=ConstraintId(max(table.next_constraint_id, other.next_constraint_id)),
    )
