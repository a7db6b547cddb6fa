"""What a change of a large table costs, and the cheaper form where there is one: said before the work begins.

**Invariant:** advice follows from the plan, like EXPLAIN (DDL, COST), so the two never disagree.
"""

from __future__ import annotations

from enum import StrEnum

from seachange.model.change import elements
from seachange.model.ids import TableId
from seachange.model.schema.descriptor import Table
from seachange.planner.explain.words import bytes_in_words, count_of
from seachange.planner.known_schema import KnownSchema
from seachange.planner.plan import ChangePlan
from seachange.planner.strategy import Strategy, measure_whole, strategy_of

# Of fewer rows everything is done in no time.
ROWS_MIN = 100_000


class AdviceForm(StrEnum):
    CONVERSION = "another type"
    KEYLESS = "a table without a primary key"
    DRAWN = "a value of its own for each row"
    GENERATED = "a stored generated column"
    KEY = "another primary key"
    FOREIGN_KEY = "a foreign key"
    CHECK = "a CHECK"
    NOT_NULL = "NOT NULL"


# The most expensive first: of one change the first that applies is reported.
CHEAPER: dict[AdviceForm, str] = {
    AdviceForm.KEY: "a UNIQUE constraint builds one index instead of the table and all of its indexes",
    AdviceForm.KEYLESS: "ADD PRIMARY KEY in the same statement writes the rows once, instead of numbering them first",
    AdviceForm.CONVERSION: "a type that holds every old value (bigint for integer, text for varchar) moves nothing",
    AdviceForm.DRAWN: "ADD COLUMN without a default moves nothing; SET DEFAULT then serves new rows, UPDATE the others",
    AdviceForm.GENERATED: "a view, or an index on the expression, leaves the rows as they are",
    AdviceForm.FOREIGN_KEY: "NOT VALID checks new rows at once; VALIDATE CONSTRAINT reads the others when it suits",
    AdviceForm.CHECK: "NOT VALID checks new rows at once; VALIDATE CONSTRAINT reads the others when it suits",
    AdviceForm.NOT_NULL: "a valid CHECK (column IS NOT NULL), which can be added as NOT VALID, makes it one commit",
}
_COSTS: dict[Strategy, str] = {
    Strategy.VALIDATE_ONLY: "reads {rows}",
    Strategy.RESTORE_VALUES: "reads {rows}",
    Strategy.BUILD_INDEX: "reads {rows} and writes {bytes}",
    Strategy.REBUILD_PRIMARY: "rewrites {rows}, {bytes}",
}


def advise(plan: ChangePlan, catalog: KnownSchema) -> list[str]:
    """A line for each large table whose rows are read or written. Sizes of the catalog are those that are known."""
    forms: dict[TableId, AdviceForm] = {}
    for part in filter(None, (plan, plan.then)):
        for form in CHEAPER:
            for table_id in _tables_of(form, part):
                forms.setdefault(table_id, form)
    return [line for table_id, form in forms.items() if (line := _line(plan, catalog, table_id, form))]


def _tables_of(form: AdviceForm, plan: ChangePlan) -> list[TableId]:
    found = []
    for number, target in enumerate(plan.graph.targets):
        is_work = strategy_of(number, plan.graph) is not Strategy.METADATA_ONLY
        if target.adds and is_work and _form(target.element, plan) is form:
            found.append(TableId(elements.descriptor_of(target.element)))
    return found


def _form(element: elements.Element, plan: ChangePlan) -> AdviceForm | None:
    match element:
        case elements.ConvertedColumn():
            return AdviceForm.CONVERSION
        case elements.ColumnElement(hidden=True):
            return AdviceForm.KEYLESS
        case elements.ColumnElement():
            generated = elements.ColumnGenerated
            place = (element.table_id, element.column_id)
            others = [t.element for t in plan.graph.targets if isinstance(t.element, generated)]
            return AdviceForm.GENERATED if place in [(o.table_id, o.column_id) for o in others] else AdviceForm.DRAWN
        case elements.PrimaryIndex(rebuilt_ids=()):
            return AdviceForm.KEY
        case elements.ForeignKeyElement():
            return AdviceForm.FOREIGN_KEY
        case elements.CheckConstraint():
            return AdviceForm.CHECK
        case elements.ColumnNotNull():
            return AdviceForm.NOT_NULL
        case _:
            return None


def _line(plan: ChangePlan, catalog: KnownSchema, table_id: TableId, form: AdviceForm) -> str | None:
    size, table = catalog.sizes.get(table_id), catalog.descriptors.get(table_id)
    if size is None or size.rows < ROWS_MIN or not isinstance(table, Table):
        return None
    cost = measure_whole(plan, catalog)
    moved = bytes_in_words(cost.bytes_moved)
    work = _COSTS[cost.strategy].format(rows=f"about {count_of(size.rows, 'row')}", bytes=moved)
    return f'{form} on "{table.name}" {work}, while others go on; cheaper: {CHEAPER[form]}'
