"""Schema changes inside transaction blocks: what BEGIN and COMMIT around them cost."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median

from bench.bounds import bounds_of
from bench.data import write_source
from bench.harness import Context, Measure, Reading, Sample, interleave
from bench.measures.builds import IN_PROCESS
from bench.measures.changes import FEW_ROWS, loaded_nodes
from bench.peers.client import Client, run_subject
from bench.peers.postgresql import run_postgresql

# How many rows a block with a new index has of its own.
OWN_ROWS = 1_000
INDEXES_MANY = 4
COLUMNS_MANY = 10
BULK_ROWS = 1_000_000

names = (f"b{number}" for number in count())


@contextmanager
def opened(context: Context, folder: Path, rows: int) -> Iterator[Client]:
    with run_subject() as subject:
        subject.request("open", folder=str(folder))
        subject.request("load", source=str(write_source(context.scratch, rows)))
        subject.request("execute", sql=IN_PROCESS)
        yield subject
        subject.request("close")


def block_ms(execute: Callable[[str], float], columns: int) -> float:
    """Milliseconds of a block that adds columns; they are dropped again, which is not measured."""
    added = [next(names) for _ in range(columns)]
    statements = ["begin", *(f"alter table t add column {name} integer default 7" for name in added), "commit"]
    seconds = sum(execute(statement) for statement in statements)
    execute("alter table t " + ", ".join(f"drop column {name}" for name in added))
    return seconds * 1000


def add_columns(context: Context) -> Iterable[Reading]:
    """BEGIN, ADD COLUMN, COMMIT beside PostgreSQL's; and with ten columns over one."""
    scale = context.scale
    with opened(context, context.folder("columns"), FEW_ROWS) as subject, run_postgresql() as server:
        server.load(context.scratch, FEW_ROWS)

        def ours(columns: int) -> float:
            return median(block_ms(seconds_by(subject), columns) for _ in range(scale.repetitions))

        def theirs() -> float:
            return median(block_ms(server.execute, 1) for _ in range(scale.repetitions))

        ours(1), ours(COLUMNS_MANY), theirs()
        one, peer = interleave(scale.rounds, lambda _: ours(1), lambda _: theirs())
        many, single = interleave(scale.rounds, lambda _: ours(COLUMNS_MANY), lambda _: ours(1))
    yield Reading("blocks.columns.one", "ms", one, peer, "BEGIN, ADD COLUMN, COMMIT; peer: PostgreSQL")
    yield Reading("blocks.columns.ten", "ms", many, single, f"{COLUMNS_MANY} ADD COLUMNs in a block, over one")


def seconds_by(subject: Client) -> Callable[[str], float]:
    return lambda sql: float(subject.request("execute", sql=sql)["seconds"])


def build_index(context: Context) -> Iterable[Reading]:
    """An index on a large table in a block, over the same as a statement of its own; ROLLBACK after it."""
    scale = context.scale
    rollbacks: list[float] = []
    with opened(context, context.folder("index"), scale.rows) as subject:
        subject.request("compact")
        execute = seconds_by(subject)

        def block(_: int) -> float:
            execute("begin")
            seconds = execute("create index built on t (k)")
            rollbacks.append(execute("rollback") * 1000)
            return seconds

        def alone(_: int) -> float:
            seconds = execute("create index built on t (k)")
            execute("drop index built")
            return seconds

        alone(0)
        ours, jobs = interleave(scale.rounds_long, block, alone)
    yield Reading(
        "blocks.index.build", "s", ours, jobs, f"CREATE INDEX on {scale.rows:,} rows in a block, over autocommit"
    )
    yield Reading("blocks.index.rollback", "ms", Sample(tuple(rollbacks)), note="ROLLBACK after that index")


def build_indexes(context: Context) -> Iterable[Reading]:
    """Several indexes of one message, which share a scan, over a message for each of them."""
    scale = context.scale
    statements = [f"create index built{number} on t (k, a)" for number in range(INDEXES_MANY)]
    with opened(context, context.folder("message"), scale.rows) as subject:
        subject.request("compact")
        execute = seconds_by(subject)

        def block(messages: list[str]) -> float:
            execute("begin")
            seconds = sum(map(execute, messages))
            execute("rollback")
            return seconds

        block(statements)
        together, apart = interleave(
            scale.rounds_long, lambda _: block(["; ".join(statements)]), lambda _: block(statements)
        )
    note = f"{INDEXES_MANY} indexes on {scale.rows:,} rows in one message, over one message each"
    yield Reading("blocks.message.indexes", "s", together, apart, note)


def commit_index(context: Context) -> Iterable[Reading]:
    """COMMIT of a block with a new index and rows of its own, while other nodes write the table."""
    scale = context.scale
    rows = scale.rows // 10
    commits: list[float] = []
    ids = count(10**12, OWN_ROWS)
    folder = context.folder("commit")
    with opened(context, folder, rows) as subject:
        execute = seconds_by(subject)
        with loaded_nodes(str(folder), None, rows, scale.window_seconds):
            for _ in range(scale.rounds):
                first = next(ids)
                execute("begin")
                execute(f"insert into t (id, a) select {first} + g, g from generate_series(1, {OWN_ROWS}) g")
                execute("create index built on t (a)")
                commits.append(execute("commit") * 1000)
                execute("drop index built")
    note = f"COMMIT of an index on {rows:,} rows and {OWN_ROWS:,} own rows, under load of other nodes"
    yield Reading("blocks.commit.rows", "ms", Sample(tuple(commits)), note=note)


def commit_bulk(context: Context) -> Iterable[Reading]:
    """COMMIT of an UPDATE of all rows and a unique index over them."""
    scale = context.scale
    rows = min(BULK_ROWS, scale.rows)
    commits: list[float] = []
    with opened(context, context.folder("bulk"), rows) as subject:
        execute = seconds_by(subject)
        for _ in range(scale.rounds_long):
            execute("begin")
            execute("update t set a = a + 1")
            execute("create unique index built on t (id, k)")
            commits.append(execute("commit"))
            execute("drop index built")
    note = f"COMMIT after UPDATE of {rows:,} rows and CREATE UNIQUE INDEX"
    yield Reading("blocks.bulk.commit", "s", Sample(tuple(commits)), note=note)


MEASURES = tuple(
    Measure(name, run, bounds_of(name))
    for name, run in (
        ("blocks.columns", add_columns),
        ("blocks.index", build_index),
        ("blocks.message", build_indexes),
        ("blocks.commit", commit_index),
        ("blocks.bulk", commit_bulk),
    )
)
