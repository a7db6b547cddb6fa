"""Columns whose values are computed from others, and so are written with every row."""

from tests.schemachange.case import COLUMNS, KEYLESS, TRY_AGAIN, Case

# The numbers in b, after its first letter.
_NUMBERS = "alter table t alter b type int using substr(b, 2)::int"
_BECOMES = """- column b text
              + column b integer"""
_WORD = "insert into {t} (id, a, b, c, n) values (90001, 50010, 'word', 1, 90001)"
_REMOVE = ("delete from t where id = 90001", "delete from w where id = 90001")

CASES = (
    Case(
        "convert a column", _NUMBERS, _BECOMES, converts={"b": "substr(b, 2)"}, spoil=(_WORD, "22P02"), repair=_REMOVE
    ),
    Case(
        "convert a column with indexes",
        "alter table t alter n type text",
        """- column n integer
           + column n text""",
        setup=("create unique index i on t (n)", "create index j on t (b) include (n)"),
    ),
    Case(
        "convert a column that another is generated from",
        _NUMBERS,
        _BECOMES,
        columns=f"{COLUMNS}, g text generated always as (b || '.' || n) stored",
        setup=("create unique index i on t (g)", "create index j on t (c) include (g)"),
        converts={"b": "substr(b, 2)"},
        none=("select id from t where g is distinct from b || '.' || n",),
        spoil=(_WORD, "22P02"),
        repair=_REMOVE,
    ),
    Case(
        "convert a column over a value that cannot be",
        _NUMBERS,
        _BECOMES,
        setup=(_WORD.format(t="t"),),
        converts={"b": "substr(b, 2)"},
        fails="22P02",
        repair=_REMOVE,
    ),
    Case(
        "add column computed from others",
        "alter table t add column g int not null up using (substr(b, 2)::int), drop column b down using ('b' || g)",
        """- column b text
           + column g integer not null""",
        none=("select id from t where g is null",),
        spoil=(_WORD, "22P02"),
        repair=_REMOVE,
    ),
    Case(
        "add generated column",
        "alter table t add column g int generated always as (a + 1) stored",
        "+ column g integer generated",
        none=("select id from t where g is distinct from a + 1",),
    ),
    Case(
        "add column with volatile default",
        "alter table t add column r double precision default random()",
        "+ column r double precision default (RANDOM())",
        none=("select id from t where r is null",),
    ),
    Case(
        "add column with stable default",
        "alter table t add column s timestamptz not null default now()",
        "+ column s timestamp with time zone not null default (NOW()) reads as one moment",
        at_once=True,
        none=("select id from t where s is null",),
    ),
    Case(
        "add identity column",
        "alter table t add column s int generated always as identity",
        "+ column s integer not null",
        none=("select s from t group by s having count(*) > 1 or s is null",),
    ),
    Case(
        "add serial column",
        "alter table t add column s serial",
        "+ column s integer not null default nextval",
        none=("select s from t group by s having count(*) > 1 or s is null",),
    ),
    Case(
        "add unique generated column",
        "alter table t add column g text generated always as (b || '!') stored unique",
        """+ column g text generated
           + unique index t_g_key (g) constraint""",
        none=("select id from t where g is distinct from b || '!'",),
        spoil=("insert into {t} (id, a, b, c, n) values (90001, 50010, 'b1', 0, 90001)", "23505"),
        repair=_REMOVE,
    ),
    Case(
        "add serial column as primary key",
        "alter table t add column s serial primary key",
        """- column rowid bigint not null hidden
           - primary t_pkey (rowid)
           + column s integer not null default nextval
           + primary t_pkey (s)""",
        columns=KEYLESS,
        refuses=TRY_AGAIN,
        none=("select s from t group by s having count(*) > 1 or s is null",),
        in_two=True,
    ),
    Case(
        "add unique column with volatile default",
        "alter table t add column u uuid not null default gen_random_uuid() unique",
        """+ column u uuid not null default (UUID())
           + unique index t_u_key (u) constraint""",
        none=("select u from t group by u having count(*) > 1 or u is null",),
        in_two=True,
    ),
    Case(
        "add unique column with volatile default whose values agree",
        "alter table t add column u bigint default (nextval('z') % 100) unique, add check (c < 1000)",
        """+ column u bigint default nextval
           + unique index t_u_key (u) constraint
           + check t_c_check1: (c < 1000)""",
        setup=("create sequence z",),
        fails="23505",
        # Rows that have nothing else in common meet in their keys.
        refuses=frozenset({*TRY_AGAIN, "23505", "55P03"}),
        repair=("delete from t", "delete from w"),
        in_two=True,
    ),
    Case(
        "convert the primary key",
        "alter table t alter id type text",
        """- column id integer not null
           + column id text not null""",
        setup=("create unique index i on t (a)", "create index j on t (b) include (id)"),
    ),
    Case(
        "convert a column that others refer to",
        "alter table t alter n type bigint using n + 0",
        """- column n integer
           + column n bigint""",
        setup=(
            "alter table t add constraint k unique (n)",
            "create table r (n int references t (n) on delete cascade on update cascade)",
            "insert into r select n from t",
        ),
        none=("select n from r where n not in (select n from t)",),
    ),
    Case(
        "convert the primary key that others refer to",
        "alter table t alter id type bigint using id + 0",
        """- column id integer not null
           + column id bigint not null""",
        setup=(
            "create table r (n int references t (id) on delete cascade on update cascade)",
            "insert into r select id from t",
        ),
        none=("select n from r where n not in (select id from t)",),
    ),
    Case(
        "convert both ends of a foreign key",
        "alter table t alter n type text, alter m type text",
        """- column n integer
           - column m integer
           + column n text
           + column m text""",
        columns=f"{COLUMNS}, m int",
        setup=(
            "alter table t add constraint k unique (n)",
            "update t set m = n",
            "alter table t add constraint f foreign key (m) references t (n) on delete set null on update cascade",
        ),
        none=("select id from t where m <> n",),
    ),
    Case(
        "convert the primary key by an expression",
        "alter table t alter id type text using nullif(lower(id::text), '90001')",
        """- column id integer not null
           + column id text not null""",
        setup=("create unique index i on t (a)", "create index j on t (b) include (id)"),
        spoil=(_WORD, "23502"),
        repair=_REMOVE,
    ),
    Case(
        "convert the primary key so that two become one",
        "alter table t alter id type text using (id / 2)::text",
        """- column id integer not null
           + column id text not null""",
        fails="23505",
        # Rows that have nothing else in common meet in their keys.
        refuses=frozenset({*TRY_AGAIN, "23505"}),
        repair=("delete from t", "delete from w"),
    ),
    Case(
        "widen the primary key that a column is generated from",
        "alter table t alter id type bigint",
        """- column id integer not null
           + column id bigint not null""",
        columns=f"{COLUMNS}, g bigint generated always as (id + 1) stored",
        setup=("create index j on t (g)",),
        none=("select id from t where g is distinct from id + 1",),
    ),
    Case(
        "convert and index at once",
        "alter table t alter b type int using substr(b, 2)::int, add constraint u unique (b)",
        _BECOMES + "\n+ unique index u (b) constraint",
        converts={"b": "substr(b, 2)"},
        refuses=TRY_AGAIN,
    ),
    Case(
        "convert a column beside a constraint of a new one",
        "alter table t alter n type text, add column k int default 3, add constraint h check (k > c - 1000)",
        """- column n integer
           + column n text
           + column k integer default '3'::integer reads as 3
           + check h: (k > c - 1000)""",
        none=("select id from t where k is distinct from 3",),
    ),
)
