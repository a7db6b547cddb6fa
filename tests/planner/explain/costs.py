"""The cost of statements on tables with rows, and the reason for it; generates the table in docs/schema-changes.md."""

from dataclasses import dataclass

from seachange.model.change.ops import BackfillIndexes, Validate
from seachange.planner.strategy import Cost, Strategy, measure_whole
from tests.planner.explain.plans import FOO, world

SETUP = (
    FOO,
    "alter table foo add constraint nn check (c3 is not null)",
    "alter table foo add constraint late check (c2 > 0) not valid",
    "create unique index foo_u on foo (c1)",
    "create table child (id int primary key, f text, g int)",
)


@dataclass(frozen=True, slots=True)
class Case:
    sql: str
    why: str


CASES = (
    Case("create table bar (id int primary key)", "No transaction can have used it before."),
    Case("drop table child", "It disappears at one commit; files are deleted when no snapshot can see them."),
    Case("truncate foo", "Empty indexes replace the old ones, whose files are deleted later."),
    Case("alter table foo rename to bar", "Objects are identified by ids; a name is a label."),
    Case("alter table foo rename column c3 to d", "Likewise."),
    Case("alter table foo add column a int", "Rows in existing files read as NULL, frozen when the column was added."),
    Case("alter table foo add column a int not null default 7", "They read as 7, so there is nothing to validate."),
    Case(
        "alter table foo add column a int unique default 7",
        "The column moves nothing; the index is built and proven like any other. CockroachDB: 12 catalog transactions, "
        "2 backfills, 2 merges.",
    ),
    Case("alter table foo add column a int check (a > 0)", "The rows are read once to validate the check."),
    Case(
        "alter table foo add column a double precision default random()",
        "Each row needs its own stored value: the rows are rewritten once.",
    ),
    Case("alter table foo add column a int generated always as (c1 + 1) stored", "Likewise."),
    Case(
        "alter table foo add column a double precision unique default random()",
        "Two changes: a writer that changes a row before it has its value could not know which index entry to remove.",
    ),
    Case(
        "alter table foo add column a int up using (c1 + 1)",
        "All rows are rewritten with it.",
    ),
    Case("alter table foo drop column c2", "Readers skip it from one version on; until then it is PUBLIC."),
    Case(
        "alter table foo alter column c3 type bigint",
        "Every old value is valid in the new type: it is cast when read.",
    ),
    Case(
        "alter table child alter column g type text",
        "Values are converted into new rows; concurrent writers convert their own.",
    ),
    Case("alter table foo alter column c3 set default 1", "It applies to future rows only."),
    Case(
        "alter table foo alter column c3 set compression lz4",
        "It applies to new files; compaction writes the others.",
    ),
    Case("alter table foo alter column c3 set statistics 100", "It is kept for clients; no query depends on it."),
    Case("alter table foo set (seachange.iceberg = on)", "The next export includes the table."),
    Case("alter table foo alter column c2 drop not null", "A constraint that all rows met is no longer checked."),
    Case("alter table foo alter column c3 set not null", "The valid check nn already guarantees it."),
    Case("alter table child alter column g set not null", "Writers check first, then existing rows are validated."),
    Case("alter table foo add check (c3 > 0)", "Likewise: a constraint on a single row needs one wait."),
    Case(
        "alter table foo add check (c3 > 0) not valid",
        "Writers check it; existing rows are not checked until VALIDATE CONSTRAINT.",
    ),
    Case("alter table foo validate constraint late", "It is already enforced: only the raise and the scan remain."),
    Case(
        "alter table child add foreign key (f) references foo",
        "Child writers declare their parent keys before any writer checks; otherwise an orphan could get in.",
    ),
    Case("alter table foo drop constraint foo_c1_check", "A constraint that all rows met is no longer checked."),
    Case("create index on foo (c1)", "Entries are built as of the point from which every writer maintains them."),
    Case("create index on foo (c1); create index on foo (c2)", "Two indexes share one wait and one scan."),
    Case(
        "create unique index on foo (c2)",
        "Keys are checked once all entries exist, and proven once all writers check: validating right after the "
        "backfill would admit a duplicate.",
    ),
    Case("alter table foo add constraint u unique using index foo_u", "The index is already unique."),
    Case("drop index foo_u", "It disappears at one commit; its files are deleted when no snapshot can see them."),
    Case(
        "alter table foo alter primary key using columns (c1)",
        "Rows are sorted by another key, which foo_u proves unique; other indexes end in it, so all are rebuilt.",
    ),
    Case("create sequence s", "No transaction can have used it before."),
    Case("create type mood as enum ('sad', 'ok')", "Likewise."),
    Case("create view v as select k from foo", "Likewise; the table is not changed."),
    Case("comment on column foo.c1 is 'x'", "No statement depends on it."),
    Case("grant select on foo to reader", "Takes effect for the next statement."),
)


def cost_of(sql: str) -> Cost:
    made = world(*SETUP, foo=1_000_000, child=1_000_000)
    return measure_whole(made.plan(sql), made.catalog)


def moved(cost: Cost) -> str:
    """In words, as the number depends on the table."""
    if cost.strategy is Strategy.REBUILD_PRIMARY:
        return "all rows"
    return "index entries" if cost.bytes_moved else "nothing"


def scans(cost: Cost) -> str:
    backfills = sum(isinstance(work.op, BackfillIndexes) for work in cost.work)
    validations = sum(isinstance(work.op, Validate) for work in cost.work)
    parts = [f"{backfills} to build" if backfills else "", f"{validations} to validate" if validations else ""]
    return ", ".join(part for part in parts if part) or "none"


def cost_table() -> list[str]:
    lines = [
        "| statement | versions published | waited for | scans | moved | why |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for case in CASES:
        cost = cost_of(case.sql)
        row = [f"`{case.sql}`", str(cost.versions), str(cost.drains), scans(cost), moved(cost), case.why]
        lines.append(f"| {' | '.join(row)} |")
    return lines
