"""Schema changes that move no bytes: for any size of the table, and while other nodes write to it."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from itertools import count
from statistics import median

from bench.bounds import bounds_of
from bench.data import write_source
from bench.harness import Context, Measure, Reading, Sample, interleave
from bench.measures.processes import Databases, postgres_server
from bench.peers.client import Client, run_load, run_peer, run_subject

# Each on the column that the first one adds.
STATEMENTS = (
    "alter table t add column {name} integer",
    "alter table t alter column {name} set default 5",
    "alter table t rename column {name} to {name}_",
    "alter table t drop column {name}_",
    "alter table t add column {name} integer not null default 7",
    "alter table t drop column {name}",
)
ADD_COLUMN = "alter table t add column {name} integer default 7"
DROP_COLUMN = "alter table t drop column {name}"
# Waits until no transaction is open that began before it.
ADD_CHECK = "alter table t add constraint {name} check (id >= 0)"
DROP_CHECK = "alter table t drop constraint {name}"
FEW_ROWS = 1_000
NODES = 3
# Of what one session can do alone, shared by all nodes.
LOAD = 0.5
IDS_PER_NODE = 10**9

names = (f"c{number}" for number in count())


def change_ms(client: Client, statements: Sequence[str] = STATEMENTS, undo: str | None = None) -> float:
    """The mean milliseconds of a statement; `undo` restores the table and is not measured."""
    name = next(names)
    seconds: list[float] = [client.request("execute", sql=text.format(name=name))["seconds"] for text in statements]
    if undo is not None:
        client.request("execute", sql=undo.format(name=name))
    return sum(seconds) / len(seconds) * 1000


def any_size(context: Context) -> Iterable[Reading]:
    """The same changes of a large table and of a small one, alternately."""
    scale = context.scale
    with ExitStack() as stack:
        large, small = (stack.enter_context(run_subject()) for _ in range(2))
        for client, rows in ((large, scale.rows), (small, FEW_ROWS)):
            client.request("open", folder=str(context.folder(f"rows-{rows}")))
            client.request("load", source=str(write_source(context.scratch, rows)))
            change_ms(client)
        ours, few = interleave(
            scale.rounds,
            lambda _: median(change_ms(large) for _ in range(scale.repetitions)),
            lambda _: median(change_ms(small) for _ in range(scale.repetitions)),
        )
        for client in (large, small):
            client.request("close")
    note = f"{scale.rows:,} rows over {FEW_ROWS:,}; the mean of six changes"
    yield Reading("changes.size", "ms", ours, few, note)


@contextmanager
def loaded_nodes(folder: str, catalog: str | None, rows: int, scale_seconds: float) -> Iterator[None]:
    """Nodes that write to the table in a closed loop."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(run_load()) for _ in range(NODES)]
        for number, node in enumerate(nodes):
            open_apart(node, number, folder, rows, catalog)
        rate = LOAD * capacity(nodes[0], scale_seconds) / NODES
        for node in nodes:
            node.request("start", rate=rate)
        yield
        for node in nodes:
            answer = node.request("stop")
            assert not answer["errors"], f"transactions failed: {answer['errors']}"
            node.request("close")


def open_apart(node: Client, number: int, folder: str, rows: int, catalog: str | None = None) -> None:
    """Each has rows of its own, so that no conflict is caused by two writers of one row."""
    share = rows // NODES
    first_id = (number + 1) * IDS_PER_NODE
    node.request("open", folder=folder, catalog=catalog, first_row=number * share, rows=share, first_id=first_id)


def capacity(node: Client, seconds: float) -> float:
    """Transactions per second of one session that never waits."""
    node.request("start")
    time.sleep(seconds)
    answer = node.request("stop")
    assert not answer["errors"], f"transactions failed: {answer['errors']}"
    return len(answer["seconds"]) / float(answer["elapsed"])


def live(catalog: str, context: Context) -> Iterable[Reading]:
    """ADD COLUMN while three nodes write, over one commit among them, and over DuckLake's own without any load."""
    scale = context.scale
    with ExitStack() as stack:
        server = stack.enter_context(postgres_server() if catalog == "postgresql" else nullcontext())
        folder, url = Databases(context, server).create(catalog)
        subject = stack.enter_context(run_subject())
        subject.request("open", folder=str(folder), catalog=url)
        subject.request("load", source=str(write_source(context.scratch, FEW_ROWS)))
        ducklake = stack.enter_context(run_peer("ducklake"))
        ducklake.request("open", folder=str(context.folder(f"{catalog}/ducklake")), catalog="duckdb")
        ids = count(FEW_ROWS)
        commit_ms: list[float] = []
        drained_ms: list[float] = []
        with loaded_nodes(str(folder), url, FEW_ROWS, scale.window_seconds):

            def one_commit() -> float:
                (seconds,) = subject.request("commit", first_id=next(ids), count=1)["seconds"]
                return float(seconds) * 1000

            def ours(_: int) -> float:
                commit_ms.append(median(one_commit() for _ in range(scale.repetitions)))
                drained_ms.append(median(change_ms(subject, [ADD_CHECK], DROP_CHECK) for _ in range(scale.repetitions)))
                return median(change_ms(subject, [ADD_COLUMN], DROP_COLUMN) for _ in range(scale.repetitions))

            def theirs(_: int) -> float:
                return median(change_ms(ducklake, [ADD_COLUMN], DROP_COLUMN) for _ in range(scale.repetitions))

            changes, peers = interleave(scale.rounds, ours, theirs)
        subject.request("close")
    name = f"changes.live.{catalog}"
    note = f"ADD COLUMN under load from {NODES} nodes; peer: "
    yield Reading(f"{name}.commit", "ms", changes, Sample(tuple(commit_ms)), f"{note}one commit of a row among them")
    drained = f"ADD CHECK under load from {NODES} nodes: two versions, a drain of what is open, a validation"
    yield Reading(f"{name}.drain", "ms", Sample(tuple(drained_ms)), note=drained)
    yield Reading(f"{name}.ducklake", "ms", changes, peers, f"{note}DuckLake's, no other client")


MEASURES = (
    Measure("changes.size", any_size, bounds_of("changes.size")),
    *(
        Measure(name, partial(live, catalog), bounds_of(name))
        for catalog in ("sqlite", "postgresql")
        for name in (f"changes.live.{catalog}",)
    ),
)
