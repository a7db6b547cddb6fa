"""Types of bound expressions: PostgreSQL's name of a type, and the column type that it is here, if it is one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from seachange.sql.bind import postgres
from seachange.values.types import NAMES, Kind, SqlType, array_of

_ENUM: Final = "enum:"
_ARRAY: Final = "_"
_NAME_BY_OID: Final = {row.oid: name for name, row in postgres.types().items()}
_KIND_BY_NAME: Final = {
    _NAME_BY_OID[names.oid]: kind
    for kind, names in NAMES.items()
    if kind is not Kind.ARRAY and names.oid in _NAME_BY_OID
}


@dataclass(frozen=True, slots=True)
class BoundType:
    """`name` is that of pg_type: `int4`, `_int4` for its array, `unknown` for a constant whose type its place decides,
    `enum:7` for the enum type with that id. `declared` is the column type with its modifiers, None for a type that no
    column has."""

    name: str
    declared: SqlType | None = None

    def __deepcopy__(self, memo: object) -> BoundType:
        """Copies of a tree share what is known of its nodes."""
        return self

    def __str__(self) -> str:
        """As error messages show it, but for an enum type, whose name is the catalog's."""
        if self.declared is not None and not self.declared.enum:
            return str(self.declared.unmodified)
        return self.name

    @property
    def is_array(self) -> bool:
        return self.name.startswith(_ARRAY)

    @property
    def is_enum(self) -> bool:
        return self.name.startswith(_ENUM)

    @property
    def category(self) -> str:
        if self.is_enum:
            return "E"
        row = postgres.types().get(self.name)
        return row.category if row is not None else "A" if self.is_array else "U"

    @property
    def is_preferred(self) -> bool:
        row = postgres.types().get(self.name)
        return row is not None and row.is_preferred

    @property
    def plain(self) -> BoundType:
        """Without modifiers."""
        return self if self.declared is None else bound(self.declared.unmodified)

    @property
    def oid(self) -> int | None:
        """None for an enum type, whose number is the catalog's."""
        row = postgres.types().get(self.name)
        return row.oid if row is not None else None


@lru_cache(maxsize=1024)
def bound(type_: SqlType) -> BoundType:
    """
    >>> bound(array_of(SqlType(Kind.INTEGER))).name
    '_int4'
    """
    if type_.element is not None:
        return BoundType(_ARRAY + bound(type_.element).name, type_)
    return BoundType(f"{_ENUM}{type_.enum}" if type_.enum else _NAME_BY_OID[NAMES[type_.kind].oid], type_)


@lru_cache(maxsize=1024)
def named(name: str) -> BoundType:
    """The type of that name in pg_type."""
    if name.startswith(_ENUM):
        return BoundType(name, SqlType(Kind.TEXT, enum=int(name.removeprefix(_ENUM))))
    if name.startswith(_ARRAY):
        element = named(name[1:]).declared
        return BoundType(name, array_of(element) if element is not None else None)
    kind = _KIND_BY_NAME.get(name)
    return BoundType(name, SqlType(kind) if kind is not None else None)


def element_of(type_: BoundType) -> BoundType | None:
    if type_.declared is not None:
        return bound(type_.declared.element) if type_.declared.element is not None else None
    return named(type_.name[1:]) if type_.is_array else None


def array_type(element: BoundType) -> BoundType | None:
    """None where there is no array type."""
    if element.declared is not None and element.declared.element is None:
        return bound(array_of(element.declared))
    name = _ARRAY + element.name
    return named(name) if name in postgres.types() else None


UNKNOWN: Final = named("unknown")
BOOLEAN: Final = named("bool")
INTEGER: Final = named("int4")
BIGINT: Final = named("int8")
NUMERIC: Final = named("numeric")
TEXT: Final = named("text")
RECORD: Final = named("record")
