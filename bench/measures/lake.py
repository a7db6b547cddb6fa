"""A database in an object store: TPC-H from the cache and without it, a single row, and a bulk load.

The store is an S3 server of this machine, a program in Python: what it costs is noted beside the times.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

from bench.bounds import bounds_of
from bench.data import write_source
from bench.harness import Context, Measure, Reading, Sample, interleave
from bench.measures.tpch import Rows, are_same
from bench.peers.client import Client, run_peer, run_subject
from bench.tpch import generate, schema
from bench.tpch.queries import queries_at
from tests.support.s3 import S3Server, fault_proxy

# Rows that cannot be compressed, so that one file has a hundred megabytes.
WIDE_ROWS = 400
WIDE_BYTES = 256 << 10
WIDE = "create table wide (id bigint, body bytea, primary key (id))"
FILL = """insert into wide select i, decode(string_agg(md5(i || '-' || j), ''), 'hex')
    from generate_series({first}, {last}) i, generate_series(1, {parts}) j group by i"""


@dataclass(frozen=True, slots=True)
class Store:
    """A bucket, and what reaches it through the environment of processes that are started from now on."""

    server: S3Server
    url: str

    def place(self, folder: Path, local: Path) -> dict[str, str]:
        """The arguments by which the subject opens the database of a folder from a machine."""
        return {"folder": self.url, "catalog": f"sqlite:///{folder}/catalog.sqlite", "local": str(local)}

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.server.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def reaching(settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def store() -> Iterator[Store]:
    with S3Server() as server, reaching(server.environment(server.port)):
        yield Store(server, f"{server.create_place()}/lake")


def fill(subject: Client, paths: Mapping[str, Path]) -> None:
    """Loads and compacts the tables."""
    subject.request("pause_compaction")
    for table, path in paths.items():
        subject.request("execute", sql=schema.create_sql(table))
        subject.request("load", source=str(path), table=table)
        subject.request("compact", table=table)


@dataclass(frozen=True, slots=True)
class Ran:
    """The milliseconds and the rows of each query."""

    milliseconds: list[float]
    rows: list[Rows]


def run_all(client: Client, queries: Mapping[str, str]) -> Ran:
    answers = [client.request("query", sql=sql) for sql in queries.values()]
    return Ran([answer["seconds"] * 1000 for answer in answers], [answer["rows"] for answer in answers])


def check_same(one: Ran, other: Ran) -> None:
    assert all(map(are_same, one.rows, other.rows)), "both sides have other rows"


def tpch(context: Context) -> Iterable[Reading]:
    """From the cache, over the same database in a folder; from an empty one, over DuckDB reading the same files."""
    paths = generate.generate(context.folder("plain"), context.scale.tpch_factor)
    queries, folder = queries_at(context.scale.tpch_factor), context.folder("catalog")
    with store() as at:
        with run_subject() as ours, run_subject() as folded:
            ours.request("open", **at.place(folder, context.folder("first")), key="")
            folded.request("open", folder=str(context.folder("folder")), key="")
            for client in (ours, folded):
                fill(client, paths)
            check_same(run_all(ours, queries), run_all(folded, queries))
            warm = interleave(
                context.scale.rounds,
                lambda _: geometric_mean(run_all(ours, queries).milliseconds),
                lambda _: geometric_mean(run_all(folded, queries).milliseconds),
            )
            files = {table: ours.request("files", table=table)["urls"] for table in schema.TABLES}
            for client in (ours, folded):
                client.request("close")
        yield Reading("lake.warm", "ms", *warm, f"{len(queries)} queries; the cache has every file")
        yield cold(context, at, folder, files, queries)


def cold(
    context: Context, at: Store, folder: Path, files: Mapping[str, list[str]], queries: Mapping[str, str]
) -> Reading:
    """All queries, one after the other, by a process that begins without a cache."""
    server: list[float] = []
    found: list[Ran] = []

    def ours(number: int) -> float:
        with run_subject() as client:
            client.request("open", **at.place(folder, context.folder(f"cold-{number}")), key="")
            before = at.cpu_seconds()
            found.append(run_all(client, queries))
            server.append(at.cpu_seconds() - before)
            client.request("close")
        return sum(found[-1].milliseconds) / 1000

    def theirs(_: int) -> float:
        with run_peer("httpfs") as client:
            columns = {table: [name for name, _ in columns_of(table)] for table in files}
            client.request("open", files=files, columns=columns)
            read = run_all(client, queries)
        check_same(found[-1], read)
        return sum(read.milliseconds) / 1000

    samples = interleave(context.scale.rounds_long, ours, theirs)
    note = f"{len(queries)} queries in all; the S3 server took {max(server):.1f} s of CPU"
    return Reading("lake.cold", "s", *samples, note)


def columns_of(table: str) -> list[tuple[str, str]]:
    """The names and types of a table's columns, in the order of its files."""
    lines = schema.TABLES[table].partition("primary key")[0]
    words = (part.split() for part in lines.replace("(15,2)", "(15;2)").split(",") if part.strip())
    return [(name, type_) for name, type_, *_ in words]


