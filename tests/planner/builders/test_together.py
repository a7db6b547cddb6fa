"""Statements of one transaction that meet in one object: what the one proves, computes or needs, the other changes."""

import pytest

from seachange.model.change.elements import CheckConstraint, ForeignKeyElement, ViewQuery, element_name
from seachange.model.change.ops import BackfillIndexes, SetState, Validate
from seachange.model.change.targets import Goal
from seachange.model.states import State
from seachange.planner.plan import ChangePlan
from tests.planner.builders.world import World, changes

U = "create table u (id bigint primary key, d int)"
T = "create table t (id bigint primary key, a int, b int not null, c text)"
G = "alter table t add column g int generated always as (a + 1) stored"
MOOD = "create type mood as enum ('sad', 'happy'); alter table t add column m mood"


def validated(plan: ChangePlan) -> list[str]:
    ops = [op for stage in plan.stages for op in plan.ops(stage)]
    return [element_name(type(op.element)) for op in ops if isinstance(op, Validate)]


def backfills(plan: ChangePlan) -> list[BackfillIndexes]:
    return [op for stage in plan.stages for op in plan.ops(stage) if isinstance(op, BackfillIndexes)]


# Keys.


def test_a_key_is_proven_by_another_index_than_the_one_that_gives_way():
    world = World("create table h (a int not null, b int)")
    text = "create unique index i on h (a); alter table h add primary key using index i"
    assert validated(world.run(text)) == ["UniqueIndex"]
    assert [index.name for index in world.find("h").indexes] == ["i"]


@pytest.mark.parametrize(
    "before",
    [
        "alter table t add column e double precision default random()",
        "alter table t alter primary key using columns (b)",
        "alter table t alter column a type smallint",
        "create index on t (a)",
    ],
)
def test_truncate_leaves_no_rows_of_what_is_rebuilt_either(before):
    world = World(T)
    old = world.find("t").primary.id
    plan = world.run(f"{before}; truncate t")
    assert not backfills(plan)
    assert not validated(plan)
    assert old not in [index.id for index in world.find("t").indexes]
    assert world.find("t").id in plan.change.fenced


def test_truncate_needs_no_proof_that_an_enum_value_is_unused():
    world = World(T, MOOD)
    assert not validated(world.run("alter type mood drop value 'happy'; truncate t"))


# Foreign keys.


@pytest.mark.parametrize("text", ["add constraint f foreign key (e) references u", "add unique (a)"])
def test_a_default_that_comes_later_is_looked_up_in_the_parent(text):
    """It is stored in rows that are written while the column is hidden."""
    column = "add column e bigint" + ("" if "foreign" in text else " references u")
    plan = World(U, T).run(f"alter table t {column}, alter column e set default 5, {text}")
    assert "ForeignKey" in validated(plan)


def test_a_default_that_may_be_null_does_not_prove_that_a_column_is_not():
    add = "alter table t add column e int not null default 1, add unique (a)"
    assert "ColumnNotNull" not in validated(World(T).run(f"{add}, alter column e set default 2"))
    assert "ColumnNotNull" in validated(World(T).run(f"{add}, alter column e set default nullif(1, 1)"))


@pytest.mark.parametrize(
    "text",
    [
        "create table v (id int primary key); alter table t add constraint f foreign key (a) references v not valid; "
        "alter table t validate constraint f",
        "create table v (id int primary key); alter table t add column e int references v; "
        "alter table t alter column e set default 5",
        "truncate u; alter table u add unique (d); alter table t add foreign key (a) references u (d)",
    ],
)
def test_rows_cannot_be_checked_against_what_comes_at_the_end(text):
    assert World(U, T).code(text) == "0A000"


@pytest.mark.parametrize("change", ["alter table u alter primary key using columns (d)", "truncate u, t"])
def test_a_foreign_key_that_is_not_valid_stays_so_when_its_key_is_rebuilt(change):
    world = World(
        U, T, "alter table t add constraint f foreign key (id) references u not valid, add check (a > 0) not valid"
    )
    plan = world.run(change)
    (key,) = world.find("t").foreign_keys
    assert key.state is State.ENFORCED
    assert key.parent_index in [index.id for index in world.find("u").indexes]
    moved = [t for t in plan.change.targets if isinstance(t.element, ForeignKeyElement)]
    assert [t.goal for t in moved] == [Goal.ABSENT, Goal.ENFORCED]
    # It is there once in every version.
    for stage in plan.stages:
        states = [
            op.state for op in plan.ops(stage) if isinstance(op, SetState) and isinstance(op.element, ForeignKeyElement)
        ]
        assert states in ([], [State.ABSENT, State.ENFORCED])


# Columns.


def test_constraints_that_are_not_valid_stay_so_when_a_column_is_converted():
    world = World(
        U, T, "alter table t add check (a > 0) not valid, add foreign key (a) references u not valid, add check (a < 9)"
    )
    assert validated(world.run("alter table t alter column a type smallint")) == ["CheckConstraint"]
    assert sorted(check.state for check in world.find("t").checks) == [State.ENFORCED, State.PUBLIC]
    assert [key.state for key in world.find("t").foreign_keys] == [State.ENFORCED]


