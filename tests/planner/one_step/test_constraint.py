"""Constraints in plans: names, keys that are referred to, and what depends on what."""

import pytest

from seachange import errors
from seachange.model.relation import RelationName
from seachange.model.schema.constraint import Action
from seachange.model.statements.table_statements import (
    AddColumn,
    AddConstraint,
    AlterColumnType,
    AlterTable,
    CheckDefinition,
    ColumnDefinition,
    CreateTable,
    DropColumn,
    DropConstraint,
    DropIndex,
    DropTable,
    ForeignKeyDefinition,
    KeyDefinition,
    RenameColumn,
)
from seachange.values.types import BIGINT, TEXT
from tests.planner.one_step.schema import INTEGER, NAME, Schema, schema_with_table

CHILD = RelationName(None, "child")
POSITIVE = CheckDefinition(("", " > 0"), ("a",))


def to_parent(*columns: str, **fields) -> ForeignKeyDefinition:
    return ForeignKeyDefinition(("p",), NAME, columns, **fields)


def with_child(*rules) -> Schema:
    """child (id bigint primary key, p bigint, q text) besides t (id bigint primary key, a integer unique, b text)"""
    schema = schema_with_table()
    columns = (
        ColumnDefinition("id", BIGINT, nullable=False),
        ColumnDefinition("p", BIGINT),
        ColumnDefinition("q", TEXT),
    )
    schema.run(CreateTable(CHILD, columns, KeyDefinition(("id",)), rules=rules))
    return schema


def child_of(schema: Schema):
    return schema.tables["public", "child"]


@pytest.mark.parametrize(
    ("pieces", "columns", "name", "expression"),
    [
        (("", " > 0"), ("a",), "t_a_check", '"c2" > 0'),
        (("", " > ", ""), ("a", "id"), "t_check", '"c2" > "c1"'),
        (("", " + ", " > 1"), ("a", "a"), "t_a_check", '"c2" + "c2" > 1'),
        (("1 > 0",), (), "t_check", "1 > 0"),
    ],
)
def test_a_check_is_named_and_bound_to_columns(pieces, columns, name, expression):
    schema = schema_with_table()
    plan = schema.alter(AddConstraint(CheckDefinition(pieces, columns)))
    (check,) = schema.table.checks
    assert (check.name, check.expression) == (name, expression)
    assert [reliance.index_id for reliance in plan.relies_on] == [schema.table.primary.id]


def test_a_rename_does_not_touch_a_check():
    schema = schema_with_table()
    schema.alter(AddConstraint(POSITIVE))
    before = schema.table.checks
    schema.alter(RenameColumn("a", "z"))
    assert schema.table.checks == before


def test_names_are_numbered_and_clashes_refused():
    schema = schema_with_table()
    schema.alter(AddConstraint(POSITIVE), AddConstraint(POSITIVE))
    assert [check.name for check in schema.table.checks] == ["t_a_check", "t_a_check1"]
    for taken in ("t_a_check", "t_pkey"):
        with pytest.raises(errors.DuplicateObject):
            schema.alter(AddConstraint(CheckDefinition(("true",), (), taken)))


def test_constraint_ids_are_not_reused():
    schema = schema_with_table()
    schema.alter(AddConstraint(POSITIVE))
    schema.alter(DropConstraint("t_a_check"))
    schema.alter(AddConstraint(POSITIVE))
    assert [check.id for check in schema.table.checks] == [2]


@pytest.mark.parametrize(("columns", "index"), [((), "t_pkey"), (("id",), "t_pkey"), (("a",), "t_a_key")])
def test_a_foreign_key_refers_to_a_unique_key(columns, index):
    schema = with_child(to_parent(*columns, on_delete=Action.CASCADE))
    (key,) = child_of(schema).foreign_keys
    assert (key.name, key.parent, key.on_delete) == ("child_p_fkey", schema.table.id, Action.CASCADE)
    assert schema.table.index_by_id[key.parent_index].name == index


