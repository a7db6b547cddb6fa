"""The schema changes, and the statements for each system that speaks SQL, as data; standard library only.

A change that a system lacks is a sentence instead of statements. `{t}` is the table: the large one, or the one with a
row that violates every constraint, which shows whether existing rows are checked.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    name: str
    title: str
    is_constraint: bool = False


CHANGES = (
    Change("add_column", "add a column with a default"),
    Change("type", "change a type with an expression"),
    Change("index", "create an index on a text column"),
    Change("check", "add a CHECK", is_constraint=True),
    Change("not_null", "set NOT NULL", is_constraint=True),
    Change("foreign_key", "add a foreign key", is_constraint=True),
    Change("drop_column", "drop a column"),
)

# Statements, each in a transaction of its own; or why there are none.
Way = tuple[str, ...] | str

PARENT_ROWS = 10_000
BATCH_ROWS = 10_000
PROBE = "probe"
# Against every constraint: no parent has that number.
PROBE_VALUES = "(1, -1, 0, null, null)"

PLAIN: dict[str, Way] = {
    "add_column": ("alter table {t} add column c integer not null default 7",),
    "type": ("alter table {t} alter column b type numeric(14,3) using b::numeric(14,3)",),
    "index": ("create index t_k on {t} (k)",),
    "check": ("alter table {t} add constraint a_natural check (a >= 0)",),
    "not_null": ("alter table {t} alter column k set not null",),
    "foreign_key": ("alter table {t} add constraint a_parent foreign key (a) references p (id)",),
    "drop_column": ("alter table {t} drop column t",),
}

# What handbooks tell to do on a PostgreSQL that is in use.
CAREFUL: dict[str, Way] = PLAIN | {
    "type": "has no form that does not lock the table: see the batched update",
    "index": ("create index concurrently t_k on {t} (k)",),
    "check": (
        "alter table {t} add constraint a_natural check (a >= 0) not valid",
        "alter table {t} validate constraint a_natural",
    ),
    "not_null": (
        "alter table {t} add constraint k_there check (k is not null) not valid",
        "alter table {t} validate constraint k_there",
        "alter table {t} alter column k set not null",
        "alter table {t} drop constraint k_there",
    ),
    "foreign_key": (
        "alter table {t} add constraint a_parent foreign key (a) references p (id) not valid",
        "alter table {t} validate constraint a_parent",
    ),
}

# As pgroll does it: a second column, kept up to date by a trigger, is filled in batches and takes the place of the
# first. `{first}` and `{last}` are the ids of a batch.
BATCHED_BEFORE = (
    "alter table {t} add column b_new numeric(14,3)",
    "create function fill_b_new() returns trigger language plpgsql as"
    " 'begin new.b_new := new.b::numeric(14,3); return new; end'",
    "create trigger fill_b_new before insert or update of b on {t} for each row execute function fill_b_new()",
)
BATCH = "update {t} set b_new = b::numeric(14,3) where id >= {first} and id < {last}"
BATCHED_AFTER = (
    "begin; drop trigger fill_b_new on {t}; alter table {t} drop column b;"
    " alter table {t} rename column b_new to b; commit; drop function fill_b_new",
)
AS_CAREFUL = "as in the careful way"

# Where a system has no such change, what its users do instead is not measured as if it were one, save where it is the
# one way there is: a new column is filled by UPDATE, and takes the place of the old one, in one transaction.
DUCKLAKE: dict[str, Way] = {
    "add_column": ("alter table {t} add column c integer default 7",),
    "type": (
        "begin; alter table {t} add column b_new decimal(14,3); update {t} set b_new = b::decimal(14,3);"
        " alter table {t} drop column b; alter table {t} rename column b_new to b; commit",
    ),
    "index": "has no indexes",
    "check": "has no CHECK",
    "not_null": ("alter table {t} alter column k set not null",),
    "foreign_key": "has no foreign keys",
    "drop_column": ("alter table {t} drop column t",),
}

DELTALAKE: dict[str, str] = {
    "add_column": "",
    "type": "",
    "index": "has no indexes",
    "check": "",
    "not_null": "cannot forbid NULL in a column that is there",
    "foreign_key": "has no foreign keys",
    "drop_column": "cannot drop a column without rewriting the table",
}

# What a reader of the figures should know of a way.
REMARKS = {
    ("postgresql_batched", "type"): f"a second column, a trigger, an UPDATE for every {BATCH_ROWS:,} rows",
    ("ducklake", "add_column"): "may be NULL",
    ("ducklake", "type"): "has none: a second column, filled by one UPDATE",
    ("deltalake", "add_column"): "has no defaults: old rows have NULL",
    ("deltalake", "type"): "has none: the table is read and rewritten",
}


def batches(rows: int) -> list[tuple[int, int]]:
    return [(first, min(first + BATCH_ROWS, rows)) for first in range(0, rows, BATCH_ROWS)]
