from __future__ import annotations

from itertools import count

import pytest

from seachange.model.codecs.codec import Codec
from seachange.model.statements.table_statements import DdlStatement
from seachange.planner.known_schema import KnownSchema, apply_ops
from seachange.planner.plan import Change, plan_remainder, plan_statements
from seachange.planner.stages import Progress, progress_after
from seachange.sql.parsing.parse import parse_script

_CODEC = Codec(Change, Progress)
CHANGES = [
    "alter table t add column c int not null default 7, add unique (c), drop column b",
    "alter table t alter b type text using b || 'x'",
    "alter table t alter primary key using columns (b)",
    "create index on t (b); alter table t add check (b > 0) not valid; alter table t rename to u",
    "create table u (id int primary key, t int references t)",
]


def read(text: str) -> list[DdlStatement]:
    return [statement for statement in parse_script(text) if isinstance(statement, DdlStatement)]


@pytest.mark.parametrize("in_block", [False, True])
@pytest.mark.parametrize("text", CHANGES)
def test_a_change_comes_back_with_the_same_plan(text, in_block):
    ids = count(1)
    plan = plan_statements(KnownSchema(), read("create table t (id int primary key, b int)"), ids)
    catalog = apply_ops(KnownSchema(), plan.ops(plan.stages[0]))
    plan = plan_statements(catalog, read(text), ids, in_block=in_block)
    change = _CODEC.decode(_CODEC.encode(plan.change))
    assert change == plan.change
    # Comparisons of elements leave such a mark out.
    marks = [[getattr(t.element, "uncommitted", False) for t in c.targets] for c in (change, plan.change)]
    assert marks[0] == marks[1]
    for done in range(len(plan.stages)):
        progress = progress_after(plan.graph, plan.stages[:done])
        assert _CODEC.decode(_CODEC.encode(progress)) == progress
        rest = plan_remainder(change, progress, plan.stages[done].phase)
        assert [rest.ops(stage) for stage in rest.stages] == [plan.ops(stage) for stage in plan.stages[done:]]
