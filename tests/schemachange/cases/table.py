"""What is done to a table as a whole."""

from tests.schemachange.case import TRY_AGAIN, Case

_GONE = """- table t
           - column id integer not null
           - column a integer not null
           - column b text
           - column c integer
           - column n integer
           - column p integer
           - primary t_pkey (id)
           - check t_c_check: (c < 1000)
           - foreign key t_p_fkey (p) on delete cascade on update cascade"""

CASES = (
    Case(
        "rename table",
        "alter table t rename to t2",
        """- table t
           + table t2""",
        at_once=True,
    ),
    Case("set schema", "alter table t set schema s", "", setup=("create schema s",), at_once=True),
    Case(
        "rename swap of two tables",
        "begin; alter table t rename to x; alter table o rename to t; alter table x rename to o; commit",
        """- table t
           + table o""",
        setup=("create table o (id int primary key, a int, b text, c int, n int)", "insert into o values (1)"),
        at_once=True,
        none=("select id from t where id <> 1",),
    ),
    Case("truncate", "truncate t", "", at_once=True, refuses=TRY_AGAIN, waits=True, twin="delete from w"),
    Case(
        "truncate with indexes",
        "truncate t",
        "",
        setup=("create unique index i on t (a)", "create index j on t (b) where c > 1"),
        at_once=True,
        refuses=TRY_AGAIN,
        waits=True,
        twin="delete from w",
    ),
    Case(
        "truncate with a table that refers to it",
        "truncate t cascade",
        "",
        setup=(
            "create table k (id int primary key, t int references t, up int references k)",
            "insert into t (id, a, b, c, n) values (90005, 50050, 'x', 1, 90005)",
            "insert into k values (1, 90005, null), (2, null, 1)",
        ),
        at_once=True,
        refuses=TRY_AGAIN,
        waits=True,
        twin="delete from w",
        none=("select id from k",),
    ),
    Case(
        "undrop table",
        "drop table if exists t; undrop table t",
        """- foreign key t_p_fkey (p) on delete cascade on update cascade
           + foreign key t_p_fkey (p) on delete cascade on update cascade ENFORCED""",
        setup=("create unique index i on t (a)", "create index j on t (b) where c > 1"),
        at_once=True,
        repeats=True,
        refuses=TRY_AGAIN,
        waits=True,
    ),
    Case(
        "drop table",
        "drop table t",
        _GONE,
        at_once=True,
        refuses=TRY_AGAIN,
        waits=True,
    ),
    Case(
        "drop table that others refer to",
        "drop table t cascade",
        _GONE,
        setup=("create table k (id int primary key, t int references t)", "create view v as select a from t"),
        at_once=True,
        refuses=TRY_AGAIN,
        waits=True,
    ),
    Case(
        "drop schema with the table",
        "drop schema s cascade",
        _GONE,
        setup=(
            "create schema s",
            "alter table t set schema s",
            "set search_path = public, s",
            "create table s.k (id int primary key, t int references s.t)",
            "create view v as select a from s.t",
            "create sequence s.z",
            "create type s.mood as enum ('ok')",
            "create table m (id int primary key, mood s.mood default 'ok')",
            "insert into m values (1)",
        ),
        at_once=True,
        refuses=TRY_AGAIN,
        waits=True,
        none=(
            "select oid from pg_namespace where nspname = 's'",
            "select oid from pg_class where relname in ('k', 'v')",
        ),
    ),
)
