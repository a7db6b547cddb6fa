"""The waits-for graph between nodes, and the choice of deadlock victims; pure functions of values.

A node sees its own waits for keys that are locked only within it, and the waits in the catalog, which all nodes see.
Waits for rows, tables, advisory locks, coordination keys, jobs and drains are edges of one graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from seachange.model.ids import Epoch
from seachange.model.locking import CONFLICTS, WAITED_FOR, LockQueues, LockWait, QueueMode


class Party(NamedTuple):
    """A session, in the whole cluster."""

    epoch: Epoch
    actor: int


Edges = dict[Party, set[Party]]


def find_wait(queues: LockQueues, party: Party) -> LockWait | None:
    return next((w for w in queues.waits if (w.epoch, w.actor) == party), None)


def blockers(queues: LockQueues, wait: LockWait) -> set[Party]:
    """Conflicting holders and, unless it holds the lock in some mode already, earlier waiters."""
    me = Party(wait.epoch, wait.actor)
    conflicting = CONFLICTS[wait.strength]
    found = holders_against(queues, wait)
    if all(Party(h.epoch, h.actor) != me for h in queues.held if h.key == wait.key):
        earlier = [w for w in queues.waits if w.key == wait.key and w.turn < wait.turn and w.strength in conflicting]
        found.update(Party(w.epoch, w.actor) for w in earlier)
    return found - {me}


def holders_against(queues: LockQueues, wait: LockWait) -> set[Party]:
    waited_for = WAITED_FOR[wait.strength]
    held = [h for h in queues.held if h.key == wait.key and h.strength in waited_for]
    return {Party(h.epoch, h.actor) for h in held} - {Party(wait.epoch, wait.actor)}


def find_cycle(queues: LockQueues, local: Mapping[int, Set[int]], me: Party) -> tuple[Party, ...] | None:
    """A cycle of waits through `me`, beginning there; `local` are the waits within its node."""
    edges = find_edges(queues, local, me.epoch)
    path, seen = [me], {me}
    untried = [iter(sorted(edges.get(me, ())))]
    while untried:
        following = next(untried[-1], None)
        if following == me:
            return tuple(path)
        if following is None:
            untried.pop()
            path.pop()
        elif following not in seen:
            seen.add(following)
            path.append(following)
            untried.append(iter(sorted(edges.get(following, ()))))
    return None


def find_edges(queues: LockQueues, local: Mapping[int, Set[int]], here: Epoch) -> Edges:
    edges: Edges = {Party(w.epoch, w.actor): blockers(queues, w) for w in queues.waits}
    for actor, others in local.items():
        edges.setdefault(Party(here, actor), set()).update(Party(here, other) for other in others)
    return edges


def find_reached(edges: Edges, start: Party) -> set[Party]:
    """A session, and those that it waits for, directly or not."""
    reached, untried = {start}, [start]
    while untried:
        found = edges.get(untried.pop(), set()) - reached
        reached |= found
        untried += found
    return reached


def find_overtaker(queues: LockQueues, cycle: tuple[Party, ...], moved: Set[Party]) -> LockWait | None:
    """A wait in the cycle for a party that does not hold the lock, but is ahead in its queue: served first, it ends the
    cycle without a victim. `moved` have been served first before."""
    following = (*cycle[1:], cycle[0])
    waits = [(find_wait(queues, party), blocker) for party, blocker in zip(cycle, following, strict=True)]
    found = [
        wait
        for wait, blocker in waits
        if wait is not None
        and blocker in blockers(queues, wait) - holders_against(queues, wait)
        and Party(wait.epoch, wait.actor) not in moved
    ]
    return max(found, key=lambda wait: wait.turn, default=None)


def find_victim(queues: LockQueues, cycle: tuple[Party, ...]) -> Party | None:
    """The last to wait, among those that wait for a job if there are any: the job would be in their way again. All who
    look choose the same: as long as a wait of the cycle is not in the catalog, which long waits inside a node come to
    be, there is none."""
    waits = {Party(w.epoch, w.actor): w for w in queues.waits}
    following = (*cycle[1:], cycle[0])
    if not all(p in waits and n in blockers(queues, waits[p]) for p, n in zip(cycle, following, strict=True)):
        return None
    behind_jobs = [party for party in cycle if waits[party].strength is QueueMode.JOB]
    return max(behind_jobs or cycle, key=lambda party: waits[party].turn)