def test_columns_are_kept_in_the_order_of_the_index():
    schema = Schema()
    columns = (ColumnDefinition("x", BIGINT, nullable=False), ColumnDefinition("y", TEXT, nullable=False))
    schema.run(CreateTable(NAME, columns, KeyDefinition(("x", "y"))))
    child = (ColumnDefinition("m", TEXT), ColumnDefinition("n", BIGINT))
    key = ForeignKeyDefinition(("m", "n"), NAME, ("y", "x"))
    schema.run(CreateTable(CHILD, child, rules=(key,)))
    found = child_of(schema)
    assert [found.column_by_id[c].name for c in found.foreign_keys[0].columns] == ["n", "m"]


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (to_parent("b"), errors.InvalidForeignKey),
        (to_parent("id", "a"), errors.InvalidForeignKey),
        (to_parent("nope"), errors.UndefinedColumn),
        (ForeignKeyDefinition(("q",), NAME), errors.DatatypeMismatch),
        (ForeignKeyDefinition(("nope",), NAME), errors.UndefinedColumn),
        (ForeignKeyDefinition(("p", "q"), NAME), errors.InvalidForeignKey),
        (ForeignKeyDefinition(("p",), RelationName(None, "nope")), errors.UndefinedTable),
        (CheckDefinition(("",), ("nope",)), errors.UndefinedColumn),
    ],
)
def test_wrong_constraints(rule, error):
    with pytest.raises(error):
        with_child(rule)


def test_a_table_without_a_primary_key_cannot_be_referred_to_without_columns():
    schema = Schema()
    schema.run(CreateTable(NAME, (ColumnDefinition("a", BIGINT),)))
    with pytest.raises(errors.UndefinedObject):
        schema.run(CreateTable(CHILD, (ColumnDefinition("p", BIGINT),), rules=(to_parent(),)))


def test_the_parent_gets_a_version_of_its_own():
    schema = schema_with_table()
    version = schema.table.version
    schema.run(CreateTable(CHILD, (ColumnDefinition("p", BIGINT),), rules=(to_parent(),)))
    assert schema.table.version == version + 1


def test_a_table_may_refer_to_itself():
    schema = schema_with_table()
    plan = schema.alter(AddConstraint(ForeignKeyDefinition(("a",), NAME)))
    assert schema.table.foreign_keys[0].parent == schema.table.id
    assert len(plan.changes) == 1


def test_a_table_that_is_referred_to_goes_only_with_cascade():
    schema = with_child(to_parent(), to_parent("a"))
    with pytest.raises(errors.DependentObjectsExist):
        schema.run(DropTable((NAME,)))
    schema.run(DropTable((NAME,), cascade=True))
    assert child_of(schema).foreign_keys == ()


def test_both_tables_go_together():
    schema = with_child(to_parent())
    schema.run(DropTable((NAME, CHILD)))
    assert schema.tables == {}


def test_a_unique_key_that_is_referred_to_stays():
    schema = with_child(to_parent("a"))
    with pytest.raises(errors.DependentObjectsExist):
        schema.alter(DropConstraint("t_a_key"))
    with pytest.raises(errors.DependentObjectsExist):
        schema.run(DropIndex((RelationName(None, "t_a_key"),)))
    with pytest.raises(errors.DependentObjectsExist):
        schema.alter(DropColumn("a"))
    schema.alter(DropConstraint("t_a_key", cascade=True))
    assert child_of(schema).foreign_keys == ()
    assert schema.table.secondary == ()


def test_constraints_go_with_their_columns():
    schema = with_child(to_parent(), CheckDefinition(("", " < ", ""), ("p", "id")))
    schema.run(AlterTable(CHILD, (DropColumn("p"),)))
    assert (child_of(schema).foreign_keys, child_of(schema).checks) == ((), ())


def test_the_type_of_a_constrained_column_can_only_be_widened():
    schema = schema_with_table()
    schema.alter(AddConstraint(CheckDefinition(("", " <> ''"), ("b",))))
    with pytest.raises(errors.FeatureNotSupported):
        schema.alter(AlterColumnType("b", INTEGER))


@pytest.mark.parametrize(
    ("rule", "relies"),
    [
        (ForeignKeyDefinition(("n",), NAME), False),
        (CheckDefinition(("", " > 0"), ("n",)), True),
    ],
)
def test_a_new_column_without_a_value_refers_to_nothing(rule, relies):
    schema = schema_with_table()
    plan = schema.alter(AddColumn(ColumnDefinition("n", BIGINT), rules=(rule,)))
    assert bool(plan.relies_on) is relies


def test_dropping_a_constraint_that_is_not_there():
    schema = schema_with_table()
    with pytest.raises(errors.UndefinedObject):
        schema.alter(DropConstraint("nope"))
    assert schema.alter(DropConstraint("nope", if_exists=True)).notices
    with pytest.raises(errors.FeatureNotSupported):
        schema.alter(DropConstraint("t_pkey"))


def test_a_unique_constraint_is_an_index():
    schema = schema_with_table()
    plan = schema.alter(AddConstraint(KeyDefinition(("b",))))
    assert [(i.name, i.unique) for i in schema.table.secondary] == [("t_a_key", True), ("t_b_key", True)]
    assert plan.relies_on
