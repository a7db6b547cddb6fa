"""Indexes, their parts and their data."""

from __future__ import annotations

from collections.abc import Mapping

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.targets import Status
from seachange.model.ids import IndexId
from seachange.model.schema.descriptor import Index, Table
from seachange.model.states import State
from seachange.planner.elements.rule import COLUMNS, INDEX_PARTS, INDEXES, Adding, Dropping, Rule, RuleOrder
from seachange.planner.elements.spec import ElementNaming, ElementSpec, Host, Parts, Topic, copy_fields
from seachange.planner.lifecycles.seachange import DATA, SIMPLE, UNIQUE_INDEX
from seachange.planner.lifecycles.seachange import INDEX as INDEX_LIFECYCLE

_BUILT_FROM_ROWS = (elements.SecondaryIndex, elements.UniqueIndex)
_HOST = Host(INDEXES, ("table_id", "index_id"))

INDEX = Topic(
    specs=(
        ElementSpec(elements.KeyConstraint, SIMPLE, "constraint of index", host=_HOST),
        ElementSpec(elements.IndexName, SIMPLE, "index", ElementNaming.NAME, host=_HOST, known_outside=True),
        ElementSpec(elements.PrimaryIndex, INDEX_LIFECYCLE, "primary index", ElementNaming.OWN),
        ElementSpec(elements.SecondaryIndex, INDEX_LIFECYCLE, "index", ElementNaming.OWN),
        ElementSpec(elements.UniqueIndex, UNIQUE_INDEX, "unique index", ElementNaming.OWN),
        ElementSpec(elements.IndexData, DATA, "data of index", host=_HOST, known_outside=True),
    ),
    rules=(
        Rule(
            name="an index comes with its name",
            reason="the violation of a unique index is reported by it",
            first=Adding(INDEXES, Status.WRITE_ONLY),
            order=RuleOrder.WITH,
            then=Adding(INDEX_PARTS, Status.PUBLIC),
            join=("table_id", "index_id"),
        ),
        Rule(
            name="an index has data from its first write on",
            reason="whatever becomes of the change, its files are known and will be collected",
            first=Adding(INDEXES, Status.WRITE_ONLY),
            order=RuleOrder.WITH,
            then=Adding((elements.IndexData,), Status.PUBLIC),
            join=("table_id", "index_id"),
        ),
        Rule(
            name="an index goes with its name",
            reason="the name is free for another from then on",
            first=Dropping(INDEX_PARTS),
            order=RuleOrder.WITH,
            then=Dropping(INDEXES),
            join=("table_id", "index_id"),
        ),
        Rule(
            name="data is collected after its index is gone",
            reason="a writer that still knows the index would add to files that nothing refers to",
            first=Dropping(INDEXES),
            order=RuleOrder.EARLIER,
            then=Dropping((elements.IndexData,)),
            join=("table_id", "index_id"),
        ),
        Rule(
            name="data is collected after its table is gone",
            reason="a transaction that began before may still read it",
            first=Dropping((elements.TableElement,)),
            order=RuleOrder.EARLIER,
            then=Dropping((elements.IndexData,)),
            join=("table_id",),
        ),
        Rule(
            name="old and new primary index swap in one stage",
            reason="in every version there is exactly one public primary index",
            first=Dropping((elements.PrimaryIndex,)),
            order=RuleOrder.WITH,
            then=Adding((elements.PrimaryIndex,), Status.PUBLIC),
            join=("table_id", ("index_id", "replaces_id")),
        ),
        Rule(
            name="a column is public with the primary index that was rebuilt for it",
            reason="only there do all rows have its value",
            first=Adding((elements.PrimaryIndex,), Status.PUBLIC),
            order=RuleOrder.WITH,
            then=Adding(COLUMNS, Status.PUBLIC),
            join=("table_id", ("rebuilt_ids", "column_id")),
        ),
        Rule(
            name="a column is written before the primary index is rebuilt for it",
            reason="rows written during the rebuild must have its value",
            first=Adding(COLUMNS, Status.WRITE_ONLY),
            order=RuleOrder.BEFORE,
            then=Adding((elements.PrimaryIndex,), Status.WRITE_ONLY),
            join=("table_id", ("column_id", "rebuilt_ids")),
        ),
        Rule(
            name="a column is converted before the primary index is rebuilt for it",
            reason="rows written during the rebuild must have its value",
            first=Adding((elements.ConvertedColumn,), Status.VALIDATING),
            order=RuleOrder.BEFORE,
            then=Adding((elements.PrimaryIndex,), Status.WRITE_ONLY),
            join=("table_id", ("column_id", "rebuilt_ids")),
        ),
        Rule(
            name="other indexes are written only once the new primary index is",
            reason="their entries end in its key",
            first=Adding((elements.PrimaryIndex,), Status.WRITE_ONLY),
            order=RuleOrder.BEFORE,
            then=Adding(_BUILT_FROM_ROWS, Status.WRITE_ONLY),
            join=("table_id", ("index_id", "source_id")),
        ),
        Rule(
            name="other indexes are built from the new primary index",
            reason="a volatile expression is evaluated once, and their entries end in the new primary key",
            first=Adding((elements.PrimaryIndex,), Status.BACKFILLED),
            order=RuleOrder.BEFORE,
            then=Adding(_BUILT_FROM_ROWS, Status.BACKFILLED),
            join=("table_id", ("index_id", "source_id")),
        ),
        Rule(
            name="a primary key is proven unique before its index is written",
            reason="two rows with one key would become one",
            first=Adding((elements.UniqueIndex,), Status.VALIDATED),
            order=RuleOrder.BEFORE,
            then=Adding((elements.PrimaryIndex,), Status.WRITE_ONLY),
            join=("table_id", ("index_id", "proof_id")),
        ),
        Rule(
            name="a primary key is proven free of NULLs before its index is written",
            reason="a row without a key cannot be found again",
            first=Adding((elements.ColumnNotNull,), Status.VALIDATED),
            order=RuleOrder.BEFORE,
            then=Adding((elements.PrimaryIndex,), Status.WRITE_ONLY),
            join=("table_id", ("column_id", "column_ids")),
        ),
    ),
)


