"""Checks and foreign keys."""

from __future__ import annotations

from collections.abc import Mapping

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.targets import Status
from seachange.model.ids import TableId
from seachange.model.schema.constraint import Check, ForeignKey
from seachange.model.schema.descriptor import Table
from seachange.model.states import REFUSING, State
from seachange.planner.elements.rule import CONSTRAINTS, INDEXES, Adding, Dropping, Moment, Rule, RuleOrder
from seachange.planner.elements.spec import ElementNaming, ElementSpec, Host, Parts, Topic, copy_fields
from seachange.planner.lifecycles.seachange import FOREIGN_KEY, ROW_CONSTRAINT, SIMPLE

_BOTH_ENDS = ("table_id", "constraint_id")
_KEY = (("index_id", "parent_index_id"), ("table_id", "parent_id"))
_HOST = Host(CONSTRAINTS, ("table_id", "constraint_id"))

CONSTRAINT = Topic(
    specs=(
        ElementSpec(elements.ConstraintName, SIMPLE, "constraint", ElementNaming.NAME, host=_HOST),
        ElementSpec(elements.CheckConstraint, ROW_CONSTRAINT, "check", ElementNaming.OWN),
        ElementSpec(elements.ForeignKeyElement, FOREIGN_KEY, "foreign key", ElementNaming.OWN),
        ElementSpec(elements.ForeignKeyParent, FOREIGN_KEY, "parent's end of foreign key"),
    ),
    rules=(
        Rule(
            name="a constraint comes with its name",
            reason="its violation is reported by it",
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
    ),
)


def take_constraints(table: Table) -> Parts:
    parts: Parts = {}
    for check in table.checks:
        element = elements.CheckConstraint(table.id, check.id, check.expression, check.columns, check.not_valid)
        parts[element] = check.state
        parts[elements.ConstraintName(table.id, check.id, check.name)] = State.PUBLIC
    for key in table.foreign_keys:
        parts[foreign_key_element(table.id, key)] = key.state
        parts[elements.ConstraintName(table.id, key.id, key.name)] = State.PUBLIC
    return parts


def foreign_key_element(table_id: TableId, key: ForeignKey) -> elements.ForeignKeyElement:
    return copy_fields(
        key,
        elements.ForeignKeyElement,
        table_id=table_id,
        constraint_id=key.id,
        column_ids=key.columns,
        parent_id=key.parent,
        parent_index_id=key.parent_index,
    )


def put_constraints(parts: Mapping[Element, State]) -> tuple[tuple[Check, ...], tuple[ForeignKey, ...]]:
    names = {e.constraint_id: e.name for e in parts if isinstance(e, elements.ConstraintName)}
    checks: list[Check] = []
    keys: list[ForeignKey] = []
    for element, state in parts.items():
        match element:
            case elements.CheckConstraint(constraint_id=id_):
                checks.append(Check(id_, names[id_], element.expression, element.column_ids, state, element.not_valid))
            case elements.ForeignKeyElement(constraint_id=id_):
                key = copy_fields(
                    element,
                    ForeignKey,
                    id=id_,
                    name=names[id_],
                    columns=element.column_ids,
                    parent=element.parent_id,
                    parent_index=element.parent_index_id,
                    state=state,
                    uncommitted=element.uncommitted and state not in REFUSING,
                )
                keys.append(key)
            case _:
                pass
    return tuple(checks), tuple(keys)
