"""A client that runs random schema changes of every kind, without breaking what the workload relies on, and job
requests."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field

from soak.connections import Connection, Opener, Refused
from soak.history import Recorder
from soak.schema import EXTRA_COLUMNS, KINDS_KEPT, SLOT_BAD, SLOTS_SHARED

TABLES = ("items", "items", "lists", "accounts")
NUMBERS = ("0", "1", "2")
PAUSE_SECONDS = (0.0, 0.5)
RETRY_SECONDS = 0.3
# The drain is shorter than the think time of some clients, so that commits come below min_version.
SETTINGS = (
    "set lock_timeout = '2s'",
    "set statement_timeout = '30s'",
    "set seachange.drain_timeout = '150ms'",
    "set seachange.concurrently = 'async'",
)


@dataclass(frozen=True, slots=True)
class Change:
    """`{name}` in a statement is replaced by one of the words with that name."""

    sql: str
    weight: float = 1
    # Prepares the rows first, as a careful client does.
    prepare: str | None = None


WORDS: dict[str, tuple[str, ...]] = {
    "table": TABLES,
    "n": NUMBERS,
    "x": EXTRA_COLUMNS,
    "y": EXTRA_COLUMNS,
    "how": ("", "", "concurrently "),
    "late": ("", " not valid"),
    "size_type": ("int", "bigint", "text", "numeric(12, 0)"),
    "balance_type": ("bigint", "numeric(20, 0)"),
    "tag_type": ("int", "bigint", "text"),
    "extra": (" default 5", " not null default 7", "", " generated always as (3 + 4) stored"),
    "item_key": ("code", "qty", "kind, qty", "lower(code)", "slot", "code) include (qty", "note) where (qty > 50"),
    "sure_key": ("code", "code, kind", "id", "lower(code)"),
    "primary": ("id", "code"),
    "action": ("", " on delete set null"),
    "privilege": ("select", "insert", "update", "delete"),
    "owner": ("clerk", "seachange"),
    "word": ("first", "second", "third"),
}
CLEAN_SLOTS = f"update items set slot = null where slot < {SLOTS_SHARED} or slot >= {SLOT_BAD}"
CLEAN_KINDS = f"update items set kind = 0 where kind >= {KINDS_KEPT}"
CLEAN_NOTES = "update items set note = 'filled in' where note is null"

CHANGES = (
    # Indexes.
    Change("create index {how}sure_items_i{n} on items ({item_key})", 6),
    Change("create unique index {how}sure_items_k{n} on items ({sure_key})", 6),
    Change("create unique index {how}may_items_i on items (slot)", 3, CLEAN_SLOTS),
    Change("create index {how}sure_accounts_i on accounts (balance)", 3),
    Change("create index {how}sure_lists_i on lists (tag)"),
    Change("create index {how}sure_lists_p on lists (v) where (id > 0)"),
    Change("drop index if exists sure_items_i{n}", 2),
    Change("drop index if exists sure_items_k{n}", 2),
    Change("drop index if exists may_items_i", 3),
    Change("drop index if exists sure_accounts_i", 2),
    Change("drop index if exists sure_lists_i"),
    Change("drop index if exists sure_lists_p"),
    Change("alter index if exists sure_items_i{n} rename to sure_items_i0"),
    # Columns.
    Change("alter table {how}{table} add column {x} int{extra}", 5),
    Change("alter table {how}items add column {x} double precision default random()", 2),
    Change("alter table {how}items add column {x} int generated always as (qty + 1) stored", 2),
    Change("alter table {how}{table} drop column if exists {x} cascade", 4),
    Change("alter table {table} rename column {x} to {y}", 2),
    Change("alter table {how}{table} alter column {x} type bigint"),
    Change("alter table {table} alter column {x} set default 11"),
    Change("alter table lists alter column tag set default 1"),
    Change("alter table lists alter column tag drop default"),
    Change("alter table {how}items alter column size type {size_type} using size::{size_type}", 4),
    Change("alter table {how}accounts alter column balance type {balance_type} using balance::{balance_type}", 2),
    # Not of the lists themselves: a READ COMMITTED block that has used a column which was converted reads as of then.
    Change("alter table {how}lists alter column tag type {tag_type} using tag::{tag_type}", 2),
    # Constraints.
    Change("alter table {how}items add constraint sure_items_c{n} check (qty >= 0){late}", 3),
    Change("alter table {how}items add constraint may_items_c check (slot < 2000000000)", 2, CLEAN_SLOTS),
    Change("alter table {how}items validate constraint sure_items_c{n}", 2),
    Change("alter table {how}lists add constraint sure_lists_c check (v <> '')"),
    Change("alter table {how}lists drop constraint if exists sure_lists_c"),
    Change("alter table {how}items add constraint sure_items_u{n} unique (code)", 2),
    Change("alter table {how}items add constraint may_items_u unique (slot)", 2, CLEAN_SLOTS),
    Change(
        "alter table {how}items add constraint may_items_f foreign key (kind) references kinds{action}", 3, CLEAN_KINDS
    ),
    Change("alter table {how}items drop constraint if exists sure_items_c{n}", 2),
    Change("alter table {how}items drop constraint if exists sure_items_u{n}", 2),
    Change("alter table {how}items drop constraint if exists may_items_c"),
    Change("alter table {how}items drop constraint if exists may_items_u", 2),
    Change("alter table {how}items drop constraint if exists may_items_f", 2),
    Change("alter table items rename constraint sure_items_c{n} to sure_items_c0"),
    Change("alter table {how}items alter column note set not null", 2, CLEAN_NOTES),
    Change("alter table {how}items alter column note drop not null", 2),
    Change("alter table {how}items alter primary key using columns ({primary})", 2),
    Change(
        "alter table {how}items add column {x} int not null default 3, drop column if exists {y} cascade, "
        "add constraint sure_items_u{n} unique (code, qty)",
        2,
    ),
    # Everything else.
    Change("truncate side", 2),
    Change("alter table if exists side rename to aside"),
    Change("alter table if exists aside rename to side", 3),
    Change("drop table if exists aside"),
    Change("create table if not exists side (id bigint, n int)", 2),
    Change("create or replace view shown as select id, code, qty from items"),
    Change("drop view if exists shown"),
    Change("create sequence if not exists numbers"),
    Change("drop sequence if exists numbers"),
    Change("create type mood as enum ('good', 'bad')"),
    Change("drop type if exists mood"),
    Change("comment on table {table} is '{word}'"),
    Change("comment on column items.code is '{word}'"),
    Change("grant {privilege} on {table} to clerk"),
    Change("revoke {privilege} on {table} from clerk"),
    Change("alter table {table} owner to {owner}"),
    Change("vacuum {table}", 2),
    Change("analyze {table}"),
)
REQUESTS = (("cancel_job",), ("pause_job", "resume_job"), ("pause_job", "cancel_job"), ("resume_job",))
JOBS = "select id from seachange.jobs where status in ('pending', 'running', 'paused')"


@dataclass(slots=True)
class Changer:
    opener: Opener
    number: int
    seed: int
    recorder: Recorder
    stop: threading.Event
    _chance: random.Random = field(default_factory=random.Random)
    _connection: Connection | None = None

    def run(self) -> None:
        self._chance = random.Random(f"{self.seed} changer {self.number}")
        while not self.stop.wait(self._chance.uniform(*PAUSE_SECONDS)):
            if self._connect():
                self._chance.choices((self._change, self._request), (10, 2))[0]()
        if self._connection is not None:
            self._connection.close()

    def _connect(self) -> bool:
        if self._connection is not None and not self._connection.is_broken:
            return True
        try:
            self._connection = self.opener.open(self._chance)
            for setting in SETTINGS:
                self._connection.execute(setting)
        except Refused:
            self.stop.wait(RETRY_SECONDS)
            return False
        return True

    def _change(self) -> None:
        change = self._chance.choices(CHANGES, [change.weight for change in CHANGES])[0]
        if change.prepare is not None and self._chance.random() < 0.7:
            self._execute(change.prepare)
        words = {name: self._chance.choice(choices) for name, choices in WORDS.items()}
        self._execute(change.sql.format(**words))

    def _request(self) -> None:
        jobs = self._execute(JOBS)
        if jobs:
            job_id = self._chance.choice(jobs)[0]
            for request in self._chance.choice(REQUESTS):
                self._execute(f"select seachange.{request}({job_id})")
                self.stop.wait(self._chance.uniform(0.0, 0.3))

    def _execute(self, sql: str) -> list[tuple[object, ...]]:
        if self._connection is None:
            return []
        began = self.recorder.note("change", sql=sql)
        try:
            rows, _ = self._connection.execute(sql)
        except Refused as problem:
            self.recorder.note("changed", sql=sql, began=began, sqlstate=problem.sqlstate, message=str(problem))
            if problem.sqlstate is None:
                self._connection.close()
                self._connection = None
            return []
        self.recorder.note("changed", sql=sql, began=began, sqlstate="00000", message="")
        return rows
