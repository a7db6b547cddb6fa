"""Exported snapshots of tables, as the catalog records them."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.ids import Seq, TableId


@dataclass(frozen=True, slots=True)
class ExportRecord:
    """A snapshot that readers of other engines may use. Until `expires_us` the catalog keeps everything that a snapshot
    at the sequence `held` reads. `metadata` is the address of the metadata file that lists it."""

    table_id: TableId
    snapshot: int
    held: Seq
    metadata: str
    created_us: int
    expires_us: int
