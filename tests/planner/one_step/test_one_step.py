"""DDL in one step: descriptors before and after."""

import pytest

from seachange.errors import Error
from seachange.model.ids import ColumnId, IndexId
from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Index
from seachange.model.statements.table_statements import (
    AddColumn,
    AlterColumnType,
    AlterTable,
    ColumnDefinition,
    ConstantDefault,
    CreateIndex,
    DdlStatement,
    DropColumn,
    DropIndex,
    DropNotNull,
    DropTable,
    KeyDefinition,
    RenameColumn,
    RenameTable,
    SetDefault,
    SetNotNull,
)
from seachange.planner.names import NAME_BYTES_MAX, choose_name
from seachange.values.types import BIGINT, TEXT, Kind, SqlType
from tests.planner.one_step.schema import INTEGER, NAME, Schema, create, schema_with_table


def test_create_table():
    table = schema_with_table().table
    assert (table.id, table.version, table.schema, table.next_column_id) == (1, 1, "public", 4)
    assert table.primary == Index(IndexId(2), "t_pkey", (ColumnId(1),), unique=True, constraint=True)
    assert table.secondary == (Index(IndexId(3), "t_a_key", (ColumnId(2),), unique=True, constraint=True),)
    assert [c.name for c in table.visible_columns] == ["id", "a", "b"]
    assert table.layout.columns == ((1, BIGINT), (2, INTEGER), (3, TEXT))


def test_a_table_without_a_key_has_a_hidden_one():
    schema = Schema()
    schema.run(create(ColumnDefinition("rowid", TEXT)))
    table = schema.table
    assert [c.name for c in table.visible_columns] == ["rowid"]
    hidden = table.columns[-1]
    assert (hidden.hidden, hidden.nullable, hidden.type) == (True, False, BIGINT)
    assert hidden.name != "rowid"
    assert table.primary.key == (hidden.id,)


def test_names_that_are_taken_get_a_number():
    schema = Schema()
    unique = (KeyDefinition(("a",)), KeyDefinition(("a",)))
    schema.run(create(ColumnDefinition("a", TEXT), unique=unique))
    assert [i.name for i in schema.table.secondary] == ["t_a_key", "t_a_key1"]


def test_long_names_are_cut():
    name = choose_name("t" * 60, ["c" * 60], "key", ())
    assert len(name.encode()) <= NAME_BYTES_MAX
    assert name.endswith("_key")


def test_a_default_is_kept_as_text():
    schema = Schema()
    schema.run(create(ColumnDefinition("a", SqlType(Kind.NUMERIC, 6, 2), default=ConstantDefault("1.005"))))
    assert schema.table.columns[0].default == "'1.01'::numeric(6,2)"


def test_add_column_freezes_its_default():
    schema = schema_with_table()
    schema.alter(AddColumn(ColumnDefinition("c", INTEGER, False, ConstantDefault("5"))))
    column = schema.table.columns[-1]
    assert (column.id, column.frozen, column.default) == (4, "5", "'5'::integer")
    assert [layout.id for layout in schema.table.layouts] == [1, 2]
    schema.alter(SetDefault("c", ConstantDefault("6")))
    assert (schema.table.columns[-1].frozen, schema.table.columns[-1].default) == ("5", "'6'::integer")


def test_a_column_that_comes_back_is_another():
    schema = schema_with_table()
    schema.alter(DropColumn("b"), AddColumn(ColumnDefinition("b", TEXT)))
    assert schema.table.column_by_name["b"].id == 4
    assert schema.table.version == 2
    assert len(schema.table.layouts) == 2


def test_renames_keep_ids_and_layouts():
    schema = schema_with_table()
    before = schema.table
    schema.alter(RenameColumn("b", "c"))
    assert schema.table.column_by_name["c"].id == 3
    assert schema.table.layouts == before.layouts
    schema.alter(RenameTable("u"))
    assert list(schema.tables) == [("public", "u")]
    assert schema.tables["public", "u"].id == before.id


def test_widening_needs_no_empty_table():
    schema = schema_with_table()
    plan = schema.alter(AlterColumnType("a", BIGINT))
    assert plan.relies_on == ()
    assert schema.table.column_by_name["a"].id == 2
    assert len(schema.table.layouts) == 2


def test_another_type_is_another_column_of_an_empty_table():
    schema = schema_with_table()
    plan = schema.alter(AlterColumnType("b", INTEGER))
    assert [r.refusal.sqlstate for r in plan.relies_on] == ["0A000"]
    assert schema.table.column_by_name["b"].id == 4


