"""Transaction blocks that mix schema changes, rows and privileges, over the same two tables; tests run two or three of
them at once.

The statements mean the same on PostgreSQL, which is the model: those that commit must leave what they leave one after
the other.
"""

from __future__ import annotations

SETUP = (
    "create table parent (id int primary key, name text)",
    "create table child (id int primary key, parent_id int, n int)",
    "insert into parent values (1, 'a'), (2, 'b'), (3, 'c')",
    "insert into child values (1, 1, 10), (2, 2, 20), (3, 3, 30)",
)

SHAPES = {
    "index": ("create index child_by_n on child (n)", "insert into child values (10, 1, 100)"),
    "check": ("alter table child add constraint positive check (n > 0)", "update child set n = n + 1 where id = 1"),
    "fix_and_check": (
        "update child set n = 24 where n > 24",
        "alter table child add constraint small check (n < 25)",
    ),
    "not_null": ("alter table child alter column n set not null", "insert into child values (12, 1, 120)"),
    "fix_and_not_null": ("update child set n = 0 where n is null", "alter table child alter column n set not null"),
    "add_column": (
        "alter table child add column x int not null default 7",
        "update child set x = 8 where id = 2",
    ),
    "drop_column": ("alter table child drop column n", "insert into child values (15, 1)"),
    "rename_column": (
        "alter table child rename column n to m",
        "insert into child (id, parent_id, m) values (16, 1, 160)",
    ),
    "rename_table": ("alter table child rename to kid", "insert into kid values (17, 1, 170)"),
    "drop_table": ("drop table child",),
    "truncate": ("truncate child", "create unique index child_n on child (n)", "insert into child values (1, 1, 18)"),
    "savepoint": (
        "savepoint s",
        "create index child_by_n on child (n)",
        "rollback to s",
        "insert into child values (20, 1, 10)",
    ),
    "unique": ("create unique index child_n on child (n)", "insert into child values (21, 1, 210)"),
    "fix_and_unique": ("delete from child where id = 3", "create unique index child_n on child (n)"),
    "foreign_key": (
        "alter table child add constraint child_parent foreign key (parent_id) references parent on delete cascade",
        "insert into child (id, parent_id, n) values (23, 3, 230)",
    ),
    "parent_and_key": (
        "insert into parent values (9, 'own')",
        "alter table child add foreign key (parent_id) references parent",
    ),
    # Of the parent, others know nothing; a row of theirs may refer to one that the block brings.
    "new_parent": (
        "create table fresh (id int primary key)",
        "insert into fresh values (1), (2), (3), (9)",
        "alter table child add constraint child_fresh foreign key (parent_id) references fresh",
        "delete from fresh where id = 9",
        "insert into fresh values (9)",
    ),
    "emptied_parent": (
        "truncate parent",
        "insert into parent values (1, 'x'), (2, 'y'), (3, 'z')",
        "alter table child add constraint child_emptied foreign key (parent_id) references parent",
    ),
    "retype": (
        "alter table child alter column parent_id type text using parent_id::text",
        "insert into child values (22, '1', 220)",
    ),
    # After a query: above READ COMMITTED the rows of the snapshot are seen in the new shape.
    "read_and_retype": (
        "select id, n from child",
        "alter table child alter column n type text using n::text",
        "update child set n = n || '!' where id = 2",
        "select id, n from child",
    ),
    "read_and_compute": (
        "select count(*) from child",
        "update child set n = n + 1 where id = 1",
        "alter table child add column twice int generated always as (n * 2) stored",
        "select id, twice from child",
    ),
    "read_and_key": (
        "select count(*) from child",
        "alter table child drop constraint child_pkey, add primary key (n)",
        "update child set parent_id = 1 where id = 2",
    ),
    "grant_and_index": ("grant select on child to reader", "create index child_by_n on child (n)"),
    "copy": (
        "create table copy as select id, n from child",
        "create unique index copy_n on copy (n)",
        "alter table copy alter column n set not null",
    ),
}

ROWS = {
    "insert_duplicate": ("insert into child values (30, 1, 10)", "insert into child values (31, 1, 20)"),
    "insert_orphan": ("insert into child values (32, 9, -5)", "update child set n = 33 where id = 3"),
    "insert_null": ("insert into child (id) values (34)",),
    "swap_keys": ("update child set n = 20 where id = 1", "update child set n = 10 where id = 2"),
    "delete_parent": ("delete from parent where id = 3",),
    "delete_and_insert": ("delete from child where id = 1", "insert into child (id, parent_id, n) values (1, 1, 10)"),
    "grant": ("grant select on child to reader", "insert into child (id, parent_id, n) values (35, 1, 350)"),
    "revoke": ("revoke all on parent from reader", "comment on table child is 'seen'"),
}
READS = {
    "read": ("select count(*) from child", "select id from child", "insert into parent values (9, 'read')"),
}
BLOCKS = SHAPES | ROWS | READS
PAIRS = [(a, b) for a in SHAPES for b in BLOCKS if b not in SHAPES or a <= b]
# Three sessions: two that want the same table and one whose rows or privileges meet what they do.
TRIPLES = [
    ("index", "check", "insert_orphan"),
    ("index", "drop_column", "grant"),
    ("index", "savepoint", "insert_duplicate"),
    ("index", "rename_column", "swap_keys"),
    ("index", "truncate", "delete_and_insert"),
    ("index", "rename_table", "read"),
    ("check", "fix_and_check", "grant"),
    ("check", "not_null", "insert_null"),
    ("check", "drop_column", "insert_orphan"),
    ("check", "add_column", "revoke"),
    ("fix_and_check", "not_null", "swap_keys"),
    ("fix_and_not_null", "rename_column", "insert_null"),
    ("not_null", "truncate", "insert_null"),
    ("not_null", "drop_table", "grant"),
    ("add_column", "drop_column", "grant"),
    ("add_column", "savepoint", "copy"),
    ("copy", "truncate", "swap_keys"),
    ("copy", "rename_column", "grant"),
    ("savepoint", "drop_column", "insert_duplicate"),
    ("rename_table", "not_null", "revoke"),
    ("read_and_retype", "index", "insert_orphan"),
    ("read_and_compute", "add_column", "swap_keys"),
    ("read_and_key", "read_and_retype", "delete_and_insert"),
]
