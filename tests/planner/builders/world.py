"""A database that consists of descriptors only: statements are planned, and their ops applied, without any rows."""

from itertools import count
from typing import cast

from seachange.errors import Error
from seachange.model.change.elements import element_name
from seachange.model.change.targets import Target
from seachange.model.schema.descriptor import Table
from seachange.model.statements.table_statements import DdlStatement
from seachange.planner.known_schema import KnownSchema, TableSize, apply_ops
from seachange.planner.plan import ChangePlan, plan_statements
from seachange.sql.parsing.parse import parse_script


class World:
    """`empty`: whether tables are known to have no rows. Otherwise they are taken to have some."""

    def __init__(self, *texts: str, empty: bool = False) -> None:
        self.catalog = KnownSchema()
        self.empty = empty
        self.ids = count(100)
        for text in texts:
            self.run(text)

    def plan(self, text: str) -> ChangePlan:
        statements = [cast(DdlStatement, statement) for statement in parse_script(text)]
        return plan_statements(self.catalog, statements, self.ids)

    def run(self, text: str) -> ChangePlan:
        plan = self.plan(text)
        for stage in plan.stages:
            self.catalog = apply_ops(self.catalog, plan.ops(stage))
        sizes = {id_: TableSize() for id_, d in self.catalog.descriptors.items() if isinstance(d, Table)}
        self.catalog = KnownSchema(self.catalog.descriptors, sizes if self.empty else {}, self.catalog.dropped)
        return plan

    def code(self, text: str) -> str | None:
        """The SQLSTATE with which a text is refused; None if it is planned."""
        try:
            self.plan(text)
        except Error as error:
            return error.sqlstate
        return None

    def find(self, name: str, schema: str | None = "public"):
        (found,) = [
            d for d in self.catalog.descriptors.values() if d.name == name and getattr(d, "schema", None) == schema
        ]
        return found

    @property
    def names(self) -> list[str]:
        return [d.name for d in self.catalog.descriptors.values()]


def changes(plan: ChangePlan) -> set[str]:
    """What comes and goes, by the kinds of the elements: `+Column`, `-Column`; `~` for the duration of the change."""
    return {_sign(target) + element_name(type(target.element)) for target in plan.change.targets}


def _sign(target: Target) -> str:
    return {"ABSENT": "-", "TRANSIENT": "~"}.get(target.goal, "+")
