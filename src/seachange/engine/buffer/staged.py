"""Lookups in the files that a transaction's bulk writes have staged.

**Invariant:** a staged file of new versions, or of tombstones, hides the committed entries with its keys from its own
transaction. An entry that is changed again moves from the file to the buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seachange.engine.buffer.write_buffer import IndexBuffer, StagedFile, WriteBuffer
from seachange.engine.encode.write_plan import EntryPlan
from seachange.storage.keys import Key
from seachange.storage.warehouse import Warehouse

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class StagedRow:
    file: StagedFile
    position: int
    row: Row


def find_staged(warehouse: Warehouse, plan: EntryPlan, files: Iterable[StagedFile], key: Key) -> StagedRow | None:
    """The position of an entry, unless a later statement of the transaction has replaced or removed it."""
    for file in files:
        hit = warehouse.reader(file.segment, plan.columns[: plan.key_width]).find(key)
        if hit is not None and hit[0] not in file.deleted:
            return StagedRow(file, *hit)
    return None


def is_hidden(warehouse: Warehouse, buffer: IndexBuffer, stored: Row) -> bool:
    """Whether a bulk write of the transaction has replaced or removed a committed entry."""
    files = buffer.hiding
    if not files:
        return False
    columns = buffer.plan.columns[: buffer.plan.key_width]
    key = stored[: buffer.plan.key_width]
    return any(warehouse.reader(file.segment, columns).find(key) is not None for file in files)


def merge_deleted(warehouse: Warehouse, buffer: WriteBuffer, own: IndexBuffer, files: Sequence[StagedFile]) -> None:
    """Called when files were staged whose keys may be among those that the transaction has deleted. Such an entry keeps
    its final version in the buffer or in the file, not in both: a commit holds at most one version per entry."""
    columns = own.plan.columns[: own.plan.key_width]
    if own.removed:
        _merge_removed(warehouse, buffer, own, files)
    deleted = [(encoded, entry) for encoded, entry in own.entries.items() if entry.row is None]
    for file in files if deleted else ():
        reader = warehouse.reader(file.segment, columns)
        positions = reader.positions([entry.key for _, entry in deleted])
        for (encoded, entry), position in zip(deleted, positions.tolist(), strict=True):
            if position >= 0:
                buffer.delete_staged(file, position)
                buffer.put(own, encoded, replace(entry, row=reader.row(position)))


def _merge_removed(warehouse: Warehouse, buffer: WriteBuffer, own: IndexBuffer, files: Sequence[StagedFile]) -> None:
    columns = own.plan.columns[: own.plan.key_width]
    for file in files:
        keys = warehouse.reader(file.segment, columns).keys()
        for removed in own.removed:
            positions = warehouse.reader(removed.segment, columns).positions(keys)
            for position in positions[positions >= 0].tolist():
                buffer.delete_staged(removed, position)
