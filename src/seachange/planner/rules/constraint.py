"""Rules about constraints."""

from __future__ import annotations

from seachange.model.change import elements
from seachange.model.change.targets import Status
from seachange.planner.rules.rule import CONSTRAINTS, INDEXES, Adding, Dropping, Moment, Rule, RuleOrder

_BOTH_ENDS = ("table_id", "constraint_id")
_KEY = (("index_id", "parent_index_id"), ("table_id", "parent_id"))

CONSTRAINT_RULES: tuple[Rule, ...] = (
    Rule(
        name="a constraint comes with its name",
        reason="its violation is told by it",
        first=Adding(CONSTRAINTS, Moment.FIRST),
        order=RuleOrder.WITH,
        then=Adding((elements.ConstraintName,), Status.PUBLIC),
        join=("table_id", "constraint_id"),
    ),
    Rule(
        name="a constraint goes with its name",
        reason="the name is free for another from then on",
        first=Dropping((elements.ConstraintName,)),
        order=RuleOrder.WITH,
        then=Dropping(CONSTRAINTS),
        join=("table_id", "constraint_id"),
    ),
    Rule(
        name="a constraint waits for its column's backfill",
        reason="until then it would refuse rows, or fail, for values that are still to come",
        first=Adding((elements.PrimaryIndex,), Status.BACKFILLED),
        order=RuleOrder.BEFORE,
        then=Adding(CONSTRAINTS, Status.ENFORCED),
        join=("table_id", ("rebuilt_ids", "column_ids")),
    ),
    Rule(
        name="a NOT NULL waits for its column's backfill",
        reason="until then it would refuse rows, or fail, for values that are still to come",
        first=Adding((elements.PrimaryIndex,), Status.BACKFILLED),
        order=RuleOrder.BEFORE,
        then=Adding((elements.ColumnNotNull,), Status.ENFORCED),
        join=("table_id", ("rebuilt_ids", "column_id")),
    ),
    Rule(
        name="both ends of a foreign key learn of it in one stage",
        reason="one raise must cover the writers of either table",
        first=Adding((elements.ForeignKeyElement,), Status.WRITE_ONLY),
        order=RuleOrder.WITH,
        then=Adding((elements.ForeignKeyParent,), Status.WRITE_ONLY),
        join=_BOTH_ENDS,
    ),
    Rule(
        name="both ends of a foreign key are enforced in one stage",
        reason="a parent deleted by a writer who does not check would orphan a child whose writer did",
        first=Adding((elements.ForeignKeyElement,), Status.ENFORCED),
        order=RuleOrder.WITH,
        then=Adding((elements.ForeignKeyParent,), Status.ENFORCED),
        join=_BOTH_ENDS,
    ),
    Rule(
        name="both ends of a foreign key are validated in one stage",
        reason="the writers of either table must know of it before the rows are looked at",
        first=Adding((elements.ForeignKeyElement,), Status.VALIDATED),
        order=RuleOrder.WITH,
        then=Adding((elements.ForeignKeyParent,), Status.VALIDATED),
        join=_BOTH_ENDS,
    ),
    Rule(
        name="both ends of a foreign key are public in one stage",
        reason="what one table shows of it the other must not deny",
        first=Adding((elements.ForeignKeyElement,), Status.PUBLIC),
        order=RuleOrder.WITH,
        then=Adding((elements.ForeignKeyParent,), Status.PUBLIC),
        join=_BOTH_ENDS,
    ),
    Rule(
        name="both ends of a foreign key go in one stage",
        reason="an end that still checks would refuse what the other allows",
        first=Dropping((elements.ForeignKeyElement,)),
        order=RuleOrder.WITH,
        then=Dropping((elements.ForeignKeyParent,)),
        join=_BOTH_ENDS,
    ),
    Rule(
        name="a foreign key is pointed at another key in one stage",
        reason="in every version it is there once",
        first=Dropping((elements.ForeignKeyElement,)),
        order=RuleOrder.WITH,
        then=Adding((elements.ForeignKeyElement,), Moment.LAST),
        join=_BOTH_ENDS,
    ),
    Rule(
        name="a parent's key is written before a child refers to it",
        reason="a child declares the parent's key as its writers do",
        first=Adding(INDEXES, Status.WRITE_ONLY),
        order=RuleOrder.BEFORE,
        then=Adding((elements.ForeignKeyElement,), Status.WRITE_ONLY),
        join=_KEY,
    ),
    Rule(
        name="a parent's key is complete before a child is checked against it",
        reason="a parent without its entry would be taken for missing",
        first=Adding(INDEXES, Status.BACKFILLED),
        order=RuleOrder.BEFORE,
        then=Adding((elements.ForeignKeyElement,), Status.ENFORCED),
        join=_KEY,
    ),
    Rule(
        name="a parent's key is proven before children are validated against it",
        reason="a child must refer to one row",
        first=Adding((elements.UniqueIndex,), Status.VALIDATED),
        order=RuleOrder.BEFORE,
        then=Adding((elements.ForeignKeyElement,), Status.VALIDATED),
        join=_KEY,
    ),
    Rule(
        name="a foreign key goes with the key that it refers to",
        reason="it would have nothing to look the parent up in",
        first=Dropping((elements.ForeignKeyElement,)),
        order=RuleOrder.WITH,
        then=Dropping(INDEXES),
        join=(("parent_index_id", "index_id"), ("parent_id", "table_id")),
    ),
)
