"""ALTER COLUMN TYPE."""

import pytest

from seachange.model.change.elements import ForeignKeyElement, PrimaryIndex, UniqueIndex
from seachange.model.change.ops import OpType, Validate
from tests.planner.builders.world import World, changes

T = "create table t (id int primary key, a int unique, b text)"


def test_widening_touches_the_type_only():
    plan = World(T).run("alter table t alter column id type bigint, alter column a type bigint")
    assert changes(plan) == {"-ColumnType", "+ColumnType"}


def test_a_conversion_rebuilds_what_holds_the_values():
    world = World(T, "alter table t add check (a > 0)")
    plan = world.run("alter table t alter column a type smallint")
    assert {"+ConvertedColumn", "+PrimaryIndex", "+UniqueIndex", "+CheckConstraint", "-Column"} <= changes(plan)
    table = world.find("t")
    assert [c.name for c in table.visible_columns] == ["id", "a", "b"]
    assert table.secondary[0].key == (table.column_by_name["a"].id,) == table.checks[0].columns


@pytest.mark.parametrize("using", ["", " using id::text", " using cast(id as text)", " using id"])
def test_a_primary_key_whose_values_stay_distinct(using: str):
    """Nothing has to be proven: neither two keys become one, nor has one no value."""
    world = World(T, "create index i on t (b)")
    before = world.find("t")
    plan = world.run("alter table t alter column id type text" + using)
    assert not any(stage.type is OpType.VALIDATION for stage in plan.stages)
    table = world.find("t")
    assert table.primary.key == (table.column_by_name["id"].id,) != before.primary.key
    assert table.column_by_name["id"].type.kind == "text"
    assert not table.column_by_name["id"].nullable
    assert not {index.id for index in before.indexes} & {index.id for index in table.indexes}


@pytest.mark.parametrize("type_", ["smallint", "varchar(3)", "text using id % 10", "bigint using id + 1"])
def test_a_primary_key_of_which_two_values_may_become_one(type_: str):
    """They are shown to be distinct before rows are known by them."""
    world = World(T)
    plan = world.run(f"alter table t alter column id type {type_}")
    assert [stage.type for stage in plan.stages if stage.type is not OpType.MUTATION][:3] == [
        OpType.BACKFILL,
        OpType.VALIDATION,
        OpType.BACKFILL,
    ]
    assert [index.name for index in world.find("t").indexes] == ["t_pkey", "t_a_key"]


def test_one_proof_for_a_key_of_several_converted_columns():
    plan = World("create table t (a int, b int, primary key (a, b))").run(
        "alter table t alter a type text using a + 1, alter b type text using b + 1"
    )
    proofs = [t.element for t in plan.graph.targets if isinstance(t.element, UniqueIndex)]
    (primary,) = [t.element for t in plan.graph.targets if isinstance(t.element, PrimaryIndex) and t.adds]
    assert [proof.key for proof in proofs] == [primary.key]
    assert primary.proof_id == proofs[0].index_id


def test_a_part_of_the_key_that_is_unique_shows_that_the_whole_is():
    plan = World("create table t (a int, b int unique, primary key (a, b))").run(
        "alter table t alter a type text using a + 1"
    )
    assert not any(stage.type is OpType.VALIDATION for stage in plan.stages)


def test_a_primary_key_that_is_computed_again_because_of_another_column():
    world = World("create table t (a int, g int generated always as (a + 1) stored primary key)")
    assert world.code("alter table t alter a type bigint using a * 2") == "0A000"


