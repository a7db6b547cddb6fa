"""A checker of list-append histories: which anomalies of Adya's hierarchy a run shows.

Every transaction appends values that are unique per key to lists, and reads whole lists. A list that was read tells the
order of the appends before it, so the dependencies between transactions follow from what was read:

- ww: one appended right after another; wr: one read what another appended last; rw: one read a list to which another
  appended next.

A cycle of ww edges is a G0, with wr edges a G1c, with exactly one rw edge a G-single, with more a G2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise


class Anomaly(StrEnum):
    G0 = "G0"
    G1A = "G1a"
    G1B = "G1b"
    G1C = "G1c"
    G_SINGLE = "G-single"
    G2 = "G2"
    INTERNAL = "internal"
    ORDER = "incompatible order"
    LOST = "lost append"


# What a level rules out; the inconsistencies that no order of transactions explains are ruled out by all of them.
_NEVER = frozenset({Anomaly.G0, Anomaly.G1A, Anomaly.G1B, Anomaly.G1C, Anomaly.INTERNAL, Anomaly.ORDER, Anomaly.LOST})
RULED_OUT: Mapping[str, frozenset[Anomaly]] = {
    "read committed": _NEVER,
    "repeatable read": _NEVER | {Anomaly.G_SINGLE},
    "serializable": _NEVER | {Anomaly.G_SINGLE, Anomaly.G2},
}


class Status(StrEnum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Append:
    key: int
    value: int


@dataclass(frozen=True, slots=True)
class Read:
    key: int
    values: tuple[int, ...]


Operation = Append | Read


@dataclass(frozen=True, slots=True)
class Transaction:
    name: str
    status: Status
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    anomaly: Anomaly
    detail: str


Graph = dict[str, set[str]]


@dataclass(slots=True)
class _Edges:
    ww: Graph = field(default_factory=dict)
    wr: Graph = field(default_factory=dict)
    rw: Graph = field(default_factory=dict)

    def add(self, graph: Graph, source: str, target: str) -> None:
        if source != target:
            graph.setdefault(source, set()).add(target)


def find_anomalies(history: Sequence[Transaction]) -> list[Finding]:
    """All that the history shows, of every kind."""
    writers = {(o.key, o.value): t for t in history for o in t.operations if isinstance(o, Append)}
    committed = [t for t in history if t.status is Status.COMMITTED]
    orders = _orders(committed)
    findings = [
        *(f for t in committed for f in _check_internal(t)),
        *(f for t in committed for f in _check_reads(t, orders, writers)),
        *_check_lost(committed, orders),
    ]
    edges = _edges(committed, orders, writers)
    return [*findings, *_cycles(edges)]


def _orders(committed: Iterable[Transaction]) -> dict[int, tuple[int, ...]]:
    """The order of the appends to each key: the longest list that anybody read."""
    orders: dict[int, tuple[int, ...]] = {}
    for transaction in committed:
        for operation in transaction.operations:
            if isinstance(operation, Read) and len(operation.values) > len(orders.get(operation.key, ())):
                orders[operation.key] = operation.values
    return orders


def _check_internal(transaction: Transaction) -> Iterator[Finding]:
    """A transaction sees its own appends, at the end of what it reads."""
    own: dict[int, list[int]] = {}
    for operation in transaction.operations:
        mine = own.setdefault(operation.key, [])
        if isinstance(operation, Append):
            mine.append(operation.value)
        elif mine and list(operation.values[-len(mine) :]) != mine:
            yield Finding(Anomaly.INTERNAL, f"{transaction.name} read {operation}, having appended {mine}")


def _check_reads(
    transaction: Transaction, orders: Mapping[int, tuple[int, ...]], writers: Mapping[tuple[int, int], Transaction]
) -> Iterator[Finding]:
    for read in _reads(transaction):
        order = orders.get(read.key, ())
        if order[: len(read.values)] != read.values:
            yield Finding(Anomaly.ORDER, f"{transaction.name} read {read}, but others read {order}")
        for value in read.values:
            writer = writers.get((read.key, value))
            if writer is None or writer.status is Status.ABORTED:
                yield Finding(Anomaly.G1A, f"{transaction.name} read {value} of key {read.key}, never committed")
        last = writers.get((read.key, read.values[-1])) if read.values else None
        if last is not None and last is not transaction and _appends(last, read.key)[-1] != read.values[-1]:
            yield Finding(Anomaly.G1B, f"{transaction.name} read {read}, halfway through {last.name}")


def _reads(transaction: Transaction) -> Iterator[Read]:
    return (o for o in transaction.operations if isinstance(o, Read))


def _appends(transaction: Transaction, key: int) -> list[int]:
    return [o.value for o in transaction.operations if isinstance(o, Append) and o.key == key]


def _check_lost(committed: Sequence[Transaction], orders: Mapping[int, tuple[int, ...]]) -> Iterator[Finding]:
    """The last transaction of a history reads every key: what was committed and is not there is lost."""
    final = {read.key: read.values for read in _reads(committed[-1])} if committed else {}
    for transaction in committed:
        for key in {o.key for o in transaction.operations} & set(final):
            missing = set(_appends(transaction, key)) - set(final[key])
            if missing:
                yield Finding(Anomaly.LOST, f"{transaction.name} appended {sorted(missing)} to key {key}")


def _edges(
    committed: Iterable[Transaction],
    orders: Mapping[int, tuple[int, ...]],
    writers: Mapping[tuple[int, int], Transaction],
) -> _Edges:
    edges = _Edges()
    named = {place: writer.name for place, writer in writers.items()}
    following: dict[tuple[int, int | None], str] = {}
    for key, order in orders.items():
        known = [value for value in order if (key, value) in named]
        if known:
            following[key, None] = named[key, known[0]]
        for before, after in pairwise(known):
            following[key, before] = named[key, after]
            edges.add(edges.ww, named[key, before], named[key, after])
    for transaction in committed:
        for read in _reads(transaction):
            # What the transaction appended itself says nothing about others.
            seen = [v for v in read.values if named.get((read.key, v)) != transaction.name]
            last = seen[-1] if seen else None
            if (read.key, last) in named and last is not None:
                edges.add(edges.wr, named[read.key, last], transaction.name)
            successor = following.get((read.key, last))
            if successor is not None:
                edges.add(edges.rw, transaction.name, successor)
    return edges


def _cycles(edges: _Edges) -> Iterator[Finding]:
    for component in components(edges.ww):
        yield Finding(Anomaly.G0, f"among {component}")
    dependencies = _union(edges.ww, edges.wr)
    for component in components(dependencies):
        if not any(set(component) <= set(c) for c in components(edges.ww)):
            yield Finding(Anomaly.G1C, f"among {component}")
    everything = _union(dependencies, edges.rw)
    for component in components(everything):
        inside = set(component)
        anti = [(a, b) for a in component for b in edges.rw.get(a, ()) if b in inside]
        single = next(((a, b) for a, b in anti if _reaches(dependencies, b, a)), None)
        if single is not None:
            yield Finding(Anomaly.G_SINGLE, f"{single[0]} did not see {single[1]}, which it depends on")
        elif anti:
            yield Finding(Anomaly.G2, f"among {component[:6]}")


def _union(*graphs: Graph) -> Graph:
    merged: Graph = {}
    for graph in graphs:
        for source, targets in graph.items():
            merged.setdefault(source, set()).update(targets)
    return merged


def _reaches(graph: Graph, source: str, target: str) -> bool:
    seen, stack = {source}, [source]
    while stack:
        node = stack.pop()
        if node == target:
            return True
        fresh = graph.get(node, set()) - seen
        seen |= fresh
        stack += fresh
    return False


def components(graph: Graph) -> list[list[str]]:
    """The strongly connected components of more than one node (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for root in sorted(graph):
        work: list[tuple[str, Iterator[str]]] = [] if root in index else [_visit(root, graph, index, low, stack)]
        while work:
            node, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    found.append(_pop_component(node, stack))
            elif target not in index:
                work.append(_visit(target, graph, index, low, stack))
            elif target in stack:
                low[node] = min(low[node], index[target])
    return [sorted(component) for component in found if len(component) > 1]


def _visit(
    node: str, graph: Graph, index: dict[str, int], low: dict[str, int], stack: list[str]
) -> tuple[str, Iterator[str]]:
    index[node] = low[node] = len(index)
    stack.append(node)
    return node, iter(sorted(graph.get(node, ())))


def _pop_component(root: str, stack: list[str]) -> list[str]:
    component: list[str] = []
    while not component or component[-1] != root:
        component.append(stack.pop())
    return component
