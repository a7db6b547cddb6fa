"""Plans to explain: one that a test asks for, and all that the golden files hold."""

from collections.abc import Iterator
from dataclasses import replace

from seachange.model.statements.session_statements import DdlExplanation
from seachange.planner.explain.form import explain_plan
from seachange.planner.known_schema import KnownSchema
from seachange.planner.plan import ChangePlan
from tests.planner.golden import FOLDER, Case, read_blocks
from tests.planner.world import World

FOO = "create table foo (k text primary key, c1 int not null check (c1 > 5), c2 int not null, c3 int)"
CHANGE = (
    "alter table foo drop column c2, drop column c3, add column c4 int not null default 7, add constraint u unique (c4)"
)
CHILD = "create table child (id int primary key, f text references foo)"


def world(*setup: str, **rows: int) -> World:
    """A database after these statements, whose tables have so many rows."""
    made = World()
    for statement in setup:
        made.run_each(statement)
    for table, number in rows.items():
        made.resize(table, rows=number, bytes=number * 60, files=2)
    return made


def explain(made: World, sql: str, form: DdlExplanation = DdlExplanation.STAGES) -> list[str]:
    return explain_plan(made.plan(sql), made.catalog, form)


def golden_plans() -> Iterator[tuple[str, ChangePlan, KnownSchema]]:
    for path in sorted(FOLDER.glob("*.txt")):
        case = Case()
        for block in read_blocks(path.read_text()):
            before, known = case.world.catalog, len(case.plans)
            case.answer([block])
            if len(case.plans) > known:
                yield from _parts(path.stem, case.plans[-1], before)


def _parts(name: str, plan: ChangePlan, catalog: KnownSchema) -> Iterator[tuple[str, ChangePlan, KnownSchema]]:
    """A plan, and that of the change which follows it."""
    yield name, replace(plan, then=None, between=None), catalog
    if plan.then is not None and plan.between is not None:
        yield from _parts(f"{name}, then", plan.then, plan.between)
