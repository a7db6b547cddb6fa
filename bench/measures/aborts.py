"""Transactions that fail because the schema changed during them, here and in the peers."""

import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack

from bench.bounds import bounds_of
from bench.data import write_source
from bench.harness import Context, Measure, Reading, Sample
from bench.measures.changes import FEW_ROWS, NODES, names, open_apart
from bench.peers.client import Client, run_load, run_peer, run_subject

# One round of changes, some metadata only, some with a build or a validation.
CHANGES = (
    "alter table t add column {name} integer",
    "alter table t add column {name}d integer not null default 7",
    "create index {name}_i on t ({name}d)",
    "create unique index {name}_u on t (k)",
    "alter table t add constraint {name}_c check ({name}d > 0)",
    "alter table t alter column {name}d set default 8",
    "alter table t rename column {name} to {name}r",
    "alter table t alter column {name}r set default 1",
    "comment on table t is 'changed'",
    "drop index {name}_u",
    "alter table t drop column {name}d",
    "alter table t drop column {name}r",
)


def under_load(context: Context) -> Iterable[Reading]:
    """Three nodes write in a closed loop while a fourth changes the table repeatedly."""
    scale = context.scale
    transactions, changes = 0, 0
    errors: Counter[str] = Counter()
    folder = str(context.folder("load"))
    with ExitStack() as stack:
        changer = stack.enter_context(run_subject())
        changer.request("open", folder=folder)
        changer.request("load", source=str(write_source(context.scratch, FEW_ROWS)))
        nodes = [stack.enter_context(run_load()) for _ in range(NODES)]
        for number, node in enumerate(nodes):
            open_apart(node, number, folder, FEW_ROWS)
            node.request("start")
        end = time.monotonic() + scale.rounds * scale.window_seconds
        while time.monotonic() < end:
            name = next(names)
            for text in CHANGES:
                changer.request("execute", sql=text.format(name=name))
                changes += 1
        for node in nodes:
            answer = node.request("stop")
            transactions += len(answer["seconds"])
            errors.update(answer["errors"])
            node.request("close")
        changer.request("close")
    note = f"of {transactions:,} transactions during {changes} changes {dict(errors) or ''}"
    yield Reading("aborts.load", "", Sample((errors.total(),)), note=note)


def spanning(context: Context) -> Iterable[Reading]:
    """Transactions, each of which is open while another session alters the table once."""
    with ExitStack() as stack:
        peers: list[tuple[str, Client, dict[str, str]]] = [
            ("seachange", stack.enter_context(run_subject()), {}),
            ("ducklake", stack.enter_context(run_peer("ducklake")), {"catalog": "duckdb"}),
            ("deltalake", stack.enter_context(run_peer("deltalake")), {}),
        ]
        for name, client, options in peers:
            client.request("open", folder=str(context.folder(f"spanning/{name}")), **options)
            answer = client.request("span_changes", count=context.scale.commits)
            failed, done = answer["failed"], answer["transactions"]
            note = f"of {done} transactions, each open during one of: {', '.join(answer['kinds'])}"
            yield Reading(f"aborts.spanning.{name}", "", Sample((failed,)), note=note)
            client.request("close")


MEASURES = (
    Measure("aborts.load", under_load, bounds_of("aborts.load")),
    Measure("aborts.spanning", spanning, bounds_of("aborts.spanning")),
)
