"""What the planner knows of a database: its descriptors at one moment, and how large the tables are.

**Invariant:** a value. A change makes another one (`apply_ops`); nothing here reads a clock, a file or a network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.change.ops import BackfillIndexes, Op, SetState
from seachange.model.ids import DescriptorId, IndexId, TableId
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import DEFAULT_DATABASE, DEFAULT_SCHEMA, Descriptor
from seachange.model.states import State
from seachange.planner.comments import follow_comments
from seachange.planner.object_names import ObjectNames, names_of
from seachange.planner.object_parts import compose, decompose
from seachange.planner.object_users import ObjectUsers, users_of


@dataclass(frozen=True, slots=True)
class TableSize:
    """What is stored of a table: its primary index. `rows` is exact only where it is 0."""

    rows: int = 0
    bytes: int = 0
    files: int = 0


class BuildSampler(Protocol):
    def entry_bytes(self, table: Table, op: BackfillIndexes) -> Mapping[IndexId, int]:
        """How much the indexes that a backfill is to build will take; without those of which nothing is known."""


@dataclass(frozen=True, slots=True)
class PastChange:
    """A published change: its id, its statement, and the versions before and after it of what it changed. `is_double`:
    its first part was published before; `is_unknown`: it is not known what there was before that. `emptied`
    are tables whose rows went; `refills`: rows came back."""

    id: int
    statement: str
    versions: tuple[tuple[Descriptor | None, Descriptor | None], ...]
    is_double: bool = False
    is_unknown: bool = False
    emptied: frozenset[TableId] = frozenset()
    refills: bool = False

    @property
    def reverts(self) -> int | None:
        """The change that it has reverted."""
        words = self.statement.lower().split()
        is_revert = words[:2] == ["revert", "change"] and len(words) > 2 and words[2].isdigit()
        return int(words[2]) if is_revert else None

    @property
    def is_revert(self) -> bool:
        return self.reverts is not None


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """`sizes` lacks tables of which nothing is known; `dropped` are objects that are still kept; `search_path` are
    the schemas in which names without one are looked for, of which some may not exist, `database` is that of the
    session."""

    descriptors: Mapping[DescriptorId, Descriptor] = field(default_factory=dict)
    sizes: Mapping[TableId, TableSize] = field(default_factory=dict)
    dropped: tuple[Descriptor, ...] = ()
    search_path: tuple[str, ...] = (DEFAULT_SCHEMA,)
    database: str = DEFAULT_DATABASE
    # The change that is reverted and the later ones, oldest first.
    history: tuple[PastChange, ...] = ()
    # Those of the descriptors, where they are known already.
    names: ObjectNames | None = field(default=None, compare=False, repr=False)
    users: ObjectUsers | None = field(default=None, compare=False, repr=False)
    # Looks at rows, where they are there to be looked at.
    sampler: BuildSampler | None = field(default=None, compare=False, repr=False)

    def with_descriptors(self, descriptors: Mapping[DescriptorId, Descriptor]) -> KnownSchema:
        """The same of others, whose names and users are not known yet."""
        return replace(self, descriptors=descriptors, names=None, users=None)

    def connected(self, ids: Iterable[DescriptorId]) -> set[DescriptorId]:
        """These and all that refer to them or are referred to by them, however indirectly."""
        users = self.users if self.users is not None else users_of(self.descriptors.values())
        return users.connected(ids, self.descriptors)

    def object_names(self) -> ObjectNames:
        return self.names if self.names is not None else names_of(self.descriptors.values(), self.database)

    def is_empty(self, table_id: TableId) -> bool:
        size = self.sizes.get(table_id)
        return size is not None and size.rows == 0


def apply_ops(catalog: KnownSchema, ops: Iterable[Op]) -> KnownSchema:
    """The catalog after a stage: every descriptor that the ops touch has its next version."""
    changes: dict[DescriptorId, list[SetState]] = {}
    for op in ops:
        if isinstance(op, SetState):
            changes.setdefault(descriptor_of(op.element), []).append(op)
    descriptors = dict(catalog.descriptors)
    dropped = list(catalog.dropped)
    for id_, mutations in changes.items():
        before = descriptors.pop(id_, None)
        kept = next((found for found in reversed(dropped) if found.id == id_), None) if before is None else None
        after = change_descriptor(before, mutations, kept)
        if after is not None:
            descriptors[id_] = after
        elif isinstance(before, Table):
            dropped.append(before)
    # What came back is not dropped any more.
    still = tuple(found for found in dropped if found.id not in descriptors)
    return replace(catalog.with_descriptors(descriptors), dropped=still)


def change_descriptor(
    before: Descriptor | None, mutations: Sequence[SetState], kept: Descriptor | None = None
) -> Descriptor | None:
    """The next version of one descriptor. Changes are made to what it is now, so that a change under way and a comment
    made meanwhile do not undo each other. `kept` is the last version of an object that comes back: the layouts of a
    table, in which its files were written, and the ids that it has used up come back too."""
    known: Mapping[Element, State] = decompose(before) if before is not None else {}
    parts = dict(known)
    missed: list[elements.Comment] = []
    for mutation in mutations:
        if isinstance(mutation.element, elements.Comment) and mutation.element not in parts:
            missed += [mutation.element] if mutation.state is State.ABSENT else []
        # Taken out first: the element that is put in may know more, of which comparisons know nothing.
        parts.pop(mutation.element, None)
        if mutation.state is not State.ABSENT:
            parts[mutation.element] = mutation.state
    if any(m.state is State.ABSENT and isinstance(m.element, elements.AnyColumn) for m in mutations):
        _drop_lone_types(parts)
    follow_comments(known, parts, missed)
    return compose(before if before is not None else kept, parts)


def _drop_lone_types(parts: dict[Element, State]) -> None:
    """The key of an index that is an expression is planned as a text, and DuckDB has told its type since: when it goes,
    its type is another element than the one that is taken out."""
    columns = {e.column_id for e in parts if isinstance(e, elements.AnyColumn)}
    for part in [e for e in parts if isinstance(e, elements.ColumnType) and e.column_id not in columns]:
        del parts[part]
