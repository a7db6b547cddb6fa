"""Columns that come, go, and are called or filled otherwise."""

from tests.schemachange.case import ALL, TRY_AGAIN, Case

_NULL = ("insert into {t} (id, a, b, c) values (90001, 50010, 'x', 1)", "23502")
_REMOVE = ("delete from t where id = 90001", "delete from w where id = 90001")

CASES = (
    Case("add column", "alter table t add column d int", "+ column d integer", at_once=True),
    Case(
        "add column with default",
        "alter table t add column d text default 'x'",
        "+ column d text default 'x'::text reads as x",
        at_once=True,
        none=("select id from t where d is distinct from 'x'",),
    ),
    Case(
        "add column not null with default",
        "alter table t add column d int not null default 7",
        "+ column d integer not null default '7'::integer reads as 7",
        at_once=True,
        none=("select id from t where d is distinct from 7",),
    ),
    Case(
        "add column with check",
        "alter table t add column d int default 7 check (d > c)",
        """+ column d integer default '7'::integer reads as 7
           + check t_check: (d > c)""",
        none=("select id from t where d is distinct from 7",),
    ),
    Case(
        "add column with check that fails",
        "alter table t add column d int default 3 check (d > c)",
        """+ column d integer default '3'::integer reads as 3
           + check t_check: (d > c)""",
        fails="23514",
        refuses=frozenset({"23514"}),
        repair=("delete from t where c > 2", "delete from w where c > 2"),
    ),
    Case(
        "add column unique",
        "alter table t add column d int unique",
        """+ column d integer
           + unique index t_d_key (d) constraint""",
        none=("select id from t where d is not null",),
    ),
    Case(
        "add column unique with default",
        "alter table t add column d int default 7 unique",
        """+ column d integer default '7'::integer reads as 7
           + unique index t_d_key (d) constraint""",
        fails="23505",
        # All written rows have the same value, so two transactions that delete one conflict.
        refuses=TRY_AGAIN,
        without=frozenset(kind for kind in ALL if not kind.startswith("delete")),
        repair=("delete from t where id <> 50000", "delete from w where id <> 50000"),
    ),
    Case(
        "add column that refers",
        "alter table t add column d int default 1 references q (id)",
        """+ column d integer default '1'::integer reads as 1
           + foreign key t_d_fkey (d)""",
        setup=("create table q (id int primary key)", "insert into q values (1)"),
        none=("select id from t where d is distinct from 1",),
    ),
    Case("drop column", "alter table t drop column n", "- column n integer", at_once=True),
    Case(
        "drop column with index and check",
        "alter table t drop column c",
        """- column c integer
           - index i (b, c)
           - check t_c_check: (c < 1000)""",
        setup=("create index i on t (b, c)",),
        at_once=True,
    ),
    Case(
        "drop column that a view reads",
        "alter table t drop column n cascade",
        "- column n integer",
        setup=("create view v as select id, n from t", "create view u as select n from v"),
        at_once=True,
    ),
    Case(
        "drop column with its sequence",
        "alter table t drop column s",
        "- column s integer not null default nextval",
        setup=("alter table t add column s serial",),
        at_once=True,
    ),
    Case(
        "drop column that refers",
        "alter table t drop column p",
        """- column p integer
           - foreign key t_p_fkey (p) on delete cascade on update cascade""",
        at_once=True,
        without=frozenset({"cascade", "cascade key"}),
    ),
    Case(
        "drop and add column of the same name",
        "alter table t drop column b, add column b int default 3",
        """- column b text
           + column b integer default '3'::integer reads as 3""",
        at_once=True,
        without=frozenset(ALL) - {"delete", "delete many", "cascade", "cascade key"},
        converts={"b": "3"},
        none=("select id from t where b is distinct from 3",),
    ),
    Case(
        "rename column",
        "alter table t rename column b to e",
        """- column b text
           + column e text""",
        renames={"b": "e"},
        at_once=True,
    ),
    Case(
        "rename the key column",
        "alter table t rename column id to key",
        """- column id integer not null
           - primary t_pkey (id)
           + column key integer not null
           + primary t_pkey (key)""",
        renames={"id": "key"},
        at_once=True,
    ),
    Case(
        "set default",
        "alter table t alter n set default 5",
        """- column n integer
           + column n integer default '5'::integer""",
        at_once=True,
    ),
    Case(
        "drop default",
        "alter table t alter n drop default",
        """- column n integer default '5'::integer
           + column n integer""",
        setup=("alter table t alter n set default 5",),
        at_once=True,
    ),
    Case(
        "set not null",
        "alter table t alter n set not null",
        """- column n integer
           + column n integer not null""",
        spoil=_NULL,
        repair=_REMOVE,
    ),
    Case(
        "set not null over a null",
        "alter table t alter n set not null",
        """- column n integer
           + column n integer not null""",
        setup=("insert into t (id, a, b, c) values (90001, 50010, 'x', 1)",),
        fails="23502",
        repair=_REMOVE,
    ),
    Case(
        "drop not null",
        "alter table t alter a drop not null",
        """- column a integer not null
           + column a integer""",
        at_once=True,
    ),
    Case(
        "widen a column",
        "alter table t alter c type bigint",
        """- column c integer
           + column c bigint""",
        at_once=True,
    ),
    Case(
        "widen a column that others refer to",
        "alter table t alter a type bigint",
        """- column a integer not null
           + column a bigint not null""",
        setup=(
            "alter table t add constraint u unique (a)",
            "insert into t (id, a, b, c, n) values (90005, 50050, 'x', 1, 90005)",
            "create table k (id int primary key, a int references t (a))",
            "insert into k values (1, 50050)",
        ),
        at_once=True,
    ),
    Case(
        "several at once",
        "alter table t add column d int not null default 7, drop column n, add constraint u unique (a)",
        """- column n integer
           + column d integer not null default '7'::integer reads as 7
           + unique index u (a) constraint""",
        spoil=("insert into {t} (id, a, b, c) values (90001, 10, 'x', 1)", "23505"),
        repair=_REMOVE,
        none=("select id from t where d is distinct from 7",),
    ),
    Case(
        "several of which one fails",
        "alter table t add column d int not null default 7, drop column n, add constraint k check (b <> 'bad')",
        """- column n integer
           + column d integer not null default '7'::integer reads as 7
           + check k: (b <> 'bad')""",
        setup=("insert into t (id, a, b, c) values (90001, 50010, 'bad', 1)",),
        fails="23514",
        repair=_REMOVE,
    ),
)
