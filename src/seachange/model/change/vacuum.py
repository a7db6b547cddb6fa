"""Maintenance of a table: its indexes are compacted and rewritten where that pays off, without a schema change.

**Invariant:** maintenance changes no result: a generation is replaced by one with the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.ids import GenerationId, IndexId, TableId
from seachange.model.segments import GenerationMember


@dataclass(frozen=True, slots=True)
class RewriteIndex:
    """Compacts the deltas of an index. `full`: small, overlapping and partly superseded segments are rewritten, and all
    that are of an older layout; else what is worth it."""

    table_id: TableId
    index_id: IndexId
    full: bool


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What replaces the generation `before` of an index. New files are intents of the runner's epoch, or kept by the
    job."""

    index_id: IndexId
    name: str
    before: GenerationId
    members: tuple[GenerationMember, ...]


@dataclass(frozen=True, slots=True)
class VacuumWork:
    """What is left to do for a table: `left` are the indexes whose turn has not come, and at last files that nothing
    can reach are deleted, unless that `is_collected`."""

    table_id: TableId
    left: tuple[IndexId, ...]
    full: bool = False
    is_collected: bool = False

    @property
    def stage(self) -> str:
        """What is done next, in a word."""
        return "rewrite" if self.left else "" if self.is_collected else "collection"
