"""Rules about columns and what hangs on them."""

from __future__ import annotations

from seachange.model.change import elements
from seachange.model.change.targets import Status
from seachange.planner.rules.rule import (
    COLUMN_PARTS,
    COLUMNS,
    CONSTRAINTS,
    INDEXES,
    Adding,
    Dropping,
    Moment,
    Rule,
    RuleOrder,
)

COLUMN_RULES: tuple[Rule, ...] = (
    Rule(
        name="a column comes with its name, type and default",
        reason="a writer that knows the column must know what to store in it, or it leaves NULLs that nobody revisits",
        first=Adding(COLUMNS, Moment.FIRST),
        order=RuleOrder.WITH,
        then=Adding(COLUMN_PARTS, Status.PUBLIC),
        join=("table_id", "column_id"),
    ),
    Rule(
        name="a column goes with its name, type and default",
        reason="a descriptor with half a column is not one that a statement can be planned with",
        first=Dropping((*COLUMN_PARTS, elements.ColumnNotNull)),
        order=RuleOrder.WITH,
        then=Dropping(COLUMNS),
        join=("table_id", "column_id"),
    ),
    Rule(
        name="a column is written before an index stores it",
        reason="an entry is made of the row's values",
        first=Adding(COLUMNS, Moment.FIRST),
        order=RuleOrder.BEFORE,
        then=Adding(INDEXES, Status.WRITE_ONLY),
        join=("table_id", ("column_id", "column_ids")),
    ),
    Rule(
        name="a column is written before a constraint looks at it",
        reason="a constraint over a column that writers do not know cannot be met",
        first=Adding(COLUMNS, Moment.FIRST),
        order=RuleOrder.BEFORE,
        then=Adding(CONSTRAINTS, Moment.FIRST),
        join=("table_id", ("column_id", "column_ids")),
    ),
    Rule(
        name="a column is written before it must not be null",
        reason="a writer that does not know the column would be refused for it",
        first=Adding(COLUMNS, Moment.FIRST),
        order=RuleOrder.BEFORE,
        then=Adding((elements.ColumnNotNull,), Status.ENFORCED),
        join=("table_id", "column_id"),
    ),
    Rule(
        name="a column is written before another is generated from it",
        reason="the expression needs its value",
        first=Adding(COLUMNS, Moment.FIRST),
        order=RuleOrder.BEFORE,
        then=Adding((elements.ColumnGenerated,), Status.PUBLIC),
        join=("table_id", ("column_id", "column_ids")),
    ),
    Rule(
        name="an index is public only after its columns",
        reason="a reader that chooses the index must be able to name what it stores",
        first=Adding(COLUMNS, Status.PUBLIC),
        order=RuleOrder.BEFORE,
        then=Adding(INDEXES, Status.PUBLIC),
        join=("table_id", ("column_id", "column_ids")),
    ),
    Rule(
        name="a constraint is public only after its columns",
        reason="its violation is told by their names",
        first=Adding(COLUMNS, Status.PUBLIC),
        order=RuleOrder.BEFORE,
        then=Adding(CONSTRAINTS, Status.PUBLIC),
        join=("table_id", ("column_id", "column_ids")),
    ),
    Rule(
        name="a column is public only with its NOT NULL",
        reason="a reader may take a column that is declared so for free of NULLs",
        first=Adding((elements.ColumnNotNull,), Status.PUBLIC),
        order=RuleOrder.BEFORE,
        then=Adding(COLUMNS, Status.PUBLIC),
        join=("table_id", "column_id"),
    ),
    Rule(
        name="a column goes with the indexes that store it",
        reason="an index over a hidden column would be kept up with a made-up value",
        first=Dropping(INDEXES),
        order=RuleOrder.WITH,
        then=Dropping(COLUMNS),
        join=("table_id", ("column_ids", "column_id")),
    ),
    Rule(
        name="a column goes with the constraints that look at it",
        reason="no transaction may meet a constraint over a column that it cannot see",
        first=Dropping(CONSTRAINTS),
        order=RuleOrder.WITH,
        then=Dropping(COLUMNS),
        join=("table_id", ("column_ids", "column_id")),
    ),
    Rule(
        name="a column goes with the columns that are generated from it",
        reason="their expression would have no value",
        first=Dropping((elements.ColumnGenerated,)),
        order=RuleOrder.WITH,
        then=Dropping(COLUMNS),
        join=("table_id", ("column_ids", "column_id")),
    ),
    Rule(
        name="a converted column takes the place of the old one",
        reason="in every version there is exactly one column of the name",
        first=Dropping(COLUMNS),
        order=RuleOrder.WITH,
        then=Adding((elements.ConvertedColumn,), Status.PUBLIC),
        join=("table_id", ("column_id", "in_place_of")),
    ),
)