def test_what_relies_on_an_empty_table():
    schema = schema_with_table()
    required = ColumnDefinition("c", INTEGER, nullable=False)
    cases: list[tuple[DdlStatement, str]] = [
        (AlterTable(NAME, (AddColumn(required),)), "23502"),
        (AlterTable(NAME, (SetNotNull("b"),)), "0A000"),
        (CreateIndex(NAME, ("b",)), "0A000"),
        (DropIndex((RelationName(None, "t_a_key"),)), "0A000"),
    ]
    for statement, code in cases:
        plan = schema.run(statement)
        assert [(r.index_id, r.refusal.sqlstate) for r in plan.relies_on] == [(2, code)]
    assert [i.name for i in schema.table.secondary] == ["t_b_idx"]


def test_no_change_gives_no_version():
    schema = schema_with_table()
    nothing: list[DdlStatement] = [
        AlterTable(NAME, (DropNotNull("b"), SetDefault("b", None), AlterColumnType("b", TEXT))),
        AlterTable(NAME, (AddColumn(ColumnDefinition("a", TEXT), if_not_exists=True),)),
        AlterTable(NAME, (DropColumn("nope", if_exists=True),)),
        AlterTable(RelationName(None, "nope"), (DropColumn("a"),), if_exists=True),
        DropTable((RelationName(None, "nope"),), if_exists=True),
        DropIndex((RelationName(None, "nope"),), if_exists=True),
        CreateIndex(NAME, ("b",), "t_a_key", if_not_exists=True),
        create(ColumnDefinition("x", TEXT), if_not_exists=True),
    ]
    for statement in nothing:
        assert schema.run(statement).changes == ()


REFUSALS = [
    (create(ColumnDefinition("x", TEXT)), "42P07"),
    (DropTable((RelationName(None, "nope"),)), "42P01"),
    (DropTable((RelationName("other", "t"),)), "3F000"),
    (DropIndex((RelationName(None, "nope"),)), "42704"),
    (DropIndex((RelationName(None, "t_pkey"),)), "2BP01"),
    (CreateIndex(NAME, ("nope",)), "42703"),
    (CreateIndex(NAME, ("a",), "t_pkey"), "42P07"),
    (CreateIndex(RelationName(None, "nope"), ("a",)), "42P01"),
    (AlterTable(NAME, (DropColumn("a"),)), "2BP01"),
    (AlterTable(NAME, (DropColumn("nope"),)), "42703"),
    (AlterTable(NAME, (AddColumn(ColumnDefinition("a", TEXT)),)), "42701"),
    (AlterTable(NAME, (AddColumn(ColumnDefinition("A", TEXT)),)), "0A000"),
    (AlterTable(NAME, (AddColumn(ColumnDefinition("c", INTEGER, default=ConstantDefault("x"))),)), "22P02"),
    (AlterTable(NAME, (RenameColumn("a", "b"),)), "42701"),
    (AlterTable(NAME, (RenameTable("t_pkey"),)), "42P07"),
    (AlterTable(NAME, (AlterColumnType("a", TEXT),)), "0A000"),
    (AlterTable(NAME, (SetDefault("a", ConstantDefault("x")),)), "22P02"),
    (AlterTable(NAME, (DropNotNull("id"),)), "42P16"),
    (AlterTable(RelationName(None, "nope"), (DropColumn("a"),)), "42P01"),
]


@pytest.mark.parametrize(("statement", "code"), REFUSALS)
def test_invalid_statement_is_rejected_with_its_code(statement, code):
    with pytest.raises(Error) as caught:
        schema_with_table().run(statement)
    assert caught.value.sqlstate == code


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        (create(), "0A000"),
        (create(ColumnDefinition("a", TEXT), ColumnDefinition("a", TEXT)), "42701"),
        (create(ColumnDefinition("a", TEXT), primary_key=KeyDefinition(("b",))), "42703"),
        (create(ColumnDefinition("a", TEXT), primary_key=KeyDefinition(("a", "a"))), "42701"),
        (create(ColumnDefinition("a", INTEGER, default=ConstantDefault("x", True))), "22P02"),
    ],
)
def test_tables_that_cannot_be(statement, code):
    with pytest.raises(Error) as caught:
        Schema().run(statement)
    assert caught.value.sqlstate == code
