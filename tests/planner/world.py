"""A database without storage: statements are planned against a catalog and applied to it, op by op."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from seachange.model.ids import TableId
from seachange.model.statements import ColumnDefinition, CreateMaterializedView, DdlStatement
from seachange.planner.known_schema import KnownSchema, PastChange, TableSize, apply_ops
from seachange.planner.plan import Change, ChangePlan, plan_revert, plan_statements
from seachange.planner.stages import Progress, Stage, progress_after
from seachange.sql.parsing.parse import parse_script
from seachange.values.types import TEXT

FIRST_ID = 100


def _parse(sql: str) -> list[DdlStatement]:
    """A materialized view has the columns that it lists, as texts: what its query gives is not known here."""
    found = []
    for statement in parse_script(sql):
        if isinstance(statement, CreateMaterializedView):
            columns = tuple(ColumnDefinition(name, TEXT) for name in statement.view.columns)
            statement = replace(statement, columns=columns)
        found.append(statement)
    return found  # type: ignore[return-value]


class World:
    def __init__(self) -> None:
        self.catalog = KnownSchema()
        self.ids = count(FIRST_ID)

    def plan(self, sql: str, in_block: bool = False) -> ChangePlan:
        return plan_statements(self.catalog, _parse(sql), self.ids, in_block=in_block)

    def run(self, sql: str) -> ChangePlan:
        """All statements of the script, as one transaction, to the end."""
        plan = self.plan(sql)
        self.catalog = apply_whole(self.catalog, plan)
        return plan

    def run_each(self, sql: str) -> None:
        """Each statement of the script as a transaction of its own."""
        for statement in _parse(sql):
            plan = plan_statements(self.catalog, [statement], self.ids)
            self.catalog = apply_whole(self.catalog, plan)

    def change_each(self, sql: str) -> None:
        """The same, with a history. Rows are as of ten times the number of a change."""
        for statement in sql.splitlines():
            before = self.catalog.descriptors
            self.run_each(statement)
            after = self.catalog.descriptors
            changed = [id_ for id_ in {**before, **after} if before.get(id_) != after.get(id_)]
            versions = tuple((before.get(id_), after.get(id_)) for id_ in changed)
            past = PastChange(10 * len(self.catalog.history) + 10, statement, versions)
            self.catalog = replace(self.catalog, history=(*self.catalog.history, past))

    def resize(self, table: str, **sizes: int) -> None:
        id_ = next(d.id for d in self.catalog.descriptors.values() if d.name == table)
        known = {**self.catalog.sizes, TableId(id_): TableSize(**sizes)}
        self.catalog = replace(self.catalog, sizes=known)

    def move(self, name: str, database: str) -> None:
        """A session makes objects in its own database only; this is what a session of another one has made."""
        found = next(d for d in self.catalog.descriptors.values() if d.name == name)
        moved = {**self.catalog.descriptors, found.id: replace(found, database=database)}  # type: ignore[arg-type]
        self.catalog = self.catalog.with_descriptors(moved)


def apply_whole(catalog: KnownSchema, plan: ChangePlan) -> KnownSchema:
    """After all stages, also those of the change that follows."""
    after = apply_stages(catalog, plan, plan.stages)
    return after if plan.then is None else apply_whole(after, plan.then)


def apply_stages(catalog: KnownSchema, plan: ChangePlan, stages: tuple[Stage, ...]) -> KnownSchema:
    for stage in stages:
        catalog = apply_ops(catalog, plan.ops(stage))
    return catalog


def is_reversible(plan: ChangePlan, done: tuple[Stage, ...]) -> bool:
    """Whether nothing has been done yet that cannot be reverted."""
    return all(plan.graph.nodes[n].step.revertible for stage in done for t in stage.transitions for n in t.nodes)


def progress_of(plan: ChangePlan, done: tuple[Stage, ...]) -> Progress:
    return progress_after(plan.graph, done)


def reverts(plan: ChangePlan) -> Iterator[tuple[int, ChangePlan]]:
    """The ways back from after each stage from which there is one, by the number of stages done."""
    change: Change = plan.change
    for number in range(1, len(plan.stages)):
        done = plan.stages[:number]
        if is_reversible(plan, done):
            yield number, plan_revert(change, progress_of(plan, done))
