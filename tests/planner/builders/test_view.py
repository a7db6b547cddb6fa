"""CREATE VIEW."""

import pytest

from tests.planner.builders.world import World, changes

T = "create table t (id int primary key, a int, b text)"


def _uses(world, name="v"):
    view = world.find(name)
    tables = {d.id: d for d in world.catalog.descriptors.values()}
    return [f"{tables[t].name}.{tables[t].column_by_id[c].name}" for t, c in view.column_uses]


@pytest.mark.parametrize(
    ("query", "uses"),
    [
        ("select a from t", ["t.a"]),
        ("select * from t", ["t.id", "t.a", "t.b"]),
        ("select x.b from t x where x.id > 3", ["t.b", "t.id"]),
        ("select t.a, u.a as other from t join u using (id)", ["t.a", "u.a", "t.id", "u.id"]),
        ("select a as z from t order by z", ["t.a"]),
        ("with w as (select a from t) select * from w", ["t.a"]),
        ("select 1 as one", []),
    ],
)
def test_relations_and_columns_are_kept_by_id(query, uses):
    world = World(T, "create table u (id int primary key, a int)")
    plan = world.run(f"create view v as {query}")
    assert changes(plan) == {"+View", "+ViewQuery", "+Namespace"}
    assert sorted(_uses(world)) == sorted(uses)
    assert world.find("v").query == query


def test_or_replace_is_another_query_under_the_same_id():
    world = World(T, "create view v as select a from t", "comment on view v is 'mine'")
    before = world.find("v")
    plan = world.run("create or replace view v as select b from t")
    assert changes(plan) == {"-ViewQuery", "+ViewQuery"}
    after = world.find("v")
    assert (after.id, after.access) == (before.id, before.access)
    assert _uses(world) == ["t.b"]


def test_a_view_may_read_what_the_same_transaction_creates():
    world = World()
    world.run("create table n (a int); create view v as select a from n; create view w as select a from v")
    assert world.find("w").relation_ids == (world.find("v").id,)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("create view x as select nosuch from t", "42703"),
        ("create view x as select a from nosuch", "42P01"),
        ("create view x as select a from nosuch.t", "42P01"),
        ("create view x as select * from s", "0A000"),
        ("create view x as select * from t_pkey", "42809"),
        ("create view v as select 1 as a", "42P07"),
        ("create or replace view t as select 1 as a", "42809"),
        ("create or replace view v as select a from v", "42P17"),
        ("create or replace view v as select a from w", "42P17"),
        ("create view x (a, a) as select a, b from t", "42701"),
        ("create or replace view c (y) as select a from t", "42P16"),
        ("create or replace view c (x, y) as select a, b from t", None),
        ("create view nosuch.x as select 1 as a", "3F000"),
    ],
)
def test_invalid_view_statement_has_the_code_of_postgresql(statement, code):
    world = World(T, "create sequence s", "create view v as select a from t", "create view w as select a from v")
    world.run("create view c (x) as select a from t")
    assert world.code(statement) == code
