"""A changer: random schema changes, and random requests about the jobs that follow from them.

A statement comes with the SQLSTATEs that it may answer with, besides those of any change: that another was faster, that
it was cancelled, or that it had to wait for too long.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass

from seachange import errors
from seachange.engine.session.session import Session
from tests.cluster.load.log import Log
from tests.cluster.load.schema import KINDS_KEPT, SLOT_BAD, SLOTS_SHARED, TABLES

# Another session has created or dropped the same object, is changing it, has cancelled the job, or was too slow.
ANY_CHANGE = frozenset(
    [
        "42P07",
        "42710",
        "42804",
        "42883",
        "42704",
        "42701",
        "42703",
        "2BP01",
        "42P16",
        "55006",
        "55000",
        "55P03",
        "57014",
        "40001",
    ]
)
NAMES = 3
COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Change:
    """`{table}` stands for the table that is changed, in the names of indexes too."""

    sql: str
    # What the data may have against it.
    may_fail: frozenset[str] = frozenset()
    # Makes the data fit first, as a careful client does.
    cleanse: str | None = None


UNIQUE = frozenset(["23505"])
CHECK = frozenset(["23514"])
NOT_NULL = frozenset(["23502"])
FOREIGN = frozenset(["23503"])
CLEAN_SLOTS = f"update {{table}} set slot = null where slot < {SLOTS_SHARED} or slot >= {SLOT_BAD}"
CLEAN_KINDS = f"update {{table}} set kind = 0 where kind >= {KINDS_KEPT}"
CLEAN_NOTES = "update {table} set note = 'filled in' where note is null"

# Stands in a statement until it is known which.
TABLE = "{table}"

Make = Callable[[random.Random], Change]


def _concurrently(chance: random.Random) -> str:
    return chance.choice(("", "", "concurrently "))


def _alter(chance: random.Random) -> str:
    return f"alter table {_concurrently(chance)}{TABLE}"


def create_index(chance: random.Random) -> Change:
    key = chance.choice(
        ("code", "qty", "kind, qty", "lower(code)", "slot", "code) include (qty", "note) where (qty > 50")
    )
    return Change(f"create index {_concurrently(chance)}sure_{TABLE}_i{chance.randrange(NAMES)} on {TABLE} ({key})")


def create_account_index(chance: random.Random) -> Change:
    return Change(f"create index {_concurrently(chance)}sure_a on account (balance)")


def drop_account_index(chance: random.Random) -> Change:
    return Change("drop index sure_a")


def create_sure_unique_index(chance: random.Random) -> Change:
    key = chance.choice(("code", "code, kind", "id", "lower(code)"))
    name = f"sure_{TABLE}_i{chance.randrange(NAMES)}"
    return Change(f"create unique index {_concurrently(chance)}{name} on {TABLE} ({key})")


def create_unique_index(chance: random.Random) -> Change:
    return Change(f"create unique index {_concurrently(chance)}may_{TABLE}_i on {TABLE} (slot)", UNIQUE, CLEAN_SLOTS)


def drop_index(chance: random.Random) -> Change:
    return Change(f"drop index {chance.choice([f'may_{TABLE}_i', *(f'sure_{TABLE}_i{n}' for n in range(NAMES))])}")


def add_column(chance: random.Random) -> Change:
    rest = chance.choice(("", " default 5", " not null default 7", " default 9 check (x is null or x > 0)"))
    column = f"x{chance.randrange(COLUMNS)}"
    return Change(f"{_alter(chance)} add column {column} int{rest.replace('x ', f'{column} ')}")


def add_computed_column(chance: random.Random) -> Change:
    """Each row gets a value of its own: all are rewritten."""
    kind = chance.choice(("int generated always as (qty + 1) stored", "double precision default random()"))
    return Change(f"{_alter(chance)} add column x{chance.randrange(COLUMNS)} {kind}")


def convert_size(chance: random.Random) -> Change:
    kind = chance.choice(("int", "bigint", "text", "numeric(12, 0)"))
    return Change(f"{_alter(chance)} alter column size type {kind} using size::{kind}")


def add_unique_column(chance: random.Random) -> Change:
    column = f"x{chance.randrange(COLUMNS)}"
    return Change(f"{_alter(chance)} add column {column} int constraint may_{TABLE}_x unique", UNIQUE)


def drop_column(chance: random.Random) -> Change:
    return Change(f"{_alter(chance)} drop column x{chance.randrange(COLUMNS)} cascade")


def rename_column(chance: random.Random) -> Change:
    old, new = chance.sample(range(COLUMNS), 2)
    return Change(f"alter table {TABLE} rename column x{old} to x{new}")


def widen_column(chance: random.Random) -> Change:
    column, kind = f"x{chance.randrange(COLUMNS)}", chance.choice(("bigint", "text"))
    return Change(f"{_alter(chance)} alter column {column} type {kind}")


def add_sure_check(chance: random.Random) -> Change:
    late = chance.choice(("", " not valid"))
    return Change(f"{_alter(chance)} add constraint sure_{TABLE}_c{chance.randrange(NAMES)} check (qty >= 0){late}")


def add_check(chance: random.Random) -> Change:
    return Change(f"{_alter(chance)} add constraint may_{TABLE}_c check (slot < {SLOT_BAD})", CHECK, CLEAN_SLOTS)


def validate_check(chance: random.Random) -> Change:
    return Change(f"{_alter(chance)} validate constraint sure_{TABLE}_c{chance.randrange(NAMES)}")


def add_sure_unique(chance: random.Random) -> Change:
    return Change(f"{_alter(chance)} add constraint sure_{TABLE}_u{chance.randrange(NAMES)} unique (code)")


def add_unique(chance: random.Random) -> Change:
    return Change(f"{_alter(chance)} add constraint may_{TABLE}_u unique (slot)", UNIQUE, CLEAN_SLOTS)


def add_foreign_key(chance: random.Random) -> Change:
    action = chance.choice(("", " on delete set null"))
    key = f"foreign key (kind) references kind{action}"
    return Change(f"{_alter(chance)} add constraint may_{TABLE}_f {key}", FOREIGN, CLEAN_KINDS)


def drop_constraint(chance: random.Random) -> Change:
    may = [f"may_{TABLE}_{kind}" for kind in "cufx"]
    names = [*may, *(f"sure_{TABLE}_{kind}{n}" for kind in "cu" for n in range(NAMES))]
    return Change(f"{_alter(chance)} drop constraint {chance.choice(names)}")


def set_not_null(chance: random.Random) -> Change:
    return Change(f"{_alter(chance)} alter column note set not null", NOT_NULL, CLEAN_NOTES)


def drop_not_null(chance: random.Random) -> Change:
    return Change(f"{_alter(chance)} alter column note drop not null")


def alter_primary_key(chance: random.Random) -> Change:
    return Change(f"{_alter(chance)} alter primary key using columns ({chance.choice(('id', 'code'))})")


def several_at_once(chance: random.Random) -> Change:
    first, second = chance.sample(range(COLUMNS), 2)
    return Change(
        f"{_alter(chance)} add column x{first} int not null default 3, drop column if exists x{second} cascade, "
        f"add constraint sure_{TABLE}_u{chance.randrange(NAMES)} unique (code, qty)"
    )


def truncate(chance: random.Random) -> Change:
    return Change("truncate scratch")


def comment(chance: random.Random) -> Change:
    return Change(f"comment on table {TABLE} is 'comment {chance.randrange(100)}'")


CHANGES: tuple[tuple[Make, float], ...] = (
    (create_index, 4),
    (create_account_index, 1),
    (drop_account_index, 1),
    (create_sure_unique_index, 4),
    (create_unique_index, 3),
    (drop_index, 6),
    (add_column, 5),
    (add_computed_column, 2),
    (convert_size, 4),
    (add_unique_column, 1),
    (drop_column, 4),
    (rename_column, 2),
    (widen_column, 1),
    (add_sure_check, 3),
    (add_check, 2),
    (validate_check, 2),
    (add_sure_unique, 2),
    (add_unique, 2),
    (add_foreign_key, 3),
    (drop_constraint, 8),
    (set_not_null, 2),
    (drop_not_null, 2),
    (alter_primary_key, 3),
    (several_at_once, 2),
    (truncate, 3),
    (comment, 1),
)
REQUESTS = (("cancel_job",), ("pause_job", "resume_job"), ("pause_job", "cancel_job"), ("resume_job",))


class Changer:
    def __init__(self, session: Session, number: int, seed: int, log: Log, stop: threading.Event) -> None:
        self._session = session
        self._chance = random.Random(f"{seed} changer {number}")
        self._log = log
        self._stop = stop
        session.execute("set seachange.concurrently = 'async'")
        session.execute("set lock_timeout = '1500ms'")
        # Short, so that transactions which think for a while are shut out, and made to fit.
        session.execute("set seachange.drain_timeout = '400ms'")

    def run(self) -> None:
        while not self._stop.wait(self._chance.uniform(0.0, 0.4)):
            self._chance.choices((self._change, self._request, self._keep_house), (15, 5, 2))[0]()

    def _change(self) -> None:
        makes, weights = zip(*CHANGES, strict=True)
        make: Make = self._chance.choices(makes, weights)[0]
        change, table = make(self._chance), self._chance.choice(TABLES)
        if change.cleanse is not None and self._chance.random() < 0.7:
            # Others write to the same rows.
            self._run(change.cleanse.format(table=table), frozenset(["40001"]))
        self._run(change.sql.format(table=table), ANY_CHANGE | change.may_fail)

    def _request(self) -> None:
        rows = self._session.execute(
            "select id from seachange.jobs where status in ('pending', 'running', 'paused')"
        ).rows
        if rows:
            job_id = self._chance.choice(list(rows))[0]
            for request in self._chance.choice(REQUESTS):
                self._run(f"select seachange.{request}({job_id})", ANY_CHANGE)
                self._stop.wait(self._chance.uniform(0.0, 0.5))

    def _keep_house(self) -> None:
        """Folds deltas and collects garbage far more often than a node does by itself."""
        node = self._session.node
        try:
            for table in node.epoch.schemas.newest.by_id.values():
                node.compact(table)
            node.collect_garbage(0)
        except errors.Error as problem:
            allowed = problem.sqlstate in ("40001", "72000")
            self._log.note("house", sqlstate=problem.sqlstate, message=str(problem), allowed=allowed)

    def _run(self, sql: str, allowed: frozenset[str]) -> None:
        try:
            self._session.execute(sql)
        except errors.Error as problem:
            details = {"sqlstate": problem.sqlstate, "message": str(problem), "allowed": problem.sqlstate in allowed}
            self._log.note("ddl", sql=sql, **details)
        else:
            self._log.note("ddl", sql=sql, sqlstate="00000", message="", allowed=True)
