"""The sessions of all nodes, and what one session may ask of another.

Those of this node are shown as they are now, those of other nodes as of their last heartbeat.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from seachange import errors
from seachange.engine.locks.lock_details import mode_name
from seachange.engine.locks.lock_graph import Edges, Party, find_edges
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.mark_holders import read_sessions
from seachange.engine.replica.node_parts import NodeParts
from seachange.model.ids import Epoch, KeyHash
from seachange.model.locking import LockMode
from seachange.model.schema.actor import Actor, actor_of
from seachange.model.sessions import AskedSession, SessionRecord, SessionRequest, ShownSession

_ACTIONS = {SessionRequest.CANCEL: "cancel query", SessionRequest.END: "terminate process"}


class Waits(NamedTuple):
    """Sessions that wait, with the lock, and for whom; those of other nodes as far as they are published."""

    locks: dict[Party, tuple[LockMode, KeyHash]]
    edges: Edges


def find_waits(parts: NodeParts, epoch: EpochState) -> Waits:
    queues, local = parts.catalog.lock_queues(), epoch.locks.waits_for()
    locks: dict[Party, tuple[LockMode, KeyHash]] = {
        Party(wait.epoch, wait.actor): (wait.strength, wait.key) for wait in queues.waits
    }
    for actor in local:
        # The lock itself, and not the key under which the wait is published.
        if (wait := epoch.locks.wait_of(actor)) is not None:
            locks[Party(epoch.epoch, actor)] = wait
    return Waits(locks, find_edges(queues, local, epoch.epoch))


@dataclass(frozen=True, slots=True)
class Sessions:
    parts: NodeParts
    epoch: EpochState
    actor: Actor

    def shown(self) -> Iterator[ShownSession]:
        waits = find_waits(self.parts, self.epoch)
        for node, epoch, record in self._found():
            party = Party(epoch, record.number)
            mode, key = waits.locks.get(party, (None, None))
            yield ShownSession(
                node,
                epoch,
                record,
                self._sees(record),
                mode_name(mode) if mode is not None else None,
                self.epoch.describe_key(key) if key is not None else None,
                _numbers(waits.edges.get(party, ())),
            )

    def blockers(self, number: int) -> tuple[int, ...]:
        edges = find_waits(self.parts, self.epoch).edges
        return _numbers({other for party, others in edges.items() if party.actor == number for other in others})

    def ask(self, number: int, request: SessionRequest) -> bool:
        """Whether there is such a session; 42501 unless the role may do that to it."""
        for _, epoch, record in self._found():
            if record.number == number:
                self._check_may(record, request)
                asked = AskedSession(number, request)
                if epoch != self.epoch.epoch:
                    return self.parts.catalog.ask_session(epoch, asked)
                self.parts.sessions.answer([asked])
                return True
        return False

    def _found(self) -> Iterator[tuple[str, Epoch, SessionRecord]]:
        for node in self.parts.catalog.nodes():
            if node.live:
                own = node.epoch == self.epoch.epoch
                for record in self.parts.sessions.records() if own else read_sessions(node):
                    yield node.name, node.epoch, record

    def _sees(self, record: SessionRecord) -> bool:
        return self.actor.superuser or record.role in self.actor.roles

    def _check_may(self, record: SessionRecord, request: SessionRequest) -> None:
        if self.actor.superuser:
            return
        if actor_of(record.role, self.epoch.schemas.newest.roles).superuser:
            raise errors.SessionNotYours(_ACTIONS[request], "Only superusers may do that to sessions of superusers.")
        if record.role not in self.actor.roles:
            raise errors.SessionNotYours(_ACTIONS[request], f'Only members of role "{record.role}" may do that.')


def _numbers(parties: Collection[Party]) -> tuple[int, ...]:
    return tuple(sorted(party.actor for party in parties))
