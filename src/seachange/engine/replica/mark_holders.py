"""The open transactions that hold a node's write mark, as published with its heartbeat."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from itertools import islice

from seachange.engine.context.statement_statistics import StatementTotals
from seachange.engine.replica.registry import Marks, OpenWriter
from seachange.model.ids import DescriptorId, Seq
from seachange.model.log import NodeRecord
from seachange.model.sessions import SessionActivity, SessionRecord
from seachange.runtime.process import name_process

# A transaction that has used more tables than this is published as one that may have used any.
_USED_MAX = 100
# The length to which statements that change tables are published, and those of sessions.
_TEXT_MAX, _SHOWN_MAX = 500, 200
# How many sessions are published.
_SESSIONS_MAX = 100
# How many statements are published.
_STATEMENTS_MAX = 20


@dataclass(frozen=True, slots=True)
class Lease:
    """An open transaction that may write, with the schema as of `snapshot`. `used`: the versions of the tables that it
    has used, None if they are not known; `actor`: the number of its session; `changed`: the statements by which it has
    changed tables, the last for each."""

    session: str
    snapshot: Seq
    since_us: int
    actor: int = 0
    used: Mapping[DescriptorId, int] | None = None
    changed: Mapping[DescriptorId, str] = field(default_factory=dict)

    def __str__(self) -> str:
        since = dt.datetime.fromtimestamp(self.since_us / 1_000_000, dt.UTC)
        return f"{self.session}, in a transaction since {since:%H:%M:%S} UTC as of {self.snapshot}"

    def is_below(self, versions: Mapping[DescriptorId, int]) -> bool:
        """Whether it has used one of these descriptors in an older version: a fence would make it check its rows
        again."""
        return self.used is None or any(self.used.get(id_, version) < version for id_, version in versions.items())


@dataclass(frozen=True, slots=True)
class NodeLeases:
    """The leases of all open writers of a node when it had applied the log up to `head`."""

    head: Seq
    leases: tuple[Lease, ...]


def node_leases(marks: Marks) -> NodeLeases:
    return NodeLeases(marks.head, tuple(_lease(snapshot, writer) for snapshot, writer in marks.holders))


def _lease(snapshot: Seq, writer: OpenWriter) -> Lease:
    # A copy, since the transaction goes on.
    used = None if writer.used is None or len(writer.used) > _USED_MAX else dict(writer.used)
    changed = {id_: text[:_TEXT_MAX] for id_, text in islice(dict(writer.changed).items(), _USED_MAX)}
    return Lease(writer.name, snapshot, writer.since_us, writer.actor, used, changed)


def encode_holders(
    marks: Marks, sessions: Iterable[SessionRecord] = (), statements: Iterable[StatementTotals] = ()
) -> str:
    known = node_leases(marks)
    leases = [[lease.session, lease.snapshot, lease.since_us, lease.actor, lease.used] for lease in known.leases]
    published = {"head": known.head, "leases": leases, "process": name_process()}
    # Apart from the leases, in which earlier releases do not expect it.
    changed = [[place, lease.changed] for place, lease in enumerate(known.leases) if lease.changed]
    if changed:
        published["changed"] = changed
    # Those that run something, or have a transaction open, before idle ones.
    shown = sorted(sessions, key=lambda session: session.state is SessionActivity.IDLE)[:_SESSIONS_MAX]
    if shown:
        published["sessions"] = [astuple(replace(each, statement=each.statement[:_SHOWN_MAX])) for each in shown]
    costly = sorted(statements, key=lambda each: -each.total_us)[:_STATEMENTS_MAX]
    if costly:
        published["statements"] = [astuple(replace(each, statement=each.statement[:_TEXT_MAX])) for each in costly]
    return json.dumps(published)


def read_statements(node: NodeRecord) -> tuple[StatementTotals, ...]:
    """Those that have taken most time on another node, as of its last heartbeat; earlier releases publish none."""
    published = json.loads(node.holders)
    listed = published.get("statements", ()) if isinstance(published, dict) else ()
    return tuple(StatementTotals(*values) for values in listed)


def read_sessions(node: NodeRecord) -> tuple[SessionRecord, ...]:
    """The sessions of another node, as of its last heartbeat; earlier releases publish none."""
    published = json.loads(node.holders)
    listed = published.get("sessions", ()) if isinstance(published, dict) else ()
    records = (SessionRecord(*values) for values in listed)
    return tuple(replace(record, state=SessionActivity(record.state)) for record in records)


def read_leases(node: NodeRecord) -> NodeLeases:
    published = json.loads(node.holders)
    if isinstance(published, list):
        # From a node of an earlier release, or one that has just been registered: what was used is not known.
        published = {"head": 0, "leases": [[*lease, 0, None] for lease in published]}
    leases = list(map(_decode, published["leases"]))
    for place, changed in published.get("changed", ()):
        leases[place] = replace(leases[place], changed={DescriptorId(int(id_)): text for id_, text in changed.items()})
    return NodeLeases(Seq(published["head"]), tuple(leases))


def _decode(lease: list[object]) -> Lease:
    session, snapshot, since_us, actor, used = lease
    assert isinstance(snapshot, int) and isinstance(since_us, int) and isinstance(actor, int)  # noqa: PT018
    versions = {DescriptorId(int(id_)): version for id_, version in used.items()} if isinstance(used, dict) else None
    return Lease(str(session), Seq(snapshot), since_us, actor, versions)


def leases_of(node: NodeRecord) -> tuple[Lease, ...]:
    return read_leases(node).leases
