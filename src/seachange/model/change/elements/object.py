"""Elements of any object: its name, owner, privileges and comments."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.ids import DescriptorId
from seachange.model.object_kind import ObjectKind


@dataclass(frozen=True, slots=True)
class NamespaceElement:
    """The entry under which an object is found."""

    descriptor_id: DescriptorId
    kind: ObjectKind
    database: str
    schema: str
    name: str

    @property
    def schema_named(self) -> tuple[str, str] | None:
        """The schema that this entry names; None: it names something else."""
        return (self.database, self.name) if self.kind is ObjectKind.SCHEMA else None

    @property
    def schema_used(self) -> tuple[str, str] | None:
        """The schema in which this entry stands."""
        return None if self.schema_named or self.database_named else (self.database, self.schema)

    @property
    def database_named(self) -> str | None:
        return self.name if self.kind is ObjectKind.DATABASE else None

    @property
    def database_used(self) -> str | None:
        return None if self.database_named else self.database


@dataclass(frozen=True, slots=True)
class Owner:
    descriptor_id: DescriptorId
    role: str


@dataclass(frozen=True, slots=True)
class Privileges:
    """What one role may do; `grantable` is what it may pass on."""

    descriptor_id: DescriptorId
    role: str
    privileges: tuple[str, ...]
    grantable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comment:
    """On the object itself, or on the part of it with that kind and id."""

    descriptor_id: DescriptorId
    text: str
    part: tuple[ObjectKind, int] | None = None


# What every object can have.
ObjectLabel = Owner | Privileges | Comment
ObjectTopic = NamespaceElement | ObjectLabel
