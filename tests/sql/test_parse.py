"""Statements as values: what is understood, what is refused, and with which code."""

import pytest

from seachange.errors import Error, SyntaxProblem
from seachange.model.isolation import Isolation
from seachange.model.relation import RelationName
from seachange.model.statements.session_statements import (
    Begin,
    Commit,
    ResetSetting,
    Rollback,
    SetSetting,
    SetTransaction,
    ShowSetting,
)
from seachange.model.statements.table_statements import (
    AddColumn,
    AlterColumnType,
    AlterTable,
    ColumnDefinition,
    ConstantDefault,
    CreateIndex,
    CreateTable,
    DropColumn,
    DropIndex,
    DropNotNull,
    DropTable,
    ExpressionDefinition,
    KeyDefinition,
    RenameColumn,
    RenameTable,
    SetDefault,
    SetNotNull,
)
from seachange.sql.parsing.parse import TreeStatement, parse_script
from seachange.sql.text.tokens import is_complete
from seachange.values.types import BIGINT, TEXT, Kind, SqlType, array_of

INTEGER = SqlType(Kind.INTEGER)
T = RelationName(None, "t")


def alter(*actions):
    return AlterTable(T, actions)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("begin", Begin()),
        ("BEGIN WORK", Begin()),
        ("start transaction read only", Begin(None, True)),
        (
            "begin isolation level repeatable read, read write",
            Begin(Isolation.REPEATABLE_READ, False),
        ),
        ("begin isolation level read uncommitted", Begin(Isolation.READ_COMMITTED)),
        ("commit", Commit()),
        ("end transaction", Commit()),
        ("rollback", Rollback()),
        ("abort work", Rollback()),
        ("set transaction isolation level serializable", SetTransaction(Isolation.SERIALIZABLE)),
        (
            "set session characteristics as transaction isolation level repeatable read",
            SetTransaction(Isolation.REPEATABLE_READ, None, True),
        ),
        ("set seachange.as_of = 5", SetSetting("seachange.as_of", "5")),
        ("set seachange.as_of to ''", SetSetting("seachange.as_of", "")),
        ("set local application_name to 'x'", SetSetting("application_name", "x", True)),
        ("set session application_name = default", SetSetting("application_name", None)),
        ("set default_transaction_isolation = 'repeatable read'",
         SetSetting("default_transaction_isolation", "repeatable read")),
        ("set time zone 'UTC'", SetSetting("timezone", "UTC")),
        ("set names 'utf8'", SetSetting("client_encoding", "utf8")),
        ("set statement_timeout = -1", SetSetting("statement_timeout", "-1")),
        ("show seachange.as_of", ShowSetting("seachange.as_of")),
        ("show transaction isolation level", ShowSetting("transaction_isolation")),
        ("show all", ShowSetting(None)),
        ("reset application_name", ResetSetting("application_name")),
        ("reset all", ResetSetting(None)),
        ("drop table t", DropTable((T,))),
        ("drop table if exists a, s.b cascade",
         DropTable((RelationName(None, "a"), RelationName("s", "b")), True, True)),
        ("create index i on t (a)", CreateIndex(T, ("a",), "i")),
        ("create unique index on only t using btree (a asc, b) include (c)",
         CreateIndex(T, ("a", "b"), None, True, ("c",))),
        ("create index i on t ((a), lower(B) desc) where c > 1",
         CreateIndex(T, ("a", ExpressionDefinition(("(LOWER(", "))"), ("b",))), "i", descending=(1,),
                     where=ExpressionDefinition(("(", " > 1)"), ("c",)))),
        ("create index if not exists i on t (a)", CreateIndex(T, ("a",), "i", if_not_exists=True)),
        ("drop index if exists i, j", DropIndex((RelationName(None, "i"), RelationName(None, "j")), True)),
        ("alter table t add column if not exists a int", alter(AddColumn(ColumnDefinition("a", INTEGER), True))),
        ("alter table t add a int not null default 3",
         alter(AddColumn(ColumnDefinition("a", INTEGER, False, ConstantDefault("3"))))),
        ("alter table t drop column if exists a restrict", alter(DropColumn("a", True))),
        ("alter table t rename a to b", alter(RenameColumn("a", "b"))),
        ("alter table t rename to u", alter(RenameTable("u"))),
        ("alter table t alter a type bigint", alter(AlterColumnType("a", BIGINT))),
        ("alter table t alter column a set data type text", alter(AlterColumnType("a", TEXT))),
        ("alter table t alter a set default 'x', alter a drop default, alter b set not null, alter c drop not null",
         alter(SetDefault("a", ConstantDefault("x", True)), SetDefault("a", None), SetNotNull("b"), DropNotNull("c"))),
        ("alter table if exists only s.t drop a", AlterTable(RelationName("s", "t"), (DropColumn("a"),), True)),
    ],
)  # fmt: skip
def test_statement_is_parsed(text, statement):
    assert parse_script(text) == (statement,)


