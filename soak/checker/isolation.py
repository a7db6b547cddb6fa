"""Isolation: whether a history of list appends and reads fits one order of commits and snapshots.

Every transaction is taken apart into events: the snapshot of each statement (READ COMMITTED) or one for all of them
(REPEATABLE READ, SERIALIZABLE), and the commit. At SERIALIZABLE the snapshot of a transaction that writes *is* its
commit. What was read tells how events follow each other:

- ww: a list has the appends of one transaction right after those of another;
- wr: a snapshot has what a commit appended last;
- rw: a snapshot does not have what a commit appended next;
- so: events of one transaction in their order;
- rt: one event had ended before another began.

A READ COMMITTED block that lost to another node may be resumed at COMMIT, from an append on that gave no rows: the
statements from there on then have a second snapshot, until the commit, at which what they read is the same and what
they append to was committed.

A cycle is a violation. By the edges that it takes it has a name of Adya's hierarchy: G0 (ww), G1c (wr too), G-single
(one rw), G2 (several), with "-realtime" if it is one only because of the clock. Which of them a level allows follows
from the events: a write skew of two REPEATABLE READ transactions is no cycle, since each has a snapshot before its
commit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from soak.checker.graph import Graph, find_components, find_cycle
from soak.checker.model import Append, Level, Outcome, Read, Statement, Transaction, Violation

WW, WR, RW, SO, RT = "ww", "wr", "rw", "so", "rt"
# The simplest cycles are searched first. At most this many edges of a large component are tried.
_TRIED_MAX = 400
_COMMIT = "commit"
_TIME = ""


@dataclass(frozen=True, slots=True, order=True)
class Event:
    transaction: str
    what: str


def check_isolation(history: Sequence[Transaction]) -> list[Violation]:
    """All violations, at most one cycle for each component of the order."""
    orders = find_orders(history)
    seen = {(key, value) for key, order in orders.items() for value in order}
    writers = {(a.key, a.value): t for t in history for a in t.appends}
    known = [t for t in history if t.outcome is Outcome.COMMITTED]
    # A transaction with an unknown outcome took place if its appends are visible.
    doubtful = [t for t in history if t.outcome is Outcome.UNKNOWN and any((a.key, a.value) in seen for a in t.appends)]
    happened = [*known, *doubtful]
    return [
        *(v for t in known for v in _check_own(t)),
        *(v for t in known for v in _check_reads(t, orders, writers)),
        *_check_lost(happened, orders),
        *_check_cycles(happened, orders, writers),
    ]


def find_orders(history: Iterable[Transaction]) -> dict[int, tuple[int, ...]]:
    """The order of the appends to each key: the longest list that a committed transaction read."""
    orders: dict[int, tuple[int, ...]] = {}
    for transaction in history:
        if transaction.outcome is Outcome.COMMITTED:
            for read in transaction.reads:
                if len(read.values) > len(orders.get(read.key, ())):
                    orders[read.key] = read.values
    return orders


def _check_own(transaction: Transaction) -> Iterator[Violation]:
    """A transaction sees its own appends, at the end of what it reads."""
    own: dict[int, list[int]] = {}
    for operation in transaction.operations:
        mine = own.setdefault(operation.key, [])
        if isinstance(operation, Append):
            mine.append(operation.value)
        elif mine and list(operation.values[-len(mine) :]) != mine:
            detail = f"{transaction.name} read {_shown(operation)} after it had appended {mine}"
            yield Violation("internal", detail, (transaction.name,))


def _check_reads(
    transaction: Transaction, orders: Mapping[int, tuple[int, ...]], writers: Mapping[tuple[int, int], Transaction]
) -> Iterator[Violation]:
    for read in transaction.reads:
        order = orders.get(read.key, ())
        if order[: len(read.values)] != read.values:
            yield _incompatible(transaction, read, order, writers)
        if len(set(read.values)) < len(read.values):
            yield Violation("duplicate append", f"{transaction.name} read {_shown(read)}", (transaction.name,))
        for value in read.values:
            writer = writers.get((read.key, value))
            if writer is None or writer.outcome is Outcome.ABORTED:
                origin = "was never appended" if writer is None else f"{writer.name} appended and did not commit"
                names = (transaction.name,) if writer is None else (transaction.name, writer.name)
                yield Violation("G1a", f"{transaction.name} read {value} of key {read.key}, which {origin}", names)
        last = writers.get((read.key, read.values[-1])) if read.values else None
        if last is not None and last is not transaction and _last_append(last, read.key) != read.values[-1]:
            detail = f"{transaction.name} read {_shown(read)}, which is halfway through {last.name}"
            yield Violation("G1b", detail, (transaction.name, last.name))


def _incompatible(
    transaction: Transaction, read: Read, order: Sequence[int], writers: Mapping[tuple[int, int], Transaction]
) -> Violation:
    place = next(i for i, (a, b) in enumerate(zip(read.values, order, strict=False)) if a != b)
    apart = {writers[read.key, v].name for v in (read.values[place], order[place]) if (read.key, v) in writers}
    detail = f"{transaction.name} read {_shown(read)}, and others read {list(order)}"
    return Violation("incompatible order", detail, (transaction.name, *sorted(apart)))


def _last_append(transaction: Transaction, key: int) -> int:
    return [a.value for a in transaction.appends if a.key == key][-1]


def _shown(read: Read) -> str:
    return f"{list(read.values)} of key {read.key}"


def _check_lost(happened: Sequence[Transaction], orders: Mapping[int, tuple[int, ...]]) -> Iterator[Violation]:
    """A committed append is in every list that is read later. An append in no list is in no order, and so in no
    cycle."""
    missing: dict[int, list[tuple[Transaction, int]]] = defaultdict(list)
    held = {key: set(order) for key, order in orders.items()}
    for transaction in happened:
        for append in transaction.appends:
            if transaction.ended is not None and append.value not in held.get(append.key, ()):
                missing[append.key].append((transaction, append.value))
    if not missing:
        return
    reads: dict[int, list[tuple[Transaction, Read]]] = defaultdict(list)
    for reader in sorted(happened, key=lambda reader: reader.began):
        for read in reader.reads:
            reads[read.key].append((reader, read))
    for key, lost in missing.items():
        for writer, value in lost:
            # At READ COMMITTED a later statement sees more, but a transaction that began later sees all.
            later = ((t, r) for t, r in reads[key] if writer.ended is not None and writer.ended < t.began)
            for reader, read in islice(later, 1):
                detail = f"{writer.name} appended {value} to key {key} and committed; {reader.name}, which began later,"
                yield Violation("lost append", f"{detail} read {list(read.values)}", (writer.name, reader.name))


# The order of events.


def _check_cycles(
    happened: Sequence[Transaction],
    orders: Mapping[int, tuple[int, ...]],
    writers: Mapping[tuple[int, int], Transaction],
) -> Iterator[Violation]:
    graph = _build_graph(happened, orders, writers)
    for component in find_components(graph, (WW, WR, RW, SO, RT)):
        part = graph.within(component)
        yield _describe(part, _simplest_cycle(part))


def _build_graph(
    happened: Sequence[Transaction],
    orders: Mapping[int, tuple[int, ...]],
    writers: Mapping[tuple[int, int], Transaction],
) -> Graph[Event]:
    graph: Graph[Event] = Graph()
    names = {t.name for t in happened}
    following = _order_appends(graph, orders, writers, names)
    for transaction in happened:
        _add_own_order(graph, transaction)
        for number, statement in enumerate(transaction.statements):
            snapshots = snapshots_of(transaction, number)
            for operation in statement.operations:
                if isinstance(operation, Append):
                    _add_append(graph, transaction, snapshots[-1], operation, orders, writers, names)
                    continue
                for snapshot in snapshots:
                    _add_read(graph, transaction, snapshot, operation, following, writers, names)
    _add_real_time(graph, happened)
    return graph


def snapshot_of(transaction: Transaction, number: int) -> Event:
    """The snapshot event of a statement."""
    if transaction.level is Level.READ_COMMITTED:
        return Event(transaction.name, f"statement {number + 1}")
    if transaction.level is Level.SERIALIZABLE and transaction.appends:
        return commit_of(transaction.name)
    return Event(transaction.name, "snapshot")


def snapshots_of(transaction: Transaction, number: int) -> tuple[Event, ...]:
    """The snapshot events of a statement: a second one if the block was resumed."""
    resumed = _resumed_from(transaction)
    again = () if resumed is None or number < resumed else (Event(transaction.name, f"statement {number + 1} again"),)
    return (snapshot_of(transaction, number), *again)


def _resumed_from(transaction: Transaction) -> int | None:
    """The first statement of a block that may have been run again at COMMIT: it appended, and returned no rows."""
    if transaction.level is not Level.READ_COMMITTED:
        return None
    numbered = enumerate(transaction.statements)
    return next((n for n, s in numbered if s.operations and all(isinstance(o, Append) for o in s.operations)), None)


def commit_of(name: str) -> Event:
    return Event(name, _COMMIT)


def _order_appends(
    graph: Graph[Event],
    orders: Mapping[int, tuple[int, ...]],
    writers: Mapping[tuple[int, int], Transaction],
    names: set[str],
) -> dict[tuple[int, int | None], str]:
    """The transaction that appended next after a value, or first to a key."""
    following: dict[tuple[int, int | None], str] = {}
    for key, order in orders.items():
        known = [v for v in order if (key, v) in writers and writers[key, v].name in names]
        for before, after in pairwise([None, *known]):
            assert after is not None
            following[key, before] = writers[key, after].name
            if before is not None:
                graph.add(commit_of(writers[key, before].name), commit_of(following[key, before]), WW)
    return following


def _add_own_order(graph: Graph[Event], transaction: Transaction) -> None:
    numbers = range(len(transaction.statements))
    snapshots = [snapshots_of(transaction, number) for number in numbers]
    for earlier, later in pairwise(snapshots):
        graph.add(earlier[0], later[0], SO)
        graph.add(earlier[-1], later[-1], SO)
    for first, *again in snapshots:
        for event in again:
            graph.add(first, event, SO)
    if transaction.appends and snapshots:
        graph.add(snapshots[-1][-1], commit_of(transaction.name), SO)


def _add_read(
    graph: Graph[Event],
    transaction: Transaction,
    snapshot: Event,
    read: Read,
    following: Mapping[tuple[int, int | None], str],
    writers: Mapping[tuple[int, int], Transaction],
    names: set[str],
) -> None:
    places = ((read.key, v) for v in reversed(read.values))
    last = next((p[1] for p in places if p in writers and _is_other(writers[p], transaction, names)), None)
    if last is not None:
        graph.add(commit_of(writers[read.key, last].name), snapshot, WR)
    successor = following.get((read.key, last))
    if successor is not None and successor != transaction.name:
        graph.add(snapshot, commit_of(successor), RW)


def _add_append(
    graph: Graph[Event],
    transaction: Transaction,
    snapshot: Event,
    append: Append,
    orders: Mapping[int, tuple[int, ...]],
    writers: Mapping[tuple[int, int], Transaction],
    names: set[str],
) -> None:
    """The previous append was committed before the snapshot of this one: otherwise an update would be lost."""
    order = orders.get(append.key, ())
    place = order.index(append.value) if append.value in order else 0
    places = ((append.key, v) for v in reversed(order[:place]))
    last = next((writers[p] for p in places if p in writers and _is_other(writers[p], transaction, names)), None)
    if last is not None:
        graph.add(commit_of(last.name), snapshot, WW)


def _is_other(writer: Transaction, transaction: Transaction, names: set[str]) -> bool:
    return writer.name in names and writer.name != transaction.name


def _add_real_time(graph: Graph[Event], happened: Sequence[Transaction]) -> None:
    """Events that ended before others began, as a chain of points in time: the number of edges is linear in the
    events."""
    spans = [span for transaction in happened for span in _spans(transaction)]
    moments = sorted({ended for _, _, ended in spans if ended is not None})
    for earlier, later in pairwise(moments):
        graph.add(_moment(earlier), _moment(later), RT)
    for event, began, ended in spans:
        if ended is not None:
            graph.add(event, _moment(ended), RT)
        place = bisect_left(moments, began)
        if place:
            graph.add(_moment(moments[place - 1]), event, RT)


def _moment(time: int) -> Event:
    return Event(_TIME, str(time))


def _spans(transaction: Transaction) -> Iterator[tuple[Event, int, int | None]]:
    """The time bounds of the events of a transaction."""
    if transaction.appends:
        yield commit_of(transaction.name), transaction.commit_began, transaction.ended
    if transaction.level is Level.READ_COMMITTED:
        for number, statement in enumerate(transaction.statements):
            snapshot, *again = snapshots_of(transaction, number)
            yield snapshot, statement.began, statement.ended
            yield from ((event, statement.began, transaction.ended) for event in again)
    elif transaction.statements and snapshot_of(transaction, 0) != commit_of(transaction.name):
        first: Statement = transaction.statements[0]
        yield snapshot_of(transaction, 0), transaction.began, first.ended


# Naming a cycle.


def _simplest_cycle(graph: Graph[Event]) -> list[Event]:
    """The simplest cycle of a component: without real-time edges if there is one, and with as few kinds of edges as
    possible."""
    for clock in ((), (RT,)):
        for label, labels in ((WW, (WW, SO, *clock)), (WR, (WW, WR, SO, *clock))):
            cycle = _find_cycle_among(graph, label, labels, labels)
            if cycle is not None:
                return cycle
        for back in ((WW, WR, SO, *clock), (WW, WR, RW, SO, *clock)):
            cycle = _find_cycle_among(graph, RW, back, (WW, WR, RW, SO, *clock))
            if cycle is not None:
                return cycle
    raise AssertionError("a component without a cycle")


def _find_cycle_among(
    graph: Graph[Event], label: str, back: Collection[str], labels: Collection[str]
) -> list[Event] | None:
    for component in find_components(graph, labels):
        part = graph.within(component)
        edges = [(s, t) for s, targets in part.edges.items() for t, found in targets.items() if label in found]
        cycle = find_cycle(part, sorted(edges)[:_TRIED_MAX], back)
        if cycle is not None:
            return cycle
    return None


_RANK = (WW, SO, WR, RW, RT)


def _describe(graph: Graph[Event], cycle: list[Event]) -> Violation:
    around = list(pairwise([*cycle, cycle[0]]))
    labels = [min(graph.edges[source][target], key=_RANK.index) for source, target in around]
    count = labels.count(RW)
    name = "G0" if not count and WR not in labels else "G1c" if not count else "G-single" if count == 1 else "G2"
    if RT in labels:
        name += "-realtime"
    edges = zip(around, labels, strict=True)
    steps = [f"{_event_text(source)} {_EDGE_TEXT[label]} {_event_text(target)}" for (source, target), label in edges]
    names = tuple(dict.fromkeys(event.transaction for event in cycle if event.transaction != _TIME))
    return Violation(name, "; ".join(_without_moments(steps, around, labels)), names)


def _without_moments(steps: list[str], around: list[tuple[Event, Event]], labels: list[str]) -> Iterator[str]:
    """Merges consecutive real-time steps into one."""
    first = next((i for i, (source, _) in enumerate(around) if source.transaction != _TIME), 0)
    origin = ""
    for i in [*range(first, len(around)), *range(first)]:
        source, target = around[i]
        if labels[i] != RT:
            yield steps[i]
        elif source.transaction != _TIME:
            origin = _event_text(source)
        if labels[i] == RT and target.transaction != _TIME:
            yield f"{origin} {_EDGE_TEXT[RT]} {_event_text(target)}"


_EDGE_TEXT = {
    WW: "was appended to by",
    WR: "was read by",
    RW: "did not see",
    SO: "came before",
    RT: "had ended before",
}


def _event_text(event: Event) -> str:
    return f"{event.what} of {event.transaction}"
