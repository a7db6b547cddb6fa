"""Name resolution: which column of which source a name in a query means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from seachange.model.schema.descriptor import Column, Table
from seachange.sql.bind.types import RECORD, BoundType

# Every table has them, but they are not listed.
SYSTEM_COLUMNS: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax"})
# What is no column of a table that exists.
_OTHER_NAMES: Final = frozenset({"tableoid", "oid", "user", "default"})


@dataclass(frozen=True, slots=True)
class BoundColumn:
    """A column of a relation or of a query's result. `type` None: not determined. `origin` is the column of a table
    that it is, if it is one."""

    name: str
    type: BoundType | None
    origin: tuple[Table, Column] | None = None


# The columns of a source in order; None where they are not known.
Columns = Sequence[BoundColumn] | None


class BindCatalog(Protocol):
    """What the binder asks of the catalog, at the statement's snapshot."""

    def columns(self, schema: str | None, name: str) -> Columns:
        """The columns of a relation that clients see; None if they are not known."""
        ...

    def user_type(self, schema: str | None, name: str) -> BoundType | None:
        """The type of that name that a user has created."""
        ...

    def enum_name(self, number: int) -> str:
        """Of the enum type with that id, as error messages show it."""
        ...


class NoCatalog:
    """Knows nothing: names of WITH queries and subqueries are resolved, those of relations are not."""

    def columns(self, schema: str | None, name: str) -> Columns:
        return None

    def user_type(self, schema: str | None, name: str) -> BoundType | None:
        return None

    def enum_name(self, number: int) -> str:
        return str(number)


@dataclass(frozen=True, slots=True)
class Source:
    """An item of FROM. `merged` are its columns that a join by name has left to another source."""

    name: str
    columns: Columns
    merged: tuple[str, ...] = ()
    # The type of a row: that of its value for a function that returns one.
    row: BoundType = RECORD
    # Whether it has columns that clients do not see.
    has_hidden: bool = False


@dataclass(slots=True)
class NameScope:
    """The names that an expression sees: the sources of its query, then those of the queries around it."""

    parent: NameScope | None = None
    sources: list[Source] = field(default_factory=list)
    queries: Mapping[str, Columns] = field(default_factory=dict)

    def find_query(self, name: str) -> tuple[bool, Columns]:
        """Whether WITH defines the name, and the columns that it has then."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.queries:
                return True, scope.queries[name]
            scope = scope.parent
        return False, None

    def find_column(self, source: str, name: str) -> BoundColumn | None:
        """`source` is empty for a name without a qualifier. None if it is not certain which column is meant."""
        found = self.find_place(source, name)
        return found[1] if found is not None else None

    def find_place(self, source: str, name: str) -> tuple[Source, BoundColumn] | None:
        """The column with the source that it is a column of."""
        scope: NameScope | None = self
        while scope is not None:
            found: tuple[Source, BoundColumn] | None = None
            is_open = False
            for each in scope.sources:
                if source and each.name != source:
                    continue
                is_open = is_open or bool(source) or each.columns is None
                for column in () if name in each.merged and not source else each.columns or ():
                    if column.name == name:
                        if found is not None:
                            return None
                        found = (each, column)
            if found is not None or is_open:
                return found
            scope = scope.parent
        return None

    def lacks(self, source: str, name: str) -> bool:
        """Whether it is certain that there is no such column, nor a source that the name could mean."""
        scope: NameScope | None = self
        while scope is not None:
            for each in scope.sources:
                is_open = each.columns is None or each.has_hidden or each.name == name
                if is_open or name in {column.name for column in each.columns or ()}:
                    return False
            scope = scope.parent
        return name not in _OTHER_NAMES

    def has_source(self, name: str) -> bool:
        return self.find_source(name) is not None

    def find_source(self, name: str) -> Source | None:
        """A source that is used as a value."""
        scope: NameScope | None = self
        while scope is not None:
            for each in scope.sources:
                if each.name == name:
                    return each
            scope = scope.parent
        return None

    def all_columns(self, source: str) -> Columns:
        """What a star stands for; with a qualifier that of one source."""
        among = [each for each in self.sources if source in ("", each.name)]
        if not among or any(each.columns is None for each in among):
            return None
        return list(_starred(among, is_qualified=bool(source)))

    def star_names(self, source: str) -> Sequence[tuple[str, str]]:
        """The same as names with qualifiers; of a column that a join has merged without one."""
        among = [each for each in self.sources if source in ("", each.name)]
        merged = frozenset[str]() if source else frozenset(name for each in among for name in each.merged)
        owners = {id(column): each.name for each in among for column in each.columns or ()}
        starred = self.all_columns(source) or ()
        return [("" if column.name in merged else owners[id(column)], column.name) for column in starred]


def _starred(sources: Sequence[Source], is_qualified: bool) -> Iterator[BoundColumn]:
    if is_qualified:
        yield from sources[0].columns or ()
        return
    # The columns that a join has merged come first, those of the last join before others.
    merged = [name for source in reversed(sources) for name in source.merged]
    first = dict.fromkeys(merged)
    for name in first:
        yield next(c for s in sources for c in s.columns or () if c.name == name and name not in s.merged)
    for source in sources:
        for column in source.columns or ():
            if column.name not in first:
                yield column
