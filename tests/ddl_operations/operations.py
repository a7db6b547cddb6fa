"""Every DDL operation, in the forms that people write.

docs/ddl.md is generated from this list, each statement is run over rows, and tests/schemachange has a case for each
operation.
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
        "Nothing is moved if all rows get the same value: existing rows read as the value frozen when the column "
        "was added. Rows of transactions in flight read correctly, because their layout records which columns "
        "they lack.",
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
            "alter table t add column n text not null up using (b || c)",
        ),
        ("add column", "add generated", "add identity", "add serial", "add unique generated"),
    ),
    Operation(
        "DROP COLUMN",
        "Readers skip the column from one version on. No reader ever sees an invented value, and old values never"
        " reappear, not even under a new column of the same name. CASCADE also drops dependent views and foreign "
        "keys of other tables.",
        (
            "alter table t drop column d",
            "alter table t drop column c",
            "alter table t drop column e",
            "alter table t drop column parent_id",
            "alter table t drop column a cascade",
            "alter table total drop column net cascade",
            "alter table t drop column d, add column d int default 1",
            "alter table t drop column if exists zz",
            "alter table t drop column d down using (null)",
        ),
        ("drop column", "drop and add column"),
    ),
    Operation(
        "RENAME and SET SCHEMA",
        "Objects are identified by ids. A transaction in flight keeps using the old name until its end.",
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
        "Widening is a cast at every read. Otherwise writers also compute the new value, from the first version "
        "on; a row that cannot be converted is not rejected but fails the change, with the row. A primary key "
        "converted by an expression is first proven unique by a temporary index.",
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
        "A default applies to future rows. SET NOT NULL: writers check first, then existing rows are validated; a"
        " valid CHECK that implies it makes that unnecessary.",
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
        "New writes are checked first, then existing rows; a failure names rows and leaves nothing behind.",
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
        "Entries are built as of the point from which every writer maintains them. Several indexes of one "
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
        "A new primary index is built next to the old one and swapped in by the publication; ALTER PRIMARY KEY "
        "keeps the old key as a unique constraint, which foreign keys then reference. When a table loses its key,"
        " its rows are first given hidden numbers, which then identify them.",
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
        "DROP removes a table at one commit, TRUNCATE replaces the indexes with empty ones; both first wait for open "
        "transactions that have written to the table. Files are deleted "
        "when no snapshot can read them, and UNDROP restores a table until then.",
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
        "Rows store a text that never changes, so adding and renaming labels touches no row.",
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
        "A view keeps its columns whatever is renamed or added in its tables; a change that would break it is "
        "rejected, with its name.",
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
        "One commit covers everything in the schema.",
        ("create schema more", "alter schema archive rename to past", "drop schema archive cascade"),
        ("drop schema",),
    ),
    Operation(
        "Several at once",
        "One plan, all or nothing: waits and scans are shared, and everything becomes visible at once.",
        (
            "alter table t add column n int default 5, drop column d, alter c set not null",
            "alter table t alter e type text, add unique (a), add column n int references parent",
            "create index on t (a); create index on t (b)",
        ),
        ("convert and index", "add unique constraints and a check in one scan", "several"),
    ),
)
