"""The marks: whatever the order of events, neither is above the snapshot of an open or future transaction of its kind,
and a job that waits for writers is notified as soon as none is left below."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import pytest

from seachange.engine.replica.mark_holders import encode_holders, node_leases, read_leases
from seachange.engine.replica.registry import HOLDERS_MAX, OpenWriter, Registry
from seachange.model.ids import DescriptorId, Epoch, Seq
from seachange.model.log import NodeRecord
from seachange.model.pace import Pace

# A transaction registers, reads the head, moves to it, and ends; meanwhile commits arrive and marks are published.
TRANSACTION = ("enter", "read", "move", "leave")
ADVANCE = ("commit", "apply", "commit", "apply")
HEART = ("mark", "mark")
NODE = NodeRecord(Epoch(1), "one", True, Seq(1), 0, 1_000, 1, Seq(1), "[]", 1, Pace())


def merges(*sequences: tuple[str, ...]) -> Iterator[list[str]]:
    """All interleavings, each event tagged with its sequence."""
    if len(sequences) == 1:
        yield [f"0 {event}" for event in sequences[0]]
        return
    for rest in merges(*sequences[1:]):
        moved = [f"{int(e[0]) + 1}{e[1:]}" for e in rest]
        length = len(sequences[0]) + len(moved)
        for places in combinations(range(length), len(sequences[0])):
            own, others = iter(sequences[0]), iter(moved)
            yield [f"0 {next(own)}" if place in places else next(others) for place in range(length)]


class World:
    """The log's head, what the node has applied, and the snapshots of its transactions."""

    def __init__(self) -> None:
        self.head = self.applied = Seq(10)
        self.calls = 0
        self.registry = Registry(self.head, self.pass_)
        self.tickets: dict[str, int] = {}
        self.snapshots: dict[str, Seq] = {}
        self.marks: list[Seq] = []
        self.write_marks: list[Seq] = []
        self.writers: set[str] = set()
        self.published = Seq(0)

    def pass_(self) -> None:
        self.calls += 1

    def run(self, tagged: str) -> None:
        who, event = tagged.split()
        match event:
            case "enter":
                self.tickets[who] = self.registry.enter()
            case "join":
                self.tickets[who] = self.registry.enter(OpenWriter(who))
                self.writers.add(who)
            case "read":
                # A transaction reads at what its node has applied after it looked.
                self.applied = self.head
                self.registry.advance(self.applied)
                self.snapshots[who] = self.applied
            case "move":
                self.registry.move(self.tickets[who], self.snapshots[who])
            case "leave":
                self.registry.leave(self.tickets[who])
                self.snapshots.pop(who)
            case "commit":
                self.head = Seq(self.head + 1)
            case "apply":
                self.applied = self.head
                self.registry.advance(self.applied)
            case "publish":
                self.head = self.published = Seq(self.head + 1)
            case "hear":
                self.applied = self.head
                self.registry.note_publication(self.published)
                self.registry.advance(self.applied)
            case _:
                marks = self.registry.marks()
                self.marks.append(marks.low)
                self.write_marks.append(marks.write)
                self.calls = 0

    def check(self, history: list[str]) -> None:
        mark = self.marks[-1] if self.marks else Seq(0)
        assert self.marks == sorted(self.marks), history
        assert all(mark <= snapshot for snapshot in self.snapshots.values()), history
        write_mark = self.write_marks[-1] if self.write_marks else Seq(0)
        assert self.write_marks == sorted(self.write_marks), history
        assert all(write_mark <= s for who, s in self.snapshots.items() if who in self.writers), history
        assert mark <= write_mark <= self.applied, history
        # One that begins now would read at least what is applied.
        assert mark <= self.applied, history


def test_one_transaction_in_every_interleaving():
    count = 0
    for history in merges(TRANSACTION, ADVANCE, HEART):
        world = World()
        for event in history:
            world.run(event)
            world.check(history)
        count += 1
    assert count == 3150


WRITER = ("join", "read", "move", "leave")


def test_a_writer_and_a_publication_in_every_interleaving():
    """Once the publication is applied and no writer is below it, a heartbeat was asked for, or has gone out."""
    for history in merges(WRITER, ("publish", "hear"), HEART):
        world = World()
        for event in history:
            world.run(event)
            world.check(history)
        told = world.calls > 0 or (world.write_marks and world.write_marks[-1] >= world.published)
        assert told, history


@pytest.mark.parametrize("may_write", [False, True])
def test_readers_hold_the_low_mark_only(may_write: bool):
    calls: list[int] = []
    registry = Registry(Seq(10), lambda: calls.append(1))
    ticket = registry.enter(OpenWriter("one", 5) if may_write else None)
    registry.move(ticket, Seq(10))
    registry.note_publication(Seq(11))
    registry.advance(Seq(12))
    # An applied publication is reported, even while writers are below it.
    assert calls == [1]
    marks = registry.marks()
    assert (marks.low, marks.write) == (10, 10 if may_write else 12)
    assert marks.holders == (((Seq(10), OpenWriter("one", 5)),) if may_write else ())
    registry.leave(ticket)
    assert len(calls) == (2 if may_write else 1)
    assert (registry.marks().low, registry.marks().write) == (12, 12)


def test_each_writer_below_the_publication_is_reported_when_it_ends_or_moves_on():
    calls: list[int] = []
    registry = Registry(Seq(10), lambda: calls.append(1))
    ends, moves, stays = (registry.enter(OpenWriter(name)) for name in "ems")
    for ticket in (ends, moves, stays):
        registry.move(ticket, Seq(10))
    registry.note_publication(Seq(11))
    registry.advance(Seq(12))
    calls.clear()
    registry.leave(ends)
    registry.move(moves, Seq(12))
    assert len(calls) == 2
    # Later ones are above it, although one that stays holds the mark.
    later = registry.enter(OpenWriter("later"))
    registry.move(later, Seq(12))
    registry.leave(later)
    assert len(calls) == 2


def test_leases_cover_all_writers():
    registry = Registry(Seq(10))
    for number in range(HOLDERS_MAX + 2):
        registry.move(registry.enter(OpenWriter(f"session {number}", 0, number, {DescriptorId(7): number})), Seq(10))
    node = replace(NODE, holders=encode_holders(registry.marks()))
    known = read_leases(node)
    assert known == node_leases(registry.marks())
    assert known.head == 10
    versions = {DescriptorId(7): 5}
    assert [lease.is_below(versions) for lease in known.leases] == [*[True] * 5, *[False] * (HOLDERS_MAX - 5), True]
    assert not any(lease.is_below({DescriptorId(8): 5}) for lease in known.leases[:-1])
    assert known.leases[-1].session == "2 others"


def test_leases_of_an_earlier_release_may_have_used_anything():
    known = read_leases(replace(NODE, holders='[["session 1", 5, 0]]'))
    assert known.head == 0
    assert known.leases[0].is_below({DescriptorId(7): 1})


@pytest.mark.slow
def test_two_transactions_in_every_interleaving():
    for history in merges(TRANSACTION, TRANSACTION, ADVANCE[:2], HEART):
        world = World()
        for event in history:
            world.run(event)
            world.check(history)


def test_a_reader_of_the_past_holds_the_mark():
    registry = Registry(Seq(10))
    ticket = registry.enter_below(Seq(7))
    registry.advance(Seq(20))
    # A published mark never decreases; it does not advance either.
    assert registry.mark() == 10
    registry.leave(ticket)
    assert registry.mark() == 20
    assert len(registry) == 0
