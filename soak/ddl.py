"""A client that runs random schema changes of every kind, without breaking what the workload relies on, and job
requests."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field

from soak.connections import Connection, Opener, Refused
from soak.history import Recorder
from soak.schema import EXTRA_COLUMNS, KINDS_KEPT, KINDS_MAX, SLOT_BAD, SLOTS_SHARED

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


# A session beside a block, which may wait for rows of the block itself.
OTHER_SETTINGS = ("set lock_timeout = '300ms'", "set statement_timeout = '30s'")


@dataclass(frozen=True, slots=True)
class Change:
    """`{name}` in a statement is replaced by one of the words with that name."""

    sql: str
    weight: float = 1
    # Prepares the rows first, as a careful client does.
    prepare: str | None = None
    # A row with which another session breaks what the change adds, and what rejects such a row if it is there already.
    spoil: str | None = None
    drops: tuple[str, ...] = ()


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
DROP = "alter table items drop constraint if exists {}"
DROP_KEYS = (DROP.format("may_items_u"), "drop index if exists may_items_i")
DROP_CHECK = (DROP.format("may_items_c"),)
DROP_REFERENCE = (DROP.format("may_items_f"),)
DROP_NOT_NULL = ("alter table items alter column note drop not null",)
CLEAN_SLOTS = f"update items set slot = null where slot < {SLOTS_SHARED} or slot >= {SLOT_BAD}"
CLEAN_KINDS = f"update items set kind = 0 where kind >= {KINDS_KEPT}"
CLEAN_NOTES = "update items set note = 'filled in' where note is null"
# Two rows with the same slot, one too high, a kind that there is not, no note. Other clients rarely lock these rows.
SPOILED = "where id in (select id from items order by qty, id limit 1)"
SPOIL_KEYS = "update items set slot = 0 where id in (select id from items order by qty, id limit 2)"
SPOIL_SLOTS = f"update items set slot = {SLOT_BAD} {SPOILED}"
SPOIL_KINDS = f"update items set kind = {KINDS_MAX} {SPOILED}"
SPOIL_NOTES = f"update items set note = null {SPOILED}"

CHANGES = (
    # Indexes.
    Change("create index {how}sure_items_i{n} on items ({item_key})", 6),
    Change("create unique index {how}sure_items_k{n} on items ({sure_key})", 6),
    Change("create unique index {how}may_items_i on items (slot)", 3, CLEAN_SLOTS, SPOIL_KEYS, DROP_KEYS),
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
    Change(
        f"alter table {{how}}items add constraint may_items_c check (slot < {SLOT_BAD})",
        2,
        CLEAN_SLOTS,
        SPOIL_SLOTS,
        DROP_CHECK,
    ),
    Change("alter table {how}items validate constraint sure_items_c{n}", 2),
    Change("alter table {how}lists add constraint sure_lists_c check (v <> '')"),
    Change("alter table {how}lists drop constraint if exists sure_lists_c"),
    Change("alter table {how}items add constraint sure_items_u{n} unique (code)", 2),
    Change("alter table {how}items add constraint may_items_u unique (slot)", 2, CLEAN_SLOTS, SPOIL_KEYS, DROP_KEYS),
    Change(
        "alter table {how}items add constraint may_items_f foreign key (kind) references kinds{action}",
        3,
        CLEAN_KINDS,
        SPOIL_KINDS,
        DROP_REFERENCE,
    ),
    Change("alter table {how}items drop constraint if exists sure_items_c{n}", 2),
    Change("alter table {how}items drop constraint if exists sure_items_u{n}", 2),
    Change("alter table {how}items drop constraint if exists may_items_c"),
    Change("alter table {how}items drop constraint if exists may_items_u", 2),
    Change("alter table {how}items drop constraint if exists may_items_f", 2),
    Change("alter table items rename constraint sure_items_c{n} to sure_items_c0"),
    Change("alter table {how}items alter column note set not null", 2, CLEAN_NOTES, SPOIL_NOTES, DROP_NOT_NULL),
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
# Statements between the changes of a transaction block: rows of its own, that no other client relies on.
BLOCK_ROWS = (
    "insert into side values ({n}, 1)",
    "update items set note = note where id = (select min(id) from items)",
    "delete from side where id = {n}",
    CLEAN_SLOTS,
)
BEGINS = ("begin", "begin", "begin isolation level repeatable read", "begin isolation level serializable")
# What may happen behind each statement of a block.
SAVEPOINTS = ("", "", "", "savepoint s", "rollback to s")
ENDS = ("commit", "commit", "commit", "rollback")
BLOCK_STATEMENTS_MAX = 4
# The time in which others break what the block has added.
IDLE_SECONDS = (0.0, 0.6)
OUTSIDE_BLOCKS = ("vacuum",)
IN_BLOCKS = tuple(change for change in CHANGES if not change.sql.startswith(OUTSIDE_BLOCKS))
# Blocks are mostly about what other sessions can break, and most of them meet one that does.
BLOCK_WEIGHTS = tuple(change.weight * (1 if change.spoil is None else 16) for change in IN_BLOCKS)
SPOILED_SHARE = 0.8
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
    # Another session, beside a block.
    _other: Connection | None = None
    # Of the last statement.
    _sqlstate: str | None = None

    def run(self) -> None:
        self._chance = random.Random(f"{self.seed} changer {self.number}")
        while not self.stop.wait(self._chance.uniform(*PAUSE_SECONDS)):
            self._connection = self._connected(self._connection, SETTINGS)
            self._other = self._connected(self._other, OTHER_SETTINGS)
            if self._connection is not None:
                self._chance.choices((self._change, self._run_block, self._request), (5, 6, 2))[0]()
        for connection in (self._connection, self._other):
            if connection is not None:
                connection.close()

    def _connected(self, connection: Connection | None, settings: tuple[str, ...]) -> Connection | None:
        """None if no node takes a session."""
        if connection is not None and not connection.is_broken:
            return connection
        try:
            connection = self.opener.open(self._chance)
            for setting in settings:
                connection.execute(setting)
        except Refused:
            self.stop.wait(RETRY_SECONDS)
            return None
        return connection

    def _change(self) -> None:
        change = self._chance.choices(CHANGES, [change.weight for change in CHANGES])[0]
        if change.prepare is not None and self._chance.random() < 0.7:
            self._execute(change.prepare)
        self._execute(self._choose_words(change.sql))

    def _choose_words(self, sql: str, **fixed: str) -> str:
        return sql.format(**{name: self._chance.choice(choices) for name, choices in WORDS.items()} | fixed)

    def _run_block(self) -> None:
        """Changes and rows in one transaction, with savepoints. A client that stops half way is one of the faults."""
        chance = self._chance
        has_savepoint = False
        spoils: list[str] = []
        steps = [self._choose_for_block() for _ in range(chance.randint(1, BLOCK_STATEMENTS_MAX))]
        for sql in (drop for change in steps for drop in change.drops):
            self._execute(sql)
        self._execute(chance.choice(BEGINS))
        for change in steps:
            prepare = (change.prepare,) if change.prepare is not None and chance.random() < 0.7 else ()
            for sql in (*prepare, self._choose_words(change.sql, how="")):
                self._execute(sql)
                if self._sqlstate != "00000":
                    break
            then = chance.choice(SAVEPOINTS)
            if self._sqlstate != "00000":
                then = "rollback to s" if has_savepoint else ""
                if not then:
                    break
            elif change.spoil is not None:
                spoils.append(change.spoil)
            if then == "savepoint s" or (then and has_savepoint):
                has_savepoint = True
                self._execute(then)
                if self._sqlstate != "00000":
                    # Without the catalog, for example: the block has failed.
                    break
        if chance.random() < SPOILED_SHARE:
            for spoil in spoils:
                self._spoil(spoil)
        self.stop.wait(chance.uniform(*IDLE_SECONDS))
        self._execute(chance.choice(ENDS))

    def _choose_for_block(self) -> Change:
        if self._chance.random() < 0.3:
            return Change(self._chance.choice(BLOCK_ROWS))
        return self._chance.choices(IN_BLOCKS, BLOCK_WEIGHTS)[0]

    def _spoil(self, sql: str) -> None:
        """The block fails, or its constraint is broken."""
        if self._other is not None:
            self._other = self._run_on(self._other, sql)[0]

    def _request(self) -> None:
        jobs = self._execute(JOBS)
        if jobs:
            job_id = self._chance.choice(jobs)[0]
            for request in self._chance.choice(REQUESTS):
                self._execute(f"select seachange.{request}({job_id})")
                self.stop.wait(self._chance.uniform(0.0, 0.3))

    def _execute(self, sql: str) -> list[tuple[object, ...]]:
        if self._connection is None:
            self._sqlstate = None
            return []
        self._connection, self._sqlstate, rows = self._run_on(self._connection, sql)
        return rows

    def _run_on(
        self, connection: Connection, sql: str
    ) -> tuple[Connection | None, str | None, list[tuple[object, ...]]]:
        """The connection unless it was lost, the SQLSTATE, and the rows."""
        began = self.recorder.note("change", sql=sql)
        try:
            rows, _ = connection.execute(sql)
        except Refused as problem:
            self.recorder.note("changed", sql=sql, began=began, sqlstate=problem.sqlstate, message=str(problem))
            if problem.sqlstate is None:
                connection.close()
                return None, None, []
            return connection, problem.sqlstate, []
        self.recorder.note("changed", sql=sql, began=began, sqlstate="00000", message="")
        return connection, "00000", rows
