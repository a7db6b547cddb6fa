"""The database that the catalogue of DDL is about: tables with rows, and all that its statements change."""

SETUP = (
    "create type mood as enum ('sad', 'ok', 'happy')",
    "create sequence counter",
    "create schema archive",
    "create table parent (id int primary key, code text unique)",
    """create table t (
        id int primary key, a int not null, b text, c int check (c < 1000), d text default 'x', e int not null,
        parent_id int references parent (id), state mood)""",
    "create table child (id int primary key, t_id int references t (id), seen timestamptz)",
    "create table bag (x int, y text)",
    "create table total (id int primary key, net int, gross int generated always as (net * 2) stored)",
    "create table label (id int primary key, name text unique, alias text references label (name))",
    "create table archive.old (id int primary key, t_id int references t (id))",
    "create index t_c on t (c)",
    "create unique index t_e on t (e)",
    "create unique index bag_x on bag (x)",
    "create view shown as select id, a from t",
    "alter table t add constraint late check (c > -1) not valid",
    "alter table t add constraint known check (b is not null)",
)

# How many rows each table has where they are only planned with.
ROWS_PLANNED = 1_000_000

FILL = (
    "insert into parent select i, 'code ' || i from generate_series(1, 80) g (i)",
    """insert into t select i, i * 10, 'b' || i, i % 7, 'x', i, i % 5 + 1, 'ok' from generate_series(1, 60) g (i)""",
    "insert into child select i, i, now() from generate_series(1, 60) g (i)",
    "insert into bag select i, i::text from generate_series(1, 60) g (i)",
    "insert into total (id, net) select i, i from generate_series(1, 60) g (i)",
    "insert into label select i, 'name ' || i, 'name ' || i from generate_series(1, 60) g (i)",
    "insert into archive.old select i, i from generate_series(1, 60) g (i)",
)
TABLES = ("parent", "t", "child", "bag", "total", "label", "old")
