"""Ops: what the stages of a plan do. An executor translates each to an effect."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from seachange.model.change.elements import Element
from seachange.model.ids import ColumnId, IndexId, Seq, TableId
from seachange.model.states import State


class OpType(StrEnum):
    """All ops of a stage are of one type."""

    MUTATION = "mutation"
    VALIDATION = "validation"
    BACKFILL = "backfill"
    RESTORATION = "restoration"
    COLLECTION = "collection"


# What reads rows, and so may find that they do not allow the change.
FALLIBLE = frozenset({OpType.VALIDATION, OpType.BACKFILL, OpType.RESTORATION})


@dataclass(frozen=True, slots=True)
class SetState:
    """The element is in this state from the next version of its descriptor on; ABSENT takes it out."""

    element: Element
    state: State


@dataclass(frozen=True, slots=True)
class BackfillIndexes:
    """Reads index `source_id` once, as of the raise before it, and builds a generation of each of `index_ids`."""

    table_id: TableId
    source_id: IndexId
    index_ids: tuple[IndexId, ...]


@dataclass(frozen=True, slots=True)
class Validate:
    """Shows that all rows, as of the raise before it, meet the constraint."""

    element: Element


@dataclass(frozen=True, slots=True)
class CollectIndexes:
    """Deletes the data of indexes that no snapshot can read any more, after the time for which history is kept."""

    table_id: TableId
    index_ids: tuple[IndexId, ...]


@dataclass(frozen=True, slots=True)
class RestoreColumns:
    """Writes into the rows of now the values that they had in these columns as of a sequence."""

    table_id: TableId
    column_ids: tuple[ColumnId, ...]
    as_of: Seq


Op = SetState | BackfillIndexes | Validate | CollectIndexes | RestoreColumns
