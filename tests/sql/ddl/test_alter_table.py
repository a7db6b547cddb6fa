"""ALTER TABLE: every action, alone and together."""

import pytest

from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.constraint import Action
from seachange.model.statements.object_statements import ChangeOwner, MoveObject, SequenceOptions
from seachange.model.statements.table_statements import (
    AddColumn,
    AddConstraint,
    AddIdentity,
    AlterColumnType,
    AlterPrimaryKey,
    AlterTable,
    CheckDefinition,
    ColumnDefinition,
    ConstantDefault,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    DropNotNull,
    ExpressionDefinition,
    ForeignKeyDefinition,
    IdentityDefinition,
    KeepAsItIs,
    KeyDefinition,
    RenameColumn,
    RenameConstraint,
    RenameTable,
    SetColumnSetting,
    SetDefault,
    SetExpression,
    SetIdentity,
    SetNotNull,
    SetParameters,
    UserType,
    ValidateConstraint,
)
from tests.sql.ddl.parsing import INTEGER, NOW, ST, TEXT, T, U, altered, code, name, parse

POSITIVE = CheckDefinition(("(", " > 0)"), ("a",))


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("add a int", AddColumn(ColumnDefinition("a", INTEGER))),
        ("add column if not exists a serial", AddColumn(ColumnDefinition("a", INTEGER, False, serial=True), True)),
        ("add a int check (a > 0) references u on delete set default",
         AddColumn(ColumnDefinition("a", INTEGER), False,
                   (POSITIVE, ForeignKeyDefinition(("a",), U, on_delete=Action.SET_DEFAULT)))),
        ("add a int constraint k unique",
         AddColumn(ColumnDefinition("a", INTEGER), keys=(KeyDefinition(("a",), "k"),))),
        ("add a int default 1 primary key",
         AddColumn(ColumnDefinition("a", INTEGER, False, ConstantDefault("1")),
                   keys=(KeyDefinition(("a",), primary=True),))),
        ("drop a", DropColumn("a")),
        ("drop column if exists a cascade", DropColumn("a", True, True)),
        ("drop a down using (b + 1)", DropColumn("a", down=ExpressionDefinition(("(", " + 1)"), ("b",)))),
        ("add a int not null up using (b + 1) check (a > 0)",
         AddColumn(ColumnDefinition("a", INTEGER, False, up=ExpressionDefinition(("(", " + 1)"), ("b",))),
                   rules=(POSITIVE,))),
        ("alter a type int using (b + 1) down using (a + 2)",
         AlterColumnType("a", INTEGER, ExpressionDefinition(("(", " + 1)"), ("b",)),
                         ExpressionDefinition(("(", " + 2)"), ("a",)))),
        ("alter a type int using (down) + 1",
         AlterColumnType("a", INTEGER, ExpressionDefinition(("((", ") + 1)"), ("down",)))),
        ("rename a to b", RenameColumn("a", "b")),
        ('rename column "A" to to', RenameColumn("A", "to")),
        ("rename to u", RenameTable("u")),
        ("rename constraint a to b", RenameConstraint("a", "b")),
        ("alter a type text", AlterColumnType("a", TEXT)),
        ("alter column a set data type mood using a::text",
         AlterColumnType("a", UserType(name("mood")), ExpressionDefinition(("(SEACHANGE_TEXT(", "))"), ("a",)))),
        ("alter a type mood using (lower(a)::mood)::mood",
         AlterColumnType("a", UserType(name("mood")), ExpressionDefinition(("(LOWER(", "))"), ("a",)))),
        ('alter a type s."M" using cast(a as s."M")',
         AlterColumnType("a", UserType(RelationName("s", "M")), ExpressionDefinition(("(", ")"), ("a",)))),
        ("alter a set default now()", SetDefault("a", NOW)),
        ("alter a set default 'x' || 'y'", SetDefault("a", ExpressionDefinition(("('x' || 'y')",)))),
        ("alter a drop default", SetDefault("a", None)),
        ("alter a set not null", SetNotNull("a")),
        ("alter a drop not null", DropNotNull("a")),
        ("alter a set expression as (b + c)",
         SetExpression("a", ExpressionDefinition(("(", " + ", ")"), ("b", "c")))),
        ("alter a drop expression if exists", DropExpression("a", True)),
        ("alter a set compression lz4", SetColumnSetting("a", "compression", "lz4")),
        ("alter a set compression default", SetColumnSetting("a", "compression", None)),
        ("alter a set compression pglz", SetColumnSetting("a", "compression", None)),
        ("add a int compression zstd", AddColumn(ColumnDefinition("a", INTEGER, settings=(("compression", "zstd"),)))),
        ("alter a set statistics 100", SetColumnSetting("a", "statistics_target", 100)),
        ("alter a set statistics 0", SetColumnSetting("a", "statistics_target", 0)),
        ("alter a set statistics 20000", SetColumnSetting("a", "statistics_target", 10000)),
        ("alter a set statistics -1", SetColumnSetting("a", "statistics_target", None)),
        ("alter a set storage external", KeepAsItIs("a")),
        ("alter a set (n_distinct = -0.5)", KeepAsItIs("a")),
        ("alter a reset (n_distinct)", KeepAsItIs("a")),
        ("set (autovacuum_enabled = false, fillfactor = 70)", KeepAsItIs()),
        ("reset (fillfactor)", KeepAsItIs()),
        ("set (seachange.iceberg = true)", SetParameters((("seachange.iceberg", "on"),))),
        ("set (fillfactor = 70, seachange.iceberg_format = '2')", SetParameters((("seachange.iceberg_format", "2"),))),
        ("reset (seachange.iceberg)", SetParameters((("seachange.iceberg", None),))),
        ("cluster on i", KeepAsItIs()),
        ("set unlogged", KeepAsItIs()),
        ("replica identity full", KeepAsItIs()),
        ("alter a add generated by default as identity (start 5)",
         AddIdentity("a", IdentityDefinition(False, SequenceOptions(start=5)))),
        ("alter a set generated always", SetIdentity("a", True)),
        ("alter a set generated by default set increment by -5 set no cycle restart",
         SetIdentity("a", False, SequenceOptions(increment=-5, cycle=False, restart_at_start=True))),
        ("alter a restart with 7", SetIdentity("a", None, SequenceOptions(restart=7))),
        ("alter a drop identity", DropIdentity("a")),
        ("add check (a > 0) not valid", AddConstraint(CheckDefinition(("(", " > 0)"), ("a",), None, True))),
        ("add constraint k unique (a, b)", AddConstraint(KeyDefinition(("a", "b"), "k"))),
        ("add primary key (a)", AddConstraint(KeyDefinition(("a",), primary=True))),
        ("add unique using index i", AddConstraint(KeyDefinition((), using_index="i"))),
        ("add constraint k primary key using index i",
         AddConstraint(KeyDefinition((), "k", primary=True, using_index="i"))),
        ("add constraint f foreign key (a) references s.t (b) on update restrict not valid",
         AddConstraint(ForeignKeyDefinition(("a",), ST, ("b",), "f", on_update=Action.RESTRICT, not_valid=True))),
        ("drop constraint if exists c cascade", DropConstraint("c", True, True)),
        ("validate constraint c", ValidateConstraint("c")),
        ("alter primary key using columns (a, b)", AlterPrimaryKey(("a", "b"))),
    ],
)  # fmt: skip
def test_alter_table_action_is_read(text, action):
    assert parse(f"alter table t {text}") == altered(action)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("alter table concurrently t drop a", altered(DropColumn("a"), concurrently=True)),
        ("alter table if exists only s.t drop a", AlterTable(ST, (DropColumn("a"),), True)),
        ("alter table t alter a set default 1, drop b, add check (a > 0)",
         altered(SetDefault("a", ConstantDefault("1")), DropColumn("b"), AddConstraint(POSITIVE))),
        ("alter table if exists t set schema s", MoveObject(ObjectKind.TABLE, T, "s", True)),
        ("alter table t owner to r", ChangeOwner(ObjectKind.TABLE, T, "r")),
    ],
)  # fmt: skip
def test_alter_table_statement_is_read(text, statement):
    assert parse(text) == statement


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add", "42601"),
        ("drop", "42601"),
        ("add a", "42601"),
        ("rename a", "42601"),
        ("rename a to b, drop c", "42601"),
        ("alter a", "42601"),
        ("alter a set default", "42601"),
        ("alter a type int using", "42601"),
        ("alter a set generated sometimes", "42601"),
        ("alter a set generated always set generated always", "42601"),
        ("alter a set expression as b + 1", "42601"),
        ("alter primary key using (a)", "42601"),
        ("oops", "42601"),
        ("drop a; drop b", "42601"),
        ("add unique (a) not valid", "0A000"),
        ("alter constraint c deferrable", "0A000"),
        ("enable row level security", "0A000"),
        ("owner to r, drop a", "0A000"),
        ("attach partition p for values in (1)", "0A000"),
        ("alter a set default b", "0A000"),
        ("alter a set expression as (now())", "42P17"),
        ("alter a type mood using a::other", "0A000"),
    ],
)
def test_invalid_action_is_rejected_with_its_code(text, expected):
    assert code(f"alter table t {text}") == expected


def test_what_takes_no_time_is_not_concurrent():
    assert code("alter table concurrently t set schema s") == "0A000"