def take_indexes(table: Table) -> Parts:
    parts: Parts = {}
    for index in (*table.indexes, *table.coming):
        parts |= _take_index(table, index)
    return parts


def _take_index(table: Table, index: Index) -> Parts:
    parts: Parts = {index_element(table, index): index.state}
    parts[elements.IndexName(table.id, index.id, index.name)] = State.PUBLIC
    parts[elements.IndexData(table.id, index.id)] = State.PUBLIC
    if index.constraint:
        parts[elements.KeyConstraint(table.id, index.id)] = State.PUBLIC
    return parts


def index_element(table: Table, index: Index) -> elements.AnyIndex:
    if index.id == table.primary.id or index in table.coming:
        return elements.PrimaryIndex(table.id, index.id, index.key, index.descending)
    kind: type[elements.AnyIndex] = elements.UniqueIndex if index.unique else elements.SecondaryIndex
    return copy_fields(index, kind, table_id=table.id, index_id=index.id, source_id=index.source)


def put_indexes(before: Table | None, parts: Mapping[Element, State]) -> tuple[Index, list[Index], tuple[Index, ...]]:
    names: dict[IndexId, str] = {}
    constraints: set[IndexId] = set()
    for element in parts:
        if isinstance(element, elements.IndexName):
            names[element.index_id] = element.name
        elif isinstance(element, elements.KeyConstraint):
            constraints.add(element.index_id)
    primaries: list[Index] = []
    secondary: dict[IndexId, Index] = {}
    for element, state in parts.items():
        match element:
            case elements.PrimaryIndex(index_id=id_):
                primaries.append(
                    copy_fields(
                        element, Index, id=id_, name=names[id_], unique=True, state=state, constraint=id_ in constraints
                    )
                )
            case elements.SecondaryIndex(index_id=id_) | elements.UniqueIndex(index_id=id_):
                unique = element if isinstance(element, elements.UniqueIndex) else None
                is_public = state is State.PUBLIC
                secondary[id_] = copy_fields(
                    element,
                    Index,
                    id=id_,
                    name=names[id_],
                    unique=unique is not None,
                    state=state,
                    constraint=id_ in constraints,
                    # Once it is public, so is the index that it was made from.
                    source=None if is_public else element.source_id,
                    uncommitted=unique is not None and unique.uncommitted and not is_public,
                )
            case _:
                pass
    public = next(p for p in primaries if p.state is State.PUBLIC or len(primaries) == 1)
    coming = [p for p in primaries if p is not public]
    known = [i.id for i in before.secondary if i.id in secondary] if before is not None else []
    order = dict.fromkeys([*known, *secondary])
    return public, coming, tuple(secondary[id_] for id_ in order)
