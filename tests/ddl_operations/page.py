"""Generates docs/ddl.md: the cost of each listed statement, according to the planner."""

from seachange.model.change import elements
from seachange.model.change.ops import OpType
from seachange.planner.explain.outline import point_of_no_return
from seachange.planner.plan import ChangePlan
from seachange.planner.stages import Phase
from seachange.planner.strategy import measure_whole
from tests.ddl_operations.operations import OPERATIONS
from tests.ddl_operations.schema import ROWS_PLANNED, SETUP, TABLES
from tests.planner.explain.costs import moved
from tests.planner.explain.plans import world
from tests.planner.world import World

_HEAD = (
    "| statement | strategy | moves | versions waited for | can be reverted |",
    "| --- | --- | --- | --- | --- |",
)


def catalogue_world() -> World:
    return world(*SETUP, **dict.fromkeys(TABLES, ROWS_PLANNED))


def revertible_until(plan: ChangePlan) -> str:
    """Until when a cancelled change leaves nothing behind."""
    if not plan.stages:
        return ""
    turning = point_of_no_return(plan)
    drops_table = any(isinstance(t.element, elements.TableElement) and not t.adds for t in plan.change.targets)
    later = "; the table by UNDROP TABLE while history is kept" if drops_table else ""
    counted = [stage for stage in plan.stages if stage.type is not OpType.COLLECTION]
    if turning is None:
        # It publishes nothing that other sessions see.
        turning = len(counted) - 1
    if plan.stages[turning].phase is Phase.PRE_COMMIT:
        return f"until COMMIT{later}"
    if plan.then is not None:
        # Reverting the second change also reverts what the first has published.
        return revertible_until(plan.then).replace(" of ", " of the second change's ")
    return f"until stage {turning + 1} of {len(counted)}{later}"


def row(made: World, sql: str) -> str:
    plan = made.plan(sql)
    cost = measure_whole(plan, made.catalog)
    strategy = cost.strategy.value if plan.stages else "nothing to do"
    cells = [f"`{sql}`", strategy, moved(cost), str(cost.drains), revertible_until(plan)]
    return f"| {' | '.join(cells)} |"


def catalogue() -> list[str]:
    made = catalogue_world()
    lines: list[str] = []
    for operation in OPERATIONS:
        lines += [f"## {operation.name}", "", operation.online, "", *_HEAD]
        lines += [row(made, sql) for sql in operation.statements]
        lines.append("")
    return lines[:-1]
