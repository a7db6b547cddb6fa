"""The process that is killed: `python -m tests.crash.workload`.

It takes commands as JSON lines and answers with JSON lines, each flushed before it goes on, so that what it said is
what it had been told. With arguments it runs the script once, which repeats a failure by hand:

    SEACHANGE_FAULT=commit.decided:2 python -m tests.crash.workload DATA [--catalog URL] [--seed N]
"""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import CommitId
from seachange.model.log import Committed
from seachange.runtime.faults import FAULTS, POINTS, arm_from
from tests.crash.script import ADDED_VALUE, Contents, Step, changed_row, contents_after, make_script, new_row
from tests.support.nodes import AnnouncingEntropy, Place, ShiftedClock, open_ported_node
from tests.support.patience import PATIENCE_S
from tests.support.tables import KEYED, KEYLESS, add_column, create_tables

ATTEMPTS_MAX = 200


def answer(**what: Any) -> None:
    # One write: a killed process leaves whole lines or none.
    os.write(sys.stdout.fileno(), json.dumps(what).encode() + b"\n")


class Workload:
    def __init__(self) -> None:
        self._node: Node | None = None
        self._last_commit_id: bytes = b""
        self._announces = False

    @property
    def node(self) -> Node:
        assert self._node is not None, "open first"
        return self._node

    # Commands.

    def open(
        self,
        data: str,
        catalog: str | None = None,
        name: str = "workload",
        expiry_ms: int = 10_000,
        fault: str | None = None,
        power_cut: str | None = None,
        clock_offset_s: int = 0,
        without_fence: tuple[str, ...] = (),
        announces: bool = False,
        token_prefix: str = "",
        counts: bool = False,
    ) -> None:
        if fault:
            arm_from(fault, FAULTS)
        elif counts:
            # Passages are counted only while something is armed.
            FAULTS.arm(next(iter(POINTS)), lambda: None, occurrence=0)
        if power_cut:
            os.environ["SEACHANGE_POWER_CUT"] = power_cut
        self._announces = announces
        self._node = open_ported_node(
            Place(Path(data), catalog),
            name,
            expiry_ms,
            ShiftedClock(clock_offset_s),
            AnnouncingEntropy(self._announce, token_prefix.encode()),
            frozenset(without_fence),
        )
        answer(opened=self.node.epoch.epoch)

    def arm(self, fault: str) -> None:
        arm_from(fault, FAULTS)
        answer(armed=fault)

    def run(self, seed: int, first: int, last: int) -> None:
        """Executes steps first..last-1 of the script; says so after each."""
        for number in range(first, last):
            self._until_accepted(partial(run_step, self.node, seed, number))
            answer(ack=number)
        answer(done=last)

    def insert(self, table: str, row: list[Any]) -> None:
        def work() -> None:
            with_tables(self.node, lambda txn: txn.writes.insert(txn.schema.table(None, table), [tuple(row)]))

        self._until_accepted(work)
        answer(ack=row[0], epoch=self.node.epoch.epoch)

    def stream(self, first: int, last: int, bulk_every: int = 0) -> None:
        """One commit per marker, into two tables that would show it twice; outcomes that got lost are looked up."""
        for marker in range(first, last):
            bulk = bool(bulk_every) and marker % bulk_every == 0
            self._until_known(partial(write_marker, self.node, marker, bulk))
            answer(ack=marker)
        answer(done=last)

    def mix(self, seed: int, worker: int, count: int, keys: int) -> None:
        """Random increments of shared rows, each with a marker: the sum of the rows is the number of markers."""
        chance = random.Random(seed)
        for number in range(count):
            marker = worker * 1_000_000 + number
            chosen = chance.sample(range(keys), 2)
            self._until_known(partial(increment, self.node, marker, chosen))
            answer(ack=marker)
            if chance.random() < 0.04:
                self._quietly(lambda: compact(self.node))
            if chance.random() < 0.04:
                self._quietly(lambda: self.node.collect_garbage(0))
        answer(done=count)

    def collect(self) -> None:
        answer(collected=self.node.collect_garbage(0))

    def count(self) -> None:
        answer(counts=FAULTS.counts())

    def close(self) -> None:
        self.node.close()
        answer(closed=True)

    # How a careful client goes on after an error.

    def _announce(self, token: bytes) -> None:
        self._last_commit_id = token
        if self._announces:
            answer(commit=token.hex())

    def _until_accepted(self, work: Callable[[], None]) -> None:
        """40001 means that nothing happened: the same again."""
        for _ in range(ATTEMPTS_MAX):
            try:
                return work()
            except errors.SerializationFailure as refusal:
                self._last_commit_id = b""
                answer(refused=refusal.sqlstate, kind=type(refusal).__name__, message=str(refusal))
        raise AssertionError("refused for ever")

    def _until_known(self, work: Callable[[], None]) -> None:
        """Any other error may hide a commit: its id says what became of it."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self._last_commit_id = b""
            try:
                return self._until_accepted(work)
            except errors.OperationalError as problem:
                answer(unknown=self._last_commit_id.hex(), sqlstate=problem.sqlstate, kind=type(problem).__name__)
                if self._last_commit_id and self._look_up(CommitId(self._last_commit_id)):
                    return None
                time.sleep(0.05)
        raise AssertionError("no outcome")

    def _look_up(self, commit_id: CommitId) -> bool:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return isinstance(self.node.parts.catalog.outcome(commit_id), Committed)
            except errors.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def _quietly(self, work: Callable[[], Any]) -> None:
        """Housekeeping may lose a race; it is tried again some other time."""
        try:
            work()
        except errors.OperationalError as problem:
            answer(skipped=type(problem).__name__)


# Steps against a database.


def with_tables(node: Node, work: Callable[[Transaction], None]) -> None:
    txn = node.begin()
    try:
        work(txn)
        txn.commit()
    finally:
        txn.rollback()


def run_step(node: Node, seed: int, number: int) -> None:
    step = make_script(seed)[number]
    before = contents_after(seed, number)
    match step.kind:
        case "create":
            with_tables(node, create_tables)
        case "compact":
            compact(node)
        case "collect":
            node.collect_garbage(0)
        case _:
            with_tables(node, lambda txn: write_step(txn, step, before))


def write_step(txn: Transaction, step: Step, before: Contents) -> None:
    for name in KEYED:
        table = txn.schema.table(None, name)
        match step.kind:
            case "insert":
                txn.writes.insert(table, [new_row(before, step, key) for key in step.keys])
            case "load":
                rows = [new_row(before, step, key) for key in step.keys]
                columns = {
                    c.name: list(values) for c, values in zip(table.columns, zip(*rows, strict=True), strict=True)
                }
                txn.writes.insert_arrow(table, pa.table(columns).to_reader())
            case "change":
                old = [row for key in step.keys if (row := txn.reads.get(table, (key,))) is not None]
                txn.writes.update(table, old, [changed_row(row, step) for row in old])
            case "delete":
                txn.writes.delete(
                    table, [row for key in step.keys if (row := txn.reads.get(table, (key,))) is not None]
                )
            case "add column":
                add_column(txn, name, f"added_{before.added_columns}", ADDED_VALUE)
            case _:
                raise AssertionError(step.kind)


def compact(node: Node) -> None:
    txn = node.begin()
    tables = txn.schema.tables()
    txn.rollback()
    for table in tables:
        node.compact(table)


def write_marker(node: Node, marker: int, bulk: bool) -> None:
    def work(txn: Transaction) -> None:
        for name in KEYLESS:
            table = txn.schema.table(None, name)
            if bulk:
                txn.writes.insert_arrow(table, pa.table({"marker": [marker]}).to_reader())
            else:
                txn.writes.insert(table, [(marker, None)])

    with_tables(node, work)


def increment(node: Node, marker: int, keys: list[int]) -> None:
    def work(txn: Transaction) -> None:
        for name in KEYED:
            table = txn.schema.table(None, name)
            old = [row for key in keys if (row := txn.reads.get(table, (key,))) is not None]
            txn.writes.update(table, old, [(key, f"code {key} {marker}", n + 1, f"{marker}") for key, _, n, _ in old])
        for name in KEYLESS:
            txn.writes.insert(txn.schema.table(None, name), [(marker, None)])

    with_tables(node, work)


# The two ways to start.


def serve() -> None:
    workload = Workload()
    answer(ready=True)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            getattr(workload, command.pop("do"))(**command)
        except errors.Error as problem:
            answer(error=problem.sqlstate, kind=type(problem).__name__, message=str(problem))


def run_once() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--catalog")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    workload = Workload()
    workload.open(options.data, options.catalog)
    workload.run(options.seed, 0, len(make_script(options.seed)))
    workload.close()


def main() -> None:
    if len(sys.argv) > 1:
        run_once()
    else:
        serve()


if __name__ == "__main__":
    main()
