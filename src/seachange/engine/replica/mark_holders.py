"""The open transactions that hold a node's write mark, as published with its heartbeat."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass

from seachange.engine.replica.registry import Marks
from seachange.model.ids import Seq
from seachange.model.log import NodeRecord


@dataclass(frozen=True, slots=True)
class Lease:
    """An open transaction that may write, with the schema as of `snapshot`."""

    session: str
    snapshot: Seq
    since_us: int

    def __str__(self) -> str:
        since = dt.datetime.fromtimestamp(self.since_us / 1_000_000, dt.UTC)
        return f"{self.session}, in a transaction since {since:%H:%M:%S} UTC as of {self.snapshot}"


def encode_holders(marks: Marks) -> str:
    return json.dumps([[writer.name, snapshot, writer.since_us] for snapshot, writer in marks.holders])


def leases_of(node: NodeRecord) -> tuple[Lease, ...]:
    return tuple(Lease(name, Seq(snapshot), since_us) for name, snapshot, since_us in json.loads(node.holders))