def test_create_table():
    text = """
        create table if not exists S."T" (
            Id bigint primary key,
            "Name" varchar(10) not null default 'it''s',
            price numeric(10,2) default -1.5 unique,
            note text null default null,
            constraint pair unique (id, "Name")
        )
    """
    assert parse_script(text) == (
        CreateTable(
            RelationName("s", "T"),
            (
                ColumnDefinition("id", BIGINT, nullable=False),
                ColumnDefinition("Name", SqlType(Kind.VARCHAR, length=10), False, ConstantDefault("it's", True)),
                ColumnDefinition("price", SqlType(Kind.NUMERIC, 10, 2), True, ConstantDefault("-1.5")),
                ColumnDefinition("note", TEXT, True, ConstantDefault(None)),
            ),
            KeyDefinition(("id",)),
            (KeyDefinition(("price",)), KeyDefinition(("id", "Name"), "pair")),
            if_not_exists=True,
        ),
    )


def test_key_columns_are_not_null():
    (statement,) = parse_script("create table t (a int, b int, c int, constraint k primary key (b, a))")
    assert isinstance(statement, CreateTable)
    assert statement.primary_key == KeyDefinition(("b", "a"), "k")
    assert [c.nullable for c in statement.columns] == [False, False, True]


@pytest.mark.parametrize(
    ("spelling", "type_"),
    [
        ("bool", SqlType(Kind.BOOLEAN)),
        ("int2", SqlType(Kind.SMALLINT)),
        ("int", INTEGER),
        ("int8", BIGINT),
        ("real", SqlType(Kind.REAL)),
        ("double precision", SqlType(Kind.DOUBLE)),
        ("float8", SqlType(Kind.DOUBLE)),
        ("decimal", SqlType(Kind.NUMERIC)),
        ("int[]", array_of(SqlType(Kind.INTEGER))),
        ("varchar(3)[4]", array_of(SqlType(Kind.VARCHAR, length=3))),
        ("text array", array_of(SqlType(Kind.TEXT))),
        ("char", SqlType(Kind.CHAR, length=1)),
        ("character(7)", SqlType(Kind.CHAR, length=7)),
        ("timestamp(3) with time zone", SqlType(Kind.TIMESTAMPTZ, scale=3)),
        ("time(0)", SqlType(Kind.TIME, scale=6)),
        ("float(24)", SqlType(Kind.REAL)),
        ("float(25)", SqlType(Kind.DOUBLE)),
        ("jsonb", SqlType(Kind.JSONB)),
        ("numeric(5)", SqlType(Kind.NUMERIC, 5, 0)),
        ("text", TEXT),
        ("varchar", SqlType(Kind.VARCHAR)),
        ("character varying(3)", SqlType(Kind.VARCHAR, length=3)),
        ("bytea", SqlType(Kind.BYTEA)),
        ("date", SqlType(Kind.DATE)),
        ("time", SqlType(Kind.TIME)),
        ("time without time zone", SqlType(Kind.TIME)),
        ("timestamp", SqlType(Kind.TIMESTAMP)),
        ("timestamp(6) without time zone", SqlType(Kind.TIMESTAMP, 6)),
        ("timestamp with time zone", SqlType(Kind.TIMESTAMPTZ)),
        ("timestamptz", SqlType(Kind.TIMESTAMPTZ)),
        ("uuid", SqlType(Kind.UUID)),
    ],
)
def test_type_name_is_parsed(spelling, type_):
    (statement,) = parse_script(f"create table t (a {spelling})")
    assert isinstance(statement, CreateTable)
    assert statement.columns[0].type == type_


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("selec 1", "42601"),
        ("select from where", "42601"),
        ("select (", "42601"),
        ("select 'open", "42601"),
        ("create table t (a int,)", "42601"),
        ("create table t (a int null not null)", "42601"),
        ("create table t (a int) b", "42601"),
        ("alter table t rename to u, drop a", "42601"),
        ("begin isolation level chaos", "42601"),
        ("set x", "42601"),
        ("commit now", "42601"),
        ("create table t (a int primary key, b int primary key)", "42P16"),
        ("create table t (a numeric(39))", "0A000"),
        ("create table t (a numeric(0))", "22023"),
        ("create table t (a int[][])", "0A000"),
        ("create table t (a int check (select true))", "0A000"),
        ("create table t (a int check (a > (select 1)))", "0A000"),
        ("create table t (a int check (sum(a) > 1))", "42803"),
        ("create table t (a int check (rank() over () > 1))", "42P20"),
        ("create table t (a int check (a > $1))", "42601"),
        ("create table t (a int check (a > random()))", "0A000"),
        ("create table t (a date check (a > current_date))", "0A000"),
        ("create table t (a date check (a > now()))", "0A000"),
        ("create table t (a int check a > 0)", "42601"),
        ("create table t (a int check (a > 0)", "42601"),
        ("create table t (a text check (a <> read_text('x')))", "42501"),
        ("create table t (a int, b int, foreign key (a, b) references u match partial)", "0A000"),
        ("create table t (a int references u on delete nothing)", "42601"),
        ("create table t (a int, foreign key (a) references u on delete set null (a))", "0A000"),
        ('create index i on t (a collate "de_DE")', "0A000"),
        ("create index i on t (a) with (nonsense = 70)", "42704"),
        ("create index i on t (a) where", "42601"),
        ("create index i on t (lower(a)", "42601"),
        ("alter table t enable trigger all", "0A000"),
        ("copy t to 'file'", "0A000"),
        ("attach 'file.db'", "0A000"),
        ("pragma version", "0A000"),
        ("install httpfs", "0A000"),
        ("load httpfs", "0A000"),
    ],
)
def test_invalid_statement_is_rejected_with_its_code(text, code):
    with pytest.raises(Error) as caught:
        parse_script(text)
    assert caught.value.sqlstate == code


def test_script_is_split_at_semicolons_outside_literals():
    script = "select 'a;b' /* ; */; ; -- ;\n insert into t values ($1,$2);begin;"
    first, second, third = parse_script(script)
    assert isinstance(first, TreeStatement)
    assert first.text == "select 'a;b'"
    assert isinstance(second, TreeStatement)
    assert (second.command, first.command) == ("INSERT", "SELECT")
    assert third == Begin()


def test_text_positions_survive_other_alphabets():
    _, second = parse_script("select 'é€😀'; select 'ß' as x")
    assert isinstance(second, TreeStatement)
    assert second.text == "select 'ß' as x"


@pytest.mark.parametrize(
    ("text", "complete"), [("select 1;", True), ("select 1", False), ("select ';'", False), ("", False)]
)
def test_is_complete(text, complete):
    assert is_complete(text) is complete


@pytest.mark.parametrize(
    "text",
    [
        "select cast(1 as numeric($1, 1))",
        "select cast(1 as numeric(x, 1))",
        "select 'a'::varchar(1.5)",
        "delete from t where a = b::char($1)",
    ],
)
def test_type_modifiers_are_constants(text):
    with pytest.raises(SyntaxProblem):
        parse_script(text)