@pytest.mark.parametrize("created", [True, False])
def test_the_primary_key_of_a_table_without_rows(created):
    statement = "alter table t alter column id type text using id::text || 'x'"
    world = World(f"{T}; create index i on t (b); {statement}") if created else World(T, "create index i on t (b)")
    if not created:
        world.empty = True
        world.run("comment on table t is 'empty'")
        before = world.find("t")
        plan = world.run(statement)
        assert plan.change.empty == {before.id}
        assert not {index.id for index in before.indexes} & {index.id for index in world.find("t").indexes}
    table = world.find("t")
    assert table.primary.key == (table.column_by_name["id"].id,)
    assert table.column_by_name["id"].type.kind == "text"
    assert not table.column_by_name["id"].nullable
    assert [index.name for index in table.indexes] == ["t_pkey", "t_a_key", "i"]
    assert table.primary.constraint


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("alter table t alter column b type int", "42804"),
        ("alter table t alter column b type int using length(b)", None),
        ("alter table t alter column a type smallint", None),
        ("alter table t alter column a type bigint", None),
        ("alter table t alter column a type bigint using a + 1", None),
        ("alter table t alter column a type text", "42804"),
        ("alter table c alter column a type smallint", None),
        ("alter table c alter column a type text", "42804"),
        ("alter table c alter column g type bigint", None),
        ("alter table c alter column n type bigint", None),
        ("alter table c alter column n type jsonb using to_json(n)", "0A000"),
        ("alter table c alter column d drop default, alter column d type json using to_json(d)", "0A000"),
        ("alter table c alter column i type text", "22023"),
        ("alter table c alter column d type int using 1", "42804"),
        ("alter table c alter column d drop default, alter column d type int using 1", None),
    ],
)
def test_what_depends_on_the_column(statement, code):
    world = World(T)
    world.run(
        "create table c (a int references t (a), n int, g int generated always as (n) stored, d text default 'x', "
        "i int generated always as identity); create index on c (d)"
    )
    assert world.code(statement) == code


def test_what_is_generated_from_a_column_follows_it():
    world = World(
        "create table c (n int, m int, g int generated always as (n + m) stored, check (g > 0))",
        "create index i on c (g)",
    )
    world.run("alter table c alter n type bigint, alter m type bigint")
    table = world.find("c")
    n, m, g = (table.column_by_name[name] for name in ("n", "m", "g"))
    assert g.generated is not None
    assert set(g.generated.columns) == {n.id, m.id}
    assert [c.name for c in table.visible_columns] == ["n", "m", "g"]
    assert table.secondary[0].key == (g.id,)
    assert table.checks[0].columns == (g.id,)


ENDS = "create table e (id int primary key, boss int references e, code text unique, alias text references e (code))"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("alter table e alter id type text, alter boss type text", None),
        ("alter table e alter boss type text, alter id type text", None),
        ("alter table e alter id type text, alter boss type text using boss || 'x'", None),
        ("alter table e alter id type text", "42804"),
        ("alter table e alter boss type text", "42804"),
        ("alter table e alter code type int using code::int, alter alias type int using alias::int", None),
        ("alter table e alter code type int using code::int, alter alias type text using upper(alias)", "42804"),
    ],
)
def test_both_ends_of_a_foreign_key(statement, code):
    """They are compared when the statement is done."""
    assert World(ENDS).code(statement) == code


@pytest.mark.parametrize(
    ("statement", "validated"),
    [
        ("alter table e alter code type int using code::int, alter alias type int using alias::int", False),
        ("alter table e alter code type int using code::int, alter alias type int using alias::int + 1", True),
        ("alter table e alter alias type int using code::int, alter code type int using code::int", True),
        ("alter table e alter code type int using code::int, alter alias type bigint using alias::int", True),
        ("alter table e alter code type varchar(9), alter alias type varchar(9)", False),
        ("alter table e alter code type varchar(9)", True),
    ],
)
def test_a_foreign_key_is_validated_again_unless_its_ends_are_converted_alike(statement, validated):
    world = World(ENDS)
    plan = world.run(statement)
    done = [op.element for stage in plan.stages for op in plan.ops(stage) if isinstance(op, Validate)]
    assert any(isinstance(element, ForeignKeyElement) for element in done) is validated
    table = world.find("e")
    key = next(key for key in table.foreign_keys if key.name == "e_alias_fkey")
    assert key.columns == (table.column_by_name["alias"].id,)
    assert table.index_by_id[key.parent_index].key == (table.column_by_name["code"].id,)
