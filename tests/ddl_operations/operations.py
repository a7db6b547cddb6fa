"""Every operation of the catalogue of DDL, in the forms that people write.

docs/ddl.md is made of this, each statement is carried out over rows, and the bench has a case for each operation.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """`online` says what it means that others go on meanwhile; `bench` are words that begin the names of the cases on
    the bench that are about it, empty where no table is changed."""

    name: str
    online: str
    statements: tuple[str, ...]
    bench: tuple[str, ...] = ()


OPERATIONS = (
    Operation(
        "ADD COLUMN",
        "Nothing is moved where all rows get the same value: they read as what was frozen when the column was added. "
        "Rows of transactions in flight read back right, because their layout says what they lack.",
        (
            "alter table t add column n int",
            "alter table t add column n int default 7",
            "alter table t add column n int not null default 7",
            "alter table t add column n timestamptz not null default now()",
            "alter table t add column n uuid default gen_random_uuid()",
            "alter table t add column n uuid not null default gen_random_uuid()",
            "alter table t add column n int unique",
            "alter table t add column n int default 7 check (n > 0)",
            "alter table t add column n int references parent",
            "alter table t add column n int not null default 3 references parent",
            "alter table t add column n int generated always as (a + 1) stored",
            "alter table t add column n int generated always as (a + 1) stored unique",
            "alter table t add column n uuid unique default gen_random_uuid()",
            "alter table bag add column id serial primary key",
            "alter table bag add column id uuid primary key default gen_random_uuid()",
            "alter table t add column n serial",
            "alter table t add column n bigint generated always as identity",
            "alter table t add column n mood default 'ok'",
            "alter table t add column if not exists a int",
        ),
        ("add column", "add generated", "add identity", "add serial", "add unique generated"),
    ),
    Operation(
        "DROP COLUMN",
        "Readers skip the column from one version on; nobody ever sees a made-up value, and old values never come "
        "back, also not under a new column of the same name. With CASCADE, views and foreign keys of others go too.",
        (
            "alter table t drop column d",
            "alter table t drop column c",
            "alter table t drop column e",
            "alter table t drop column parent_id",
            "alter table t drop column a cascade",
            "alter table total drop column net cascade",
            "alter table t drop column d, add column d int default 1",
            "alter table t drop column if exists zz",
        ),
        ("drop column", "drop and add column"),
    ),
    Operation(
        "RENAME and SET SCHEMA",
        "Things are known by ids. A transaction in flight goes on with the old name to its end.",
        (
            "alter table t rename column b to label",
            "alter table t rename to items",
            "alter table t rename constraint t_c_check to small",
            "alter index t_c rename to t_by_c",
            "alter table t set schema archive",
            "alter table t rename to swap; alter table bag rename to t; alter table swap rename to bag",
        ),
        ("rename column", "rename table", "rename constraint", "rename index", "set schema", "rename swap"),
    ),
    Operation(
        "ALTER COLUMN TYPE",
        "Widening is a cast at every read. Else writers compute the new value too, from the first version on; one "
        "whose value has no counterpart is not refused: it fails the change, with the row. A primary key by an "
        "expression is shown to stay one first, by a unique index that is there only for that.",
        (
            "alter table bag alter x type bigint",
            "alter table t alter b type varchar(50)",
            "alter table bag alter y type int using y::int",
            "alter table t alter e type text",
            "alter table t alter parent_id type bigint",
            "alter table parent alter id type bigint",
            "alter table child alter id type text",
            "alter table label alter name type varchar(20)",
            "alter table label alter name type varchar(20), alter alias type varchar(20)",
            "alter table child alter id type bigint using id * 10",
            "alter table t alter state type text",
            "alter table total alter net type bigint",
            "alter table total alter gross set expression as (net * 3)",
            "alter table total alter gross drop expression",
        ),
        (
            "convert",
            "widen",
            "convert a column that another is generated from",
            "widen a column that others refer to",
            "convert a column that others refer to",
            "convert both ends of a foreign key",
        ),
    ),
    Operation(
        "DEFAULT, NOT NULL, IDENTITY",
        "A default is about rows to come. SET NOT NULL: writers check first, then the rows are shown to meet it; a "
        "valid CHECK that says so makes that unnecessary.",
        (
            "alter table t alter d set default 'y'",
            "alter table t alter d drop default",
            "alter table t alter c set not null",
            "alter table t alter b set not null",
            "alter table t alter a drop not null",
            "alter table t alter e add generated by default as identity",
        ),
        ("set default", "drop default", "set not null", "drop not null"),
    ),
    Operation(
        "ADD and DROP CONSTRAINT",
        "New writes are checked first, then the old rows; a failure names rows, and nothing is left behind.",
        (
            "alter table t add check (c >= 0)",
            "alter table t add constraint more check (c >= 0) not valid",
            "alter table t validate constraint late",
            "alter table t add unique (a)",
            "alter table t add constraint u unique using index t_e",
            "alter table t add foreign key (e) references parent",
            "alter table t add constraint f foreign key (e) references parent not valid",
            "alter table t drop constraint t_c_check",
            "alter table t drop constraint t_parent_id_fkey",
            "alter table parent drop constraint parent_code_key",
            "alter table t drop constraint if exists zz",
        ),
        ("add check", "validate", "add unique", "add foreign key", "drop check", "drop unique", "drop foreign key"),
    ),
    Operation(
        "CREATE and DROP INDEX",
        "Entries are built as of the moment from which on every writer maintains them. Several indexes of one "
        "statement or transaction share one scan.",
        (
            "create index on t (a)",
            "create unique index on t (a)",
            "create index on t (b desc nulls last, c) include (e)",
            "create index on t using brin (a)",
            "create index on t (a) where c > 2",
            "create index on t (lower(b))",
            "create unique index on t (b) nulls not distinct",
            "create index concurrently later on t (a)",
            "create index if not exists t_c on t (c)",
            "drop index t_c",
            "drop index concurrently t_c",
            "drop index if exists zz",
        ),
        ("create index", "create unique", "create partial", "drop index", "drop unique index"),
    ),
    Operation(
        "PRIMARY KEY",
        "A new primary index is built beside the old one and swapped in by the publication; ALTER PRIMARY KEY keeps "
        "the old key as a unique constraint, to which foreign keys refer from then on. A table that loses its key has "
        "its rows numbered first, and known by these hidden numbers then.",
        (
            "alter table bag add primary key (x)",
            "alter table bag add constraint bag_key primary key using index bag_x",
            "alter table t alter primary key using columns (e)",
            "alter table t alter primary key using columns (a)",
            "alter table bag alter primary key using columns (x, y)",
            "alter table child drop constraint child_pkey, add primary key (t_id)",
            "alter table child drop column id, add primary key (t_id)",
            "alter table child drop constraint child_pkey",
            "alter table child drop column id",
        ),
        (
            "add primary key",
            "alter primary key",
            "replace primary key",
            "add serial column as primary key",
            "drop primary key",
        ),
    ),
    Operation(
        "Whole tables",
        "DROP ends a table for everybody at one commit, TRUNCATE puts empty indexes in the place of the old ones; "
        "files go when no snapshot can read them, and UNDROP brings a table back until then.",
        (
            "create table made (id int primary key, t_id int references t)",
            "create table if not exists t (id int)",
            "drop table bag",
            "drop table parent cascade",
            "truncate child",
            "truncate t cascade",
        ),
        ("drop table", "truncate", "truncate with a table that refers to it", "undrop table"),
    ),
    Operation(
        "Enum types",
        "Rows hold a text that never changes, so that new and other labels touch no row.",
        (
            "alter type mood add value 'meh' before 'ok'",
            "alter type mood rename value 'ok' to 'fine'",
            "alter type mood drop value 'sad'",
            "drop type mood cascade",
        ),
        ("add enum value", "rename enum value", "drop enum value"),
    ),
    Operation(
        "Sequences and views",
        "A view shows what it was created for, whatever is renamed or added below it; what would make it wrong is "
        "refused with its name.",
        (
            "alter sequence counter increment by 10",
            "drop sequence counter",
            "create view seen as select id, b from t",
            "create or replace view shown as select id, a, b from t",
            "alter view shown rename to listed",
            "drop view shown",
        ),
        ("alter sequence", "drop sequence", "under a view", "replace a view"),
    ),
    Operation(
        "Schemas",
        "One commit over all that is in them.",
        ("create schema more", "alter schema archive rename to past", "drop schema archive cascade"),
        ("drop schema",),
    ),
    Operation(
        "Several at once",
        "One plan, all or nothing: waits and scans are shared, and everything is seen at once.",
        (
            "alter table t add column n int default 5, drop column d, alter c set not null",
            "alter table t alter e type text, add unique (a), add column n int references parent",
            "create index on t (a); create index on t (b)",
        ),
        ("convert and index", "add unique constraints and a check in one scan", "several"),
    ),
)
