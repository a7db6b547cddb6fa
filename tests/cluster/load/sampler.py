"""Looks at who may commit with which version, again and again, while others change the schema.

**The rule:** as regards any one element, those who can still commit are in at most two states of it, one step apart.
Several versions may be in use where they differ in other things: a change that COMMIT publishes does not wait.
A writer below min_version cannot commit before its writes are rebased, and does not count; nor does the absence
of what was dropped.
"""

import threading
from collections import Counter
from collections.abc import Iterator

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.replica.mark_holders import leases_of
from seachange.model.ids import DescriptorId, Seq
from seachange.model.schema.descriptor import Table

ABSENT = "ABSENT"


class Sampler:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler")
        self.samples = 0
        self.problems: list[str] = []
        # How many versions of one descriptor were in use, and how many states of one element.
        self.versions: Counter[int] = Counter()
        self.states: Counter[int] = Counter()

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.03):
            try:
                self._look()
            except errors.Error as problem:
                # Its own epoch may have ended, on a machine as busy as this one.
                if problem.sqlstate not in ("40001", "72000"):
                    self.problems.append(f"the sampler met {problem.sqlstate}: {problem}")

    def _look(self) -> None:
        catalog, epoch = self._node.parts.catalog, self._node.epoch
        nodes = [node for node in catalog.nodes() if node.live]
        # Read afterwards: it only grows, so that no writer is counted that cannot commit.
        lowest = catalog.min_versions()
        epoch.catch_up()
        snapshots = {lease.snapshot for node in nodes for lease in leases_of(node)} | {n.write_mark for n in nodes}
        self.samples += 1
        for id_, tables in self._held(snapshots).items():
            in_use = {table.version: table for table in tables if table.version >= lowest.get(id_, 0)}
            if in_use:
                self._judge([in_use[version] for version in sorted(in_use)])

    def _held(self, snapshots: set[Seq]) -> dict[DescriptorId, list[Table]]:
        held: dict[DescriptorId, list[Table]] = {}
        for snapshot in snapshots:
            try:
                schema = self._node.epoch.schema(snapshot)
            except errors.SnapshotTooOld:
                continue
            for id_, table in schema.by_id.items():
                held.setdefault(id_, []).append(table)
        return held

    def _judge(self, tables: list[Table]) -> None:
        self.versions[len(tables)] += 1
        for element in states_of(tables[-1]):
            states = list(dict.fromkeys(states_of(table).get(element, ABSENT) for table in tables))
            self.states[len(states)] += 1
            if len(states) > 2:
                versions = [table.version for table in tables]
                self.problems.append(f"{tables[-1].name}: {element} is {states} in the versions {versions}")


def states_of(table: Table) -> dict[tuple[str, int], str]:
    return {(kind, id_): state for kind, id_, state in _states(table)}


def _states(table: Table) -> Iterator[tuple[str, int, str]]:
    coming = (table.next_primary,) if table.next_primary is not None else ()
    yield from (("column", column.id, column.state.value) for column in table.columns)
    yield from (("index", index.id, index.state.value) for index in (*table.indexes, *coming))
    yield from (("check", check.id, check.state.value) for check in table.checks)
    yield from (("foreign key", key.id, key.state.value) for key in table.foreign_keys)
