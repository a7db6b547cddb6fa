"""What statements cost on tables that have rows, and why it is neither more nor less. The table in
docs/schema-changes.md is made of this."""

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
    Case("create table bar (id int primary key)", "Nobody can have used it before."),
    Case("drop table child", "It ends for everybody at one commit; files go when no snapshot can see them."),
    Case("truncate foo", "Empty indexes take the place of the old ones, whose files go later."),
    Case("alter table foo rename to bar", "Things are known by ids; a name is a label."),
    Case("alter table foo rename column c3 to d", "Likewise."),
    Case("alter table foo add column a int", "Rows in files read as NULL: that was frozen when the column was added."),
    Case("alter table foo add column a int not null default 7", "They read as 7, so there is nothing to validate."),
    Case(
        "alter table foo add column a int unique default 7",
        "The column moves nothing; the index is built and proven as any other. CockroachDB: 12 catalog transactions, "
        "2 backfills, 2 merges.",
    ),
    Case("alter table foo add column a int check (a > 0)", "The rows are read once, to show that they meet the check."),
    Case(
        "alter table foo add column a double precision default random()",
        "Each row needs a value of its own, which must be stored somewhere: the rows are rewritten, once.",
    ),
    Case("alter table foo add column a int generated always as (c1 + 1) stored", "Likewise."),
    Case(
        "alter table foo add column a double precision unique default random()",
        "Two changes: who changes a row before it has its value could not tell which entry of an index goes.",
    ),
    Case("alter table foo drop column c2", "Readers skip it from one version on; until then it is PUBLIC."),
    Case(
        "alter table foo alter column c3 type bigint",
        "Every old value is one of the new type: cast as it is read.",
    ),
    Case(
        "alter table child alter column g type text",
        "Values are converted into new rows; writers convert their own meanwhile.",
    ),
    Case("alter table foo alter column c3 set default 1", "It is about rows to come."),
    Case("alter table foo alter column c2 drop not null", "What everybody met before may be met no longer."),
    Case("alter table foo alter column c3 set not null", "Check nn, which is valid, says it already."),
    Case("alter table child alter column g set not null", "Writers check first, then the rows are shown to meet it."),
    Case("alter table foo add check (c3 > 0)", "Likewise: what looks at one row needs one wait."),
    Case("alter table foo add check (c3 > 0) not valid", "Writers check it; old rows are somebody's later care."),
    Case("alter table foo validate constraint late", "It is enforced already: only the raise and the scan are left."),
    Case(
        "alter table child add foreign key (f) references foo",
        "Children leave the keys that they rely on before anybody checks, or an orphan gets in.",
    ),
    Case("alter table foo drop constraint foo_c1_check", "What everybody met before may be met no longer."),
    Case("create index on foo (c1)", "Entries are built as of the moment from which on every writer maintains them."),
    Case("create index on foo (c1); create index on foo (c2)", "Two indexes share one wait and one scan."),
    Case(
        "create unique index on foo (c2)",
        "Keys are checked once all entries are there, and proven once everybody checks: validating right after the "
        "backfill would admit a duplicate.",
    ),
    Case("alter table foo add constraint u unique using index foo_u", "The index is one already."),
    Case("drop index foo_u", "It ends at one commit; its files go when no snapshot can see them."),
    Case(
        "alter table foo alter primary key using columns (c1)",
        "Rows are sorted by another key, which foo_u shows to be one; other indexes end in it, so all are built anew.",
    ),
    Case("create sequence s", "Nobody can have used it before."),
    Case("create type mood as enum ('sad', 'ok')", "Likewise."),
    Case("create view v as select k from foo", "Likewise; the table learns nothing of it."),
    Case("comment on column foo.c1 is 'x'", "Nothing that a statement does depends on it."),
    Case("grant select on foo to somebody", "Rights are looked up by whoever begins afterwards."),
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
