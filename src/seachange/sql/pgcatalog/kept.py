"""Catalog relations that were made once and are kept: a schema change costs the rows of what it changes.

The descriptors are divided by their ids. Rows about the descriptors of a part depend on these, on those that they refer
to, and on names that all share; if these are the same in two states of the schema, the rows are.

**Invariant:** a relation has the rows that it would have if all of them were made at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_
from typing import Final

import pyarrow as pa

from seachange.model.ids import DescriptorId
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor, View
from seachange.planner.object_users import referred_by
from seachange.sql.pgcatalog.facts import Facts
from seachange.sql.pgcatalog.rows import BY_DESCRIPTOR, Name, fixed_rows, listed_rows, make_table

_KEPT_MAX: Final = 8
# 128 ids to a part: the rows of so many tables are made again when one of them changes.
_PART_BITS: Final = 7


@dataclass(frozen=True, slots=True)
class Part:
    """`outside` are the descriptors that those of the part refer to, `parents` the tables of it that foreign keys refer
    to."""

    tables: tuple[Table, ...]
    objects: tuple[Descriptor, ...]
    referred: tuple[DescriptorId, ...]
    outside: tuple[Descriptor | None, ...]
    parents: frozenset[DescriptorId]


class KeptCatalog:
    """The catalog relations of one state of the schema."""

    def __init__(self, facts: Facts, before: KeptCatalog | None = None) -> None:
        """`before` is that of an earlier state."""
        self.facts = facts
        if before is not None and _shared_by_all(before.facts) != _shared_by_all(facts):
            before = None
        earlier: dict[int, Part] = before._parts if before is not None else {}
        self._parts: dict[int, Part] = _divide(facts, earlier)
        # Another thread may be adding rows to those of before.
        kept = before._rows.copy() if before is not None else {}
        self._rows: dict[tuple[Name, int], pa.Table] = {
            (name, number): rows for (name, number), rows in kept.items() if self._parts.get(number) is earlier[number]
        }
        self._tables: dict[Name, pa.Table] = {}

    def table(self, name: Name) -> pa.Table:
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = self._make(name)
        return found

    def _make(self, name: Name) -> pa.Table:
        if name not in BY_DESCRIPTOR:
            return make_table(self.facts, name)
        parts = [fixed_rows(self.facts, name), *(self._part_rows(name, n) for n in self._parts)]
        # DuckDB takes a table in many pieces for a small one, and joins it row by row.
        return pa.concat_tables(parts).combine_chunks()

    def _part_rows(self, name: Name, number: int) -> pa.Table:
        found = self._rows.get((name, number))
        if found is None:
            part = self._parts[number]
            found = listed_rows(self.facts.part(part.tables, part.objects), name)
            self._rows[name, number] = found
        return found

    def scan(self, name: Name, number: int) -> Scan:
        relation = f"catalog_{name[1]}_{number}"
        return Scan(f"SELECT * FROM {relation}", {}, {relation: self.table(name)}, "system catalog")  # noqa: S608


def _divide(facts: Facts, before: dict[int, Part]) -> dict[int, Part]:
    """A part of `before` whose rows are the same is used again."""
    tables: defaultdict[int, list[Table]] = defaultdict(list)
    objects: defaultdict[int, list[Descriptor]] = defaultdict(list)
    for table in facts.tables:
        tables[table.id >> _PART_BITS].append(table)
    for found in facts.objects:
        objects[found.id >> _PART_BITS].append(found)
    return {
        number: _part(facts, tuple(tables[number]), tuple(objects[number]), before.get(number))
        for number in sorted({*tables, *objects})
    }


def _part(facts: Facts, tables: tuple[Table, ...], objects: tuple[Descriptor, ...], before: Part | None) -> Part:
    is_known = before is not None and _are_same(tables, before.tables) and _are_same(objects, before.objects)
    if before is not None and is_known:
        referred = before.referred
    else:
        referred = tuple(sorted({id_ for each in (*tables, *objects) for id_ in _referred(each)}))
    outside = tuple(map(facts.by_id.get, referred))
    parents = facts.parents.intersection(table.id for table in tables)
    if before is not None and is_known and parents == before.parents and _are_same(outside, before.outside):
        return before
    return Part(tables, objects, referred, outside, parents)


def _referred(descriptor: Descriptor) -> set[DescriptorId]:
    types = descriptor.types or () if isinstance(descriptor, View) else ()
    return referred_by(descriptor) | {DescriptorId(type_.enum) for type_ in types if type_.enum}


def _are_same(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def _shared_by_all(facts: Facts) -> tuple[object, ...]:
    """What the rows of every part depend on."""
    return _session_of(facts), facts.namespaces, facts.roles, facts.databases, facts.shadowed


def _session_of(facts: Facts) -> tuple[object, ...]:
    return facts.database, facts.user, facts.search_path, facts.actor


class KeptCatalogs:
    """A cache of the newest few, valid while every descriptor is the same."""

    def __init__(self) -> None:
        self._kept: tuple[KeptCatalog, ...] = ()

    def get(self, facts: Facts) -> KeptCatalog:
        before = None
        for kept in self._kept:
            if _session_of(kept.facts) != _session_of(facts):
                continue
            if _are_same(kept.facts.tables, facts.tables) and _are_same(kept.facts.objects, facts.objects):
                return kept
            before = before or kept
        made = KeptCatalog(facts, before)
        # Replaced as a whole: sessions of several threads read it.
        self._kept = (made, *self._kept[: _KEPT_MAX - 1])
        return made


CATALOGS: Final = KeptCatalogs()
