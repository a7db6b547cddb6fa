"""Elements of enum types."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.ids import DescriptorId


@dataclass(frozen=True, slots=True)
class EnumTypeElement:
    type_id: DescriptorId


@dataclass(frozen=True, slots=True)
class EnumValue:
    """`rank` orders the values of one type; `stored` is how rows hold it, which never changes."""

    type_id: DescriptorId
    value_id: int
    rank: float
    stored: str = ""


@dataclass(frozen=True, slots=True)
class EnumLabel:
    type_id: DescriptorId
    value_id: int
    label: str


EnumTypeTopic = EnumTypeElement | EnumValue | EnumLabel
