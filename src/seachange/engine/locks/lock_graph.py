"""The waits-for graph between nodes, and the choice of deadlock victims; pure functions of values.

A node sees its own waits for keys that are locked only within it, and the waits in the catalog, which all nodes see.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from seachange.model.ids import Epoch
from seachange.model.locking import CONFLICTS, LockQueues, LockWait


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
    holders = [held for held in queues.held if held.key == wait.key]
    found = {Party(h.epoch, h.actor) for h in holders if h.strength in conflicting}
    if all(Party(h.epoch, h.actor) != me for h in holders):
        earlier = [w for w in queues.waits if w.key == wait.key and w.turn < wait.turn and w.strength in conflicting]
        found.update(Party(w.epoch, w.actor) for w in earlier)
    return found - {me}


def find_cycle(queues: LockQueues, local: Mapping[int, Set[int]], me: Party) -> tuple[Party, ...] | None:
    """A cycle of waits through `me`, beginning there; `local` are the waits within its node."""
    edges: Edges = {Party(w.epoch, w.actor): blockers(queues, w) for w in queues.waits}
    for actor, others in local.items():
        edges.setdefault(Party(me.epoch, actor), set()).update(Party(me.epoch, other) for other in others)
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


def find_victim(queues: LockQueues, cycle: tuple[Party, ...], me: Party) -> Party:
    """The last waiter among those that see the cycle: all of them, if every wait is in the catalog, else those of the
    node. Every node that looks chooses the same victim."""
    waits = {Party(w.epoch, w.actor): w for w in queues.waits}
    following = (*cycle[1:], cycle[0])
    is_seen_by_all = all(p in waits and n in blockers(queues, waits[p]) for p, n in zip(cycle, following, strict=True))
    candidates = [p for p in cycle if p in waits and (is_seen_by_all or p.epoch == me.epoch)]
    return max(candidates, key=lambda party: waits[party].turn, default=me)
