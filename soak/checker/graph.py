"""Directed graphs with labelled edges: strongly connected components, and short cycles within one."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

N = TypeVar("N", bound=Hashable)


@dataclass(slots=True)
class Graph(Generic[N]):
    """At most one edge of each label between two nodes."""

    edges: dict[N, dict[N, set[str]]] = field(default_factory=dict)

    def add(self, source: N, target: N, label: str) -> None:
        if source != target:
            self.edges.setdefault(source, {}).setdefault(target, set()).add(label)

    def successors(self, node: N, labels: Collection[str]) -> Iterator[N]:
        return (target for target, found in self.edges.get(node, {}).items() if not found.isdisjoint(labels))

    def within(self, nodes: Collection[N]) -> Graph[N]:
        kept = set(nodes)
        edges = {
            source: {target: labels for target, labels in self.edges.get(source, {}).items() if target in kept}
            for source in kept
        }
        return Graph(edges)


def find_components(graph: Graph[N], labels: Collection[str]) -> list[list[N]]:
    """The strongly connected components of more than one node (Tarjan, without recursion)."""
    index: dict[N, int] = {}
    low: dict[N, int] = {}
    stack: list[N] = []
    stacked: set[N] = set()
    found: list[list[N]] = []

    def visit(node: N) -> tuple[N, Iterator[N]]:
        index[node] = low[node] = len(index)
        stack.append(node)
        stacked.add(node)
        return node, graph.successors(node, labels)

    for root in graph.edges:
        work = [] if root in index else [visit(root)]
        while work:
            node, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    found.append(_pop_component(node, stack, stacked))
            elif target not in index:
                work.append(visit(target))
            elif target in stacked:
                low[node] = min(low[node], index[target])
    return [component for component in found if len(component) > 1]


def _pop_component(root: N, stack: list[N], stacked: set[N]) -> list[N]:
    component: list[N] = []
    while not component or component[-1] != root:
        component.append(stack.pop())
        stacked.discard(component[-1])
    return component


def find_path(graph: Graph[N], source: N, target: N, labels: Collection[str]) -> list[N] | None:
    """A shortest path, with both ends."""
    before: dict[N, N] = {}
    queue = deque([source])
    while queue:
        node = queue.popleft()
        if node == target:
            return _path_to(node, source, before)
        for following in graph.successors(node, labels):
            if following not in before and following != source:
                before[following] = node
                queue.append(following)
    return None


def _path_to(node: N, source: N, before: dict[N, N]) -> list[N]:
    path = [node]
    while path[-1] != source:
        path.append(before[path[-1]])
    return path[::-1]


def find_cycle(graph: Graph[N], through: Iterable[tuple[N, N]], labels: Collection[str]) -> list[N] | None:
    """The shortest cycle that takes one of the edges `through`, and goes back by edges with these labels."""
    best: list[N] | None = None
    for source, target in through:
        path = find_path(graph, target, source, labels)
        if path is not None and (best is None or len(path) < len(best)):
            best = path
    return best
