"""Which open transactions a drain waits for.

**Invariant:** a drain waits for the transactions that the fence behind it would make check their rows again: those that
have used an older version of what is changed. A transaction that uses one later, in a snapshot below the publication,
is a late writer like any other.

**Invariant:** a transaction that waits, directly or not, for a job, for a drain, for the right to change a schema, or
for the session that drains is left out: it cannot commit before they end, and the drain would wait for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from seachange.catalog.port import Catalog
from seachange.engine.locks.lock_graph import Party, find_edges, find_reached
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.mark_holders import Lease
from seachange.model.ids import DescriptorId, Epoch, KeyHash
from seachange.model.locking import LockMode, LockStrength, QueueMode
from seachange.storage.keys import change_hash


@dataclass(frozen=True, slots=True)
class HeldNode:
    """A node with open writers below a publication, or one that has not applied the publication yet: `is_behind`."""

    epoch: Epoch
    node: str
    leases: tuple[Lease, ...]
    is_behind: bool

    def without(self, versions: Mapping[DescriptorId, int], excused: Set[Party]) -> HeldNode | None:
        """Only what has used older versions than these, and is not excused."""
        if self.is_behind:
            return self
        leases = tuple(
            lease for lease in self.leases if lease.is_below(versions) and Party(self.epoch, lease.actor) not in excused
        )
        return replace(self, leases=leases) if leases else None


def find_excused(catalog: Catalog, epoch: EpochState, drainer: int) -> set[Party]:
    """The sessions that wait for `drainer`, a session of this node, or for any change."""
    queues = catalog.lock_queues()
    me = Party(epoch.epoch, drainer)
    waits = {Party(wait.epoch, wait.actor): (wait.strength, wait.key) for wait in queues.waits}
    local = epoch.locks.waits_for()
    for actor in local:
        if (wait := epoch.locks.wait_of(actor)) is not None:
            waits.setdefault(Party(epoch.epoch, actor), wait)
    changes = _coordination_keys(epoch) if any(isinstance(mode, LockStrength) for mode, _ in waits.values()) else set()
    ends = {me, *(party for party, wait in waits.items() if _is_for_change(wait, changes))}
    edges = find_edges(queues, local, epoch.epoch)
    return {me, *(party for party in waits if not ends.isdisjoint(find_reached(edges, party)))}


def _is_for_change(wait: tuple[LockMode, KeyHash], changes: Set[KeyHash]) -> bool:
    mode, key = wait
    return isinstance(mode, QueueMode) or key in changes


def _coordination_keys(epoch: EpochState) -> set[KeyHash]:
    schema = epoch.schemas.newest
    return {change_hash(id_) for id_ in (*schema.by_id, *schema.objects)}
