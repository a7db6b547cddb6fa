"""No status and no fence of a lifecycle is there in vain: without it a change does harm, or cannot be planned."""

import pytest

from seachange.cli.verify import parse_ddl
from seachange.model.change.targets import Status
from seachange.planner.elements.registry import LIFECYCLES
from seachange.planner.lifecycles import seachange as lifecycles
from seachange.planner.lifecycles.lifecycle import Lifecycle
from seachange.verify.model.check import check_scenario
from seachange.verify.model.mutants import Edit, Effect, Mutant
from seachange.verify.model.scenario import Protocol
from seachange.verify.model.scenarios import RETURN_SCENARIOS, SCENARIOS

# Where the lack shows.
SHOWN_BY: dict[str, tuple[Lifecycle, str]] = {
    "column": (lifecycles.COLUMN, "add a column with a volatile default"),
    "converted column": (lifecycles.CONVERTED_COLUMN, "convert a column"),
    "restored column": (lifecycles.RESTORED_COLUMN, "bring a column back"),
    "index": (lifecycles.INDEX, "create an index"),
    "unique index": (lifecycles.UNIQUE_INDEX, "create a unique index"),
    "row constraint": (lifecycles.ROW_CONSTRAINT, "set NOT NULL"),
    "foreign key": (lifecycles.FOREIGN_KEY, "add a foreign key"),
    "data": (lifecycles.DATA, "create an index"),
}
# Rows of the table must have the column's value while the primary index is rebuilt, or values are restored, before
# anybody sees it.
UNPLANNED = {("column", Status.WRITE_ONLY), ("restored column", Status.WRITE_ONLY)}


def removals():
    for name, (lifecycle, _) in SHOWN_BY.items():
        for step in (*lifecycle.add, *lifecycle.drop):
            if step.to not in (Status.PUBLIC, Status.ABSENT):
                yield name, step.to, Effect.LEAVE_OUT
            if step.fenced:
                yield name, step.to, Effect.UNFENCE


@pytest.mark.parametrize(("name", "status", "effect"), list(removals()))
def test_each_status_and_each_fence_is_needed(name, status, effect):
    lifecycle, shown_by = SHOWN_BY[name]
    kinds = tuple(kind for kind, used in LIFECYCLES.items() if used is lifecycle)
    mutant = Mutant(name, "", shown_by, (Edit(kinds, status, effect),))
    scenario = next(s for s in (*SCENARIOS, *RETURN_SCENARIOS) if s.name == shown_by)
    result = check_scenario(scenario, Protocol.SEACHANGE, (mutant,), parse_ddl).result
    if result is None:
        assert (name, status) in UNPLANNED
    else:
        assert result.problem is not None


def test_every_lifecycle_with_states_of_its_own_is_looked_at():
    looked_at = [lifecycle for lifecycle, _ in SHOWN_BY.values()]
    for kind, lifecycle in LIFECYCLES.items():
        assert lifecycle in (*looked_at, lifecycles.SIMPLE), kind
