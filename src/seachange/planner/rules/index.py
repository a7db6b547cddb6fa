"""Rules about indexes and their data."""

from __future__ import annotations

from seachange.model.change import elements
from seachange.model.change.targets import Status
from seachange.planner.rules.rule import COLUMNS, INDEX_PARTS, INDEXES, Adding, Dropping, Rule, RuleOrder

_BUILT_FROM_ROWS = (elements.SecondaryIndex, elements.UniqueIndex)

INDEX_RULES: tuple[Rule, ...] = (
    Rule(
        name="an index comes with its name",
        reason="the violation of a unique index is told by it",
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
        reason="a writer that still knows the index would add to files of which nobody knows",
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
)
