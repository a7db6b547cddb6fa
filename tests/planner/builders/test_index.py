"""CREATE and DROP INDEX, in every form."""

import pytest

from seachange.model.change.ops import OpType
from tests.planner.builders.world import World, changes

T = "create table t (id int primary key, a int, b text)"
INDEX = {"+IndexName", "+IndexData"}
VIRTUAL = {"+Column", "+ColumnName", "+ColumnType", "+ColumnGenerated"}


@pytest.mark.parametrize(
    ("statement", "kinds", "name"),
    [
        ("create index on t (a)", {"+SecondaryIndex"}, "t_a_idx"),
        ("create unique index on t (a, b)", {"+UniqueIndex"}, "t_a_b_idx"),
        ("create index on t (a desc)", {"+SecondaryIndex"}, "t_a_idx"),
        ("create index on t (a) include (b)", {"+SecondaryIndex"}, "t_a_b_idx"),
        ("create unique index on t (a) where b is not null", {"+UniqueIndex"}, "t_a_idx"),
        ("create index on t (lower(b))", {"+SecondaryIndex", *VIRTUAL}, "t_lower_idx"),
        ("create unique index on t ((a + 1), b)", {"+UniqueIndex", *VIRTUAL}, "t_expr_b_idx"),
        ("create index concurrently x on t (a)", {"+SecondaryIndex"}, "x"),
    ],
)
def test_create_index_adds_the_elements_of_an_index(statement, kinds, name):
    world = World(T)
    assert changes(world.run(statement)) == {*kinds, *INDEX}
    assert [index.name for index in world.find("t").secondary] == [name]


def test_what_is_said_of_an_index_is_in_its_descriptor():
    world = World(T, "create unique index i on t (a desc, lower(b)) include (id) where a > 0")
    table = world.find("t")
    (index,) = table.secondary
    key = table.column_by_id[index.key[1]]
    assert index.unique
    assert index.descending == (index.key[0],) == (table.column_by_name["a"].id,)
    assert (key.virtual, key.hidden, key.generated.columns) == (True, True, (table.column_by_name["b"].id,))
    assert index.where.columns == (table.column_by_name["a"].id,)
    assert [c.name for c in table.visible_columns] == ["id", "a", "b"]


def test_the_entries_of_an_expression_are_built_like_others():
    plan = World(T).plan("create unique index on t (lower(b))")
    assert [stage.type for stage in plan.stages] == [
        OpType.MUTATION,
        OpType.BACKFILL,
        OpType.MUTATION,
        OpType.VALIDATION,
        OpType.MUTATION,
    ]


def test_indexes_on_one_expression_share_a_column_that_goes_with_the_last():
    world = World(T, "create index i on t (lower(b))", "create index j on t (lower(b), a)")
    first, second = world.find("t").secondary
    assert first.key[0] == second.key[0]
    assert "-Column" not in changes(world.run("drop index i"))
    assert "-Column" in changes(world.run("drop index j"))
    assert [c.name for c in world.find("t").columns] == ["id", "a", "b"]


@pytest.mark.parametrize("statement", ["create index on t (lower(b))", "create index on t (a) where b <> ''"])
def test_an_index_goes_with_any_column_that_it_computes_with(statement):
    world = World(T, statement, "alter table t drop column b")
    assert not world.find("t").secondary
    assert [c.name for c in world.find("t").columns] == ["id", "a"]


def test_a_key_that_contains_another_is_not_looked_at():
    plan = World(T).plan("create unique index on t (a, id)")
    assert OpType.VALIDATION not in [stage.type for stage in plan.stages]
    plan = World(T, "create unique index on t (a) where b <> ''").plan("create unique index on t (a, b)")
    assert OpType.VALIDATION in [stage.type for stage in plan.stages]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("drop index t_pkey", "2BP01"),
        ("drop index k", "2BP01"),
        ("drop index k cascade", "2BP01"),
        ("drop index i, i", None),
        ("drop index nosuch", "42704"),
        ("drop index if exists nosuch, nosuch.i", None),
        ("drop index t", "42809"),
        ("create index i on t (b)", "42P07"),
        ("create index on v (a)", "42809"),
        ("create index on t (nosuch)", "42703"),
        ("create index on t (a) where nosuch > 0", "42703"),
    ],
)
def test_index_statement_with_a_wrong_name_has_the_code_of_postgresql(statement, code):
    world = World(T, "create index i on t (a)", "alter table t add constraint k unique (b)")
    world.run("create view v as select a from t")
    assert world.code(statement) == code
