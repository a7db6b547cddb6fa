"""REVERT CHANGE as a plan: what it is made of, and that changes reverted one by one leave what was there before."""

import random
from dataclasses import replace

import pytest

from seachange import errors
from seachange.model.change.ops import OpType
from seachange.planner.known_schema import PastChange
from tests.planner.builders.world import World

TABLES = (
    "create table p (id int primary key, code int unique)",
    "create table t (id int primary key, a int, b text default 'x', c int references p (code), check (a > 0))",
    "create index i on t (a)",
)
CHANGES = (
    "alter table t rename column a to a2",
    "alter table t alter column b set default 'y'",
    "alter table t alter column b set not null",
    "alter table t add column d int default 1",
    "alter table t add constraint k check (id < 9)",
    "create unique index u on t (b, id)",
    "drop index i",
    "alter table t drop constraint t_c_fkey",
    "alter table t drop constraint t_a_check",
    "comment on column t.b is 'text'",
    "grant select on t to public",
    "create view v as select id from t",
    "create table n (id int primary key)",
    "alter table t rename to t9",
)


class HistoryWorld(World):
    """Every statement is a change, numbered from 1 on."""

    def __init__(self) -> None:
        super().__init__()
        for sql in TABLES:
            self.run(sql)
        self.changes: list[PastChange] = []

    def change(self, sql):
        before = self.catalog.descriptors
        plan = self.run(sql)
        after = self.catalog.descriptors
        changed = [id_ for id_ in {**before, **after} if before.get(id_) != after.get(id_)]
        versions = tuple((before.get(id_), after.get(id_)) for id_ in changed)
        self.changes.append(PastChange(len(self.changes) + 1, sql, versions))
        self.catalog = replace(self.catalog, history=tuple(self.changes))
        return plan

    def revert(self, number, cascade=""):
        return self.change(f"revert change {number} {cascade}")

    def definitions(self):
        """Without the ids of indexes and constraints, which are not used twice."""
        return sorted((repr(d.name), self._parts(d)) for d in self.catalog.descriptors.values())

    def _parts(self, descriptor):
        if not hasattr(descriptor, "columns") or not hasattr(descriptor, "primary"):
            return repr(descriptor.name)
        names = {c.id: c.name for c in descriptor.columns}
        columns = [(c.name, str(c.type), c.nullable, c.default, c.state) for c in descriptor.columns]
        indexes = sorted((i.name, [names[k] for k in i.key], i.unique, i.state) for i in descriptor.indexes)
        checks = sorted((c.name, c.expression, c.state) for c in descriptor.checks)
        keys = sorted((k.name, [names[c] for c in k.columns], k.parent, k.state) for k in descriptor.foreign_keys)
        comments = sorted(comment.text for comment in descriptor.access.comments)
        return repr((columns, indexes, checks, keys, comments, descriptor.access.privileges))


@pytest.mark.parametrize("seed", range(20))
def test_changes_reverted_one_by_one_leave_what_was_before(seed):
    dice, world = random.Random(seed), HistoryWorld()
    before = [world.definitions()]
    for sql in dice.sample(CHANGES[:-1], 5) + [CHANGES[-1]] * dice.randrange(2):
        if "a check" in sql or world.code(sql) is None:
            world.change(sql)
            before.append(world.definitions())
    for number in range(len(before) - 1, 0, -1):
        assert world.definitions() == before[number]
        world.revert(number)
        assert world.definitions() == before[number - 1]


@pytest.mark.parametrize(
    ("sql", "works"),
    [
        ("drop index i", {OpType.BACKFILL}),
        ("alter table t drop constraint t_a_check", {OpType.VALIDATION}),
        ("create index j on t (b)", set()),
        ("alter table t rename column a to a2", set()),
        ("alter table t alter column b set not null", set()),
    ],
)
def test_work_of_a_revert(sql, works):
    world = HistoryWorld()
    world.change(sql)
    plan = world.revert(1)
    assert {stage.type for stage in plan.stages} - {OpType.MUTATION, OpType.COLLECTION} == works


def test_cascade_takes_back_what_depends_on_it_and_nothing_else():
    world = HistoryWorld()
    world.change("alter table t add column d int")
    world.change("alter table t alter column b set default 'z'")
    kept = world.definitions()
    world.change("create index j on t (d)")
    world.change("alter table t rename column d to e")
    with pytest.raises(errors.DependentChanges):
        world.revert(1)
    plan = world.revert(1, "cascade")
    assert [notice.split()[1] for notice in plan.notices] == ["4", "3"]
    # Only the column is gone, which was the last one.
    assert world.definitions() != kept
    world.change("alter table t add column d int")
    assert world.definitions() == kept
