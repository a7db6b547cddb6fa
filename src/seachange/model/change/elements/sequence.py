"""Elements of sequences."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.ids import ColumnId, DescriptorId, TableId
from seachange.values.types import SqlType


@dataclass(frozen=True, slots=True)
class SequenceElement:
    sequence_id: DescriptorId


@dataclass(frozen=True, slots=True)
class SequenceSettings:
    sequence_id: DescriptorId
    type: SqlType
    increment: int
    minimum: int
    maximum: int
    start: int
    cache: int
    cycle: bool


@dataclass(frozen=True, slots=True)
class SequenceOwnerElement:
    """The column with which the sequence is dropped."""

    sequence_id: DescriptorId
    table_id: TableId
    column_id: ColumnId


@dataclass(frozen=True, slots=True)
class SequenceStart:
    """The next value is `start` again: RESTART, and TRUNCATE ... RESTART IDENTITY."""

    sequence_id: DescriptorId
    start: int
    run: int


SequencePart = SequenceSettings | SequenceOwnerElement | SequenceStart
SequenceTopic = SequenceElement | SequencePart
