"""Random values, conversions and writers, in an order that is decided by the steps of the change: the table is what a
plain DuckDB makes of the same rows by the same expression, or the change has failed for one of them."""

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobStatus
from seachange.verify.consistency import check
from tests.changer.changing import ask, begin, run_between
from tests.engine.database import open_quiet

# The type, and the expression over v, as PostgreSQL and DuckDB both read it.
CONVERSIONS = [
    ("integer", "v::integer"),
    ("integer", "length(v)"),
    ("bigint", "nullif(v, '')::bigint * 1000"),
    ("text", "upper(v) || '!'"),
    ("double precision", "v::double precision / 2"),
    ("boolean", "v = '22'"),
    ("integer", "case when v = 'x' then 0 else v::integer end"),
]
VALUES = st.sampled_from(["1", "22", "333", "-4", "5", "1", "22", "x", "", None])
KEYS = st.integers(1, 6)
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "delete", "move", "other", "load"]), KEYS, VALUES), min_size=1, max_size=2
)
MOMENTS = ["before", "drain", "backfill", "mutation", "after"]
CAREERS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), STEPS), max_size=4)
NAMES = count(1)


@dataclass
class Twin:
    """The committed rows: texts, and their converted values once these are public."""

    conversion: tuple[str, str]
    rows: dict[int, Any] = field(default_factory=dict)
    is_converted: bool = False

    def convert(self, value: str | None) -> Any:
        type_, expression = self.conversion
        ((found,),) = duckdb.execute(
            f"select cast({expression} as {type_}) from (select ?::text as v)", [value]
        ).fetchall()
        return found

    @property
    def fails(self) -> bool:
        return any(not self.accepts(value) for value in self.rows.values())

    def accepts(self, value: str | None) -> bool:
        try:
            self.convert(value)
        except duckdb.Error:
            return False
        return True

    def publish(self) -> None:
        self.rows = {key: self.convert(value) for key, value in self.rows.items()}
        self.is_converted = True


@dataclass
class Writer:
    session: Session
    table: str
    steps: list[tuple[str, int, str | None]]
    open: bool = False

    def write(self) -> None:
        # All run in one thread: a writer that would have to wait gives up.
        self.session.execute("set lock_timeout = '1ms'")
        self.session.execute("begin")
        # So that it keeps seeing the column as it is now.
        self.session.execute(f"select v from {self.table}")
        self.open = True
        for how, key, value in self.steps:
            text = "null" if value is None else f"'{value}'"
            self.session.execute(
                {
                    "put": f"insert into {self.table} values ({key}, {text}) on conflict (id) do update set v = {text}",
                    "delete": f"delete from {self.table} where id = {key}",
                    "move": f"update {self.table} set id = id + 100 where id = {key}",
                    "other": f"update {self.table} set n = coalesce(n, 0) + 1 where id = {key}",
                    "load": f"update {self.table} set v = {text} where id >= {key}",
                }[how]
            )

    def read(self) -> dict[int, str | None]:
        return dict(map(tuple, self.session.execute(f"select id, v from {self.table}").rows))


@contextmanager
def two_nodes() -> Iterator[tuple[Node, Node]]:
    with tempfile.TemporaryDirectory() as folder, closing(open_quiet(Path(folder))) as node:
        node.jobs.paused = True
        with closing(open_quiet(Path(folder), "two")) as other:
            other.jobs.paused = True
            yield node, other


def run_one(node: Node, other: Node, conversion: tuple[str, str], first: dict[int, str | None], careers: Any) -> None:
    table, twin = f"t{next(NAMES)}", Twin(conversion, dict(first))
    ask(node, f"create table {table} (id int primary key, v text, n int)")
    ask(node, f"create index {table}_v on {table} (v) where n is null")
    for key, value in first.items():
        ask(node, f"insert into {table} values ({key}, {'null' if value is None else repr(value)})")
    writers = [
        (begins, begins + lasts, Writer(Session((node, other)[number % 2]), table, steps))
        for number, (begins, lasts, steps) in enumerate(careers)
    ]
    # What would make the change fail.
    reasons: list[str] = []

    def end(writer: Writer) -> None:
        if not writer.open:
            return
        writer.open = False
        touched = {key for _, key, _ in writer.steps} | {key + 100 for _, key, _ in writer.steps}
        if any(how == "load" for how, _, _ in writer.steps):
            touched |= set(range(1, 200))
        try:
            seen = writer.read()
        except errors.SerializationFailure:
            writer.session.execute("rollback")
            return
        try:
            writer.session.execute("commit")
        except errors.SerializationFailure:
            return
        except errors.DataError:
            late = [seen[key] for key in touched & seen.keys()] if twin.is_converted else []
            if all(twin.accepts(value) for value in late):
                raise
            return
        for key in touched:
            twin.rows.pop(key, None)
            if key in seen:
                twin.rows[key] = twin.convert(seen[key]) if twin.is_converted else seen[key]

    def act(moment: str) -> None:
        if moment == "backfill" and twin.fails:
            reasons.append(moment)
        now = MOMENTS.index(moment)
        for begins, ends, writer in writers:
            if begins == now and not reasons:
                try:
                    writer.write()
                except errors.Error:
                    writer.session.execute("rollback")
                    writer.open = False
            if ends == now:
                end(writer)
        if moment == "mutation" and twin.fails:
            reasons.append(moment)

    act("before")
    statement = f"alter table concurrently {table} alter column v type {conversion[0]} using {conversion[1]}"
    done = begin(node, statement)
    job = run_between(node, done, lambda stage: act(stage) if stage in MOMENTS[1:4] else None, 20)
    assert (job.status is JobStatus.FAILED) == bool(reasons), (job.failure, reasons)
    if not reasons:
        twin.publish()
    for _, _, writer in writers:
        end(writer)
        writer.session.close()
    assert dict(map(tuple, ask(other, f"select id, v from {table}"))) == twin.rows
    assert check(node) == []
    ask(node, f"drop table {table}")


def test_random_writers_concurrent_with_random_conversions():
    with two_nodes() as (node, other):

        @settings(max_examples=10)
        @given(st.sampled_from(CONVERSIONS), st.dictionaries(KEYS, VALUES, max_size=4), CAREERS)
        def run(conversion: tuple[str, str], first: dict[int, str | None], careers: Any) -> None:
            run_one(node, other, conversion, first, careers)

        run()
