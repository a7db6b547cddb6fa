"""How each kind of change is brought about: strategy, versions published, versions waited for, bytes moved."""

import pytest

from seachange.planner.strategy import Strategy, measure
from tests.planner.explain.plans import CHILD, FOO, world

NONE, VALIDATE, _, BUILD, REBUILD = Strategy


@pytest.mark.parametrize(
    ("sql", "strategy", "versions", "drains", "moved"),
    [
        ("alter table foo add column x int", NONE, 1, 0, 0),
        ("alter table foo add column x int not null default 7", NONE, 1, 0, 0),
        ("alter table foo drop column c2", NONE, 1, 0, 0),
        ("alter table foo rename column c2 to x", NONE, 1, 0, 0),
        ("alter table foo alter column c3 type bigint", NONE, 1, 0, 0),
        ("alter table foo alter column c3 set default 1", NONE, 1, 0, 0),
        ("alter table foo alter column c2 drop not null", NONE, 1, 0, 0),
        ("alter table foo drop constraint foo_c1_check", NONE, 1, 0, 0),
        ("alter table foo alter column c3 set not null", VALIDATE, 2, 1, 0),
        ("alter table foo add check (c3 > 0)", VALIDATE, 2, 1, 0),
        ("alter table child add foreign key (f) references foo", VALIDATE, 3, 2, 0),
        ("create index on foo (c1)", BUILD, 2, 1, 30_000),
        ("create index on foo (c1) include (c2)", BUILD, 2, 1, 45_000),
        ("create unique index on foo (c1)", BUILD, 3, 2, 30_000),
        ("create index on foo (c1); create index on foo (c2)", BUILD, 2, 1, 60_000),
        ("alter table foo alter column c3 type text", REBUILD, 2, 1, 60_000),
        ("alter table foo add column r double precision default random()", REBUILD, 2, 1, 60_000),
    ],
)
def test_statement_has_the_expected_cost(sql, strategy, versions, drains, moved):
    made = world(FOO, CHILD, foo=1000, child=10)
    cost = measure(made.plan(sql), made.catalog)
    assert (cost.strategy, cost.versions, cost.drains, cost.bytes_moved) == (strategy, versions, drains, moved)


def test_an_unknown_size_is_not_taken_for_nothing():
    made = world(FOO)
    assert measure(made.plan("create index on foo (c1)"), made.catalog).bytes_moved is None
    assert measure(made.plan("alter table foo add column x int"), made.catalog).bytes_moved == 0