def point(context: Context) -> Iterable[Reading]:
    """The requests by which a node that has no cache reads one row of a large file."""
    folder = context.folder("catalog")
    with ExitStack() as stack:
        server = stack.enter_context(S3Server())
        proxy = stack.enter_context(fault_proxy(server))
        stack.enter_context(reaching(server.environment(proxy.port)))
        at = Store(server, f"{server.create_place()}/lake")
        rows = max(WIDE_ROWS * context.scale.rows // 10_000_000, 40)
        with run_subject() as subject:
            subject.request("open", **at.place(folder, context.folder("writer")), key="")
            subject.request("execute", sql=WIDE)
            subject.request("execute", sql=FILL.format(first=1, last=rows, parts=WIDE_BYTES // 16))
            subject.request("compact", table="wide")
            size = max(subject.request("files", table="wide")["bytes"])
            subject.request("close")
        counts, seconds = [], []
        for number in range(context.scale.rounds_long):
            with run_subject() as subject:
                subject.request("open", **at.place(folder, context.folder(f"reader-{number}")), key="")
                before = proxy.faults.seen["GET"]
                sql = f"select id, body from wide where id = {1 + number * 7 % rows}"
                seconds.append(subject.request("query", sql=sql)["seconds"] * 1000)
                counts.append(float(proxy.faults.seen["GET"] - before))
                subject.request("close")
    note = f"of a file of {size / 1e6:.0f} MB; {sorted(seconds)[len(seconds) // 2]:.0f} ms"
    yield Reading("lake.point", "requests", Sample(tuple(counts)), None, note)


def load(context: Context) -> Iterable[Reading]:
    """A bulk load into an object store, over the same into a folder."""
    rows = context.scale.rows
    source = write_source(context.scratch, rows)
    server: list[float] = []

    def measured(arguments: Mapping[str, object]) -> float:
        with run_subject() as subject:
            subject.request("open", **arguments)
            seconds: float = subject.request("load", source=str(source))["seconds"]
            assert subject.request("count")["rows"] == rows, "rows were lost"
            subject.request("close")
        os.sync()
        return seconds

    def ours(number: int) -> float:
        # The server keeps what it has in memory.
        with store() as at:
            folder = context.folder(f"load-{number}")
            before = at.cpu_seconds()
            seconds = measured(at.place(folder, folder / "local"))
            server.append(at.cpu_seconds() - before)
        shutil.rmtree(folder)
        return seconds

    def theirs(number: int) -> float:
        folder = context.folder(f"folder-{number}")
        seconds = measured({"folder": str(folder)})
        shutil.rmtree(folder)
        return seconds

    samples = interleave(context.scale.rounds_long, ours, theirs)
    yield Reading("lake.load", "s", *samples, f"the S3 server took {max(server):.1f} s of CPU")


MEASURES = (
    Measure("lake.tpch", tpch, (*bounds_of("lake.warm"), *bounds_of("lake.cold"))),
    Measure("lake.point", point, bounds_of("lake.point")),
    Measure("lake.load", load, bounds_of("lake.load")),
)