@pytest.mark.parametrize(
    ("before", "change"),
    [
        ("create view q as select a from t", "alter table t alter column a type int using a * 2"),
        (
            "comment on table t is ''",
            "alter table t alter column a type text using c; alter table t alter column a type int using length(a)",
        ),
        ("comment on table t is ''", "alter table t add column e int default 1, alter column e type text using c"),
        ("comment on table t is ''", "alter table t add column e serial, alter column a type int using e"),
    ],
)
def test_values_that_others_rest_upon_are_not_converted_behind_their_backs(before, change):
    world = World(T)
    for text in before.split("; "):
        world.run(text)
    assert world.code(change) == "0A000"


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (
            f"{G}, add unique (g); create table k (x int references t (g))",
            "alter table t alter column a type int using a * 2",
        ),
        (
            "alter table t add unique (a); create table k (x int references t (a))",
            "alter table t alter column a type int using a * 2",
        ),
        (
            f"{G}, add unique (g); create table k (x int references t (g))",
            "alter table t alter column g set expression as (a * 2)",
        ),
    ],
)
def test_a_foreign_key_follows_the_values_that_it_refers_to(before, change):
    world = World(T)
    for text in before.split("; "):
        world.run(text)
    plan = world.run(change)
    assert "ForeignKey" in validated(plan)
    (key,) = world.find("k").foreign_keys
    assert key.parent_index in {index.id for index in world.find("t").indexes}


@pytest.mark.parametrize(
    ("before", "change"),
    [
        ("create index i on t ((a + 1))", "alter table t alter column a type int using a * 2"),
        ("create index i on t (c) where a > 1", "alter table t alter column a type bigint"),
        (f"{G}; create index i on t ((g + 1), a)", "alter table t alter column g set expression as (a * 2)"),
    ],
)
def test_an_index_that_computes_with_a_column_is_built_again(before, change):
    world = World(T)
    for text in before.split("; "):
        world.run(text)
    old = next(i for i in world.find("t").secondary if i.name == "i")
    world.run(change)
    table = world.find("t")
    new = next(i for i in table.secondary if i.name == "i")
    assert new.id != old.id
    used = {c for k in new.key if (g := table.column_by_id[k].generated) for c in g.columns}
    used |= set(new.where.columns) if new.where is not None else set()
    assert used <= {c.id for c in table.visible_columns}
    # Nothing is left of the expressions of the old one.
    assert {c.id for c in table.virtual_columns} <= {key for index in table.secondary for key in index.key}


def test_a_view_reads_the_column_that_took_the_place_of_the_one_it_read():
    world = World(T, G, "create view q as select g from t")
    plan = world.run("alter table t alter column g set expression as (a * 2)")
    assert "ViewQuery" in {change[1:] for change in changes(plan)}
    (query,) = [t.element for t in plan.change.targets if isinstance(t.element, ViewQuery) and t.adds]
    table = world.find("t")
    assert query.column_uses == ((table.id, table.column_by_name["g"].id),)
    assert world.code("alter table t drop column g") == "2BP01"


@pytest.mark.parametrize("setup", [[], ["create table n (a int, b int, c int)"]])
def test_columns_keep_their_places_where_there_are_no_rows(setup):
    world = World(*setup, "comment on schema public is 'x'", empty=True)
    create = "" if setup else "create table n (a int, b int, c int); "
    twice = (
        "alter table n alter column a type text using 'x'; alter table n alter column a type date using '2020-01-01'"
    )
    world.run(f"{create}{twice}; alter table n add column d int, alter column d type text using 'x', add column e int")
    assert [(c.name, str(c.type)) for c in world.find("n").visible_columns] == [
        ("a", "date"),
        ("b", "integer"),
        ("c", "integer"),
        ("d", "text"),
        ("e", "integer"),
    ]


def test_another_expression_for_a_column_that_is_new():
    world = World(T)
    plan = world.run(f"{G}; alter table t alter column g set expression as (a * 2)")
    assert len(backfills(plan)) == 1
    table = world.find("t")
    assert [c.name for c in table.visible_columns] == ["id", "a", "b", "c", "g"]
    assert table.column_by_name["g"].generated.text == '("c2" * 2)'


# Enum values.


def test_rows_are_searched_for_the_label_that_they_show():
    plan = World(T, MOOD).run("alter type mood rename value 'happy' to 'glad'; alter type mood drop value 'glad'")
    (check,) = [t.element for t in plan.change.targets if isinstance(t.element, CheckConstraint)]
    assert "'happy'" in check.expression


def test_a_value_that_comes_and_goes_is_in_no_row():
    assert not World(T, MOOD).plan("alter type mood add value 'x'; alter type mood drop value 'x'").stages


# Tables without rows.


def test_what_needs_an_empty_table_says_so_when_it_would_have_to_wait():
    world = World(U, T, empty=True)
    assert world.code("alter table t add column e int not null") is None
    sizes = {id_: size for id_, size in world.catalog.sizes.items() if id_ == world.find("t").id}
    world.catalog = type(world.catalog)(world.catalog.descriptors, sizes)
    assert world.code("alter table t add column e int not null; alter table u add unique (d)") == "0A000"


# Sequences and types of hidden columns.


@pytest.mark.parametrize(
    ("before", "change"),
    [
        ("comment on table t is ''", "create schema z; alter table t add column e serial; alter table t set schema z"),
        (
            "comment on table t is ''",
            "create schema z; create type z.mood as enum ('a'); alter table t add column e z.mood, add unique (a)",
        ),
        ("create sequence t_e_seq", "drop sequence t_e_seq; alter table t add column e serial"),
    ],
)
def test_what_a_hidden_column_needs_has_its_name_from_the_beginning(before, change):
    world = World(T, before)
    assert world.code(change) == "0A000"
    for text in change.split("; "):
        world.run(text)
    table = world.find("t", "z" if "set schema" in change else "public")
    assert "e" in table.column_by_name
