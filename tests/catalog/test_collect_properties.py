"""Random commits, compactions, marks and collections against a model that remembers everything.

Every delta carries a token. A snapshot must read exactly the tokens committed at or below it, and no file that it names
may ever have been returned as garbage; nor one that a node still uses which has followed the log no further than its
mark.
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from seachange.catalog.port import Catalog
from seachange.model.ids import Epoch, GenerationId, IndexId, SegmentId, Seq
from seachange.model.segments import IndexContents
from tests.catalog.builders import accept, batch, register, segment, swap

INDEXES = 2


class CollectMachine(RuleBasedStateMachine):
    def __init__(self, catalog: Catalog) -> None:
        super().__init__()
        self.catalog = catalog
        # Examples share a catalog: what is drawn must not depend on where its log stands.
        self.start = catalog.head()
        self.indexes = [IndexId(i) for i in catalog.allocate_ids(INDEXES)]
        # What each file holds: tokens are the sequences of their commits.
        self.held: dict[int, frozenset[int]] = {}
        self.tokens: dict[IndexId, set[int]] = {index: set() for index in self.indexes}
        # Per index: what was swapped in when, and the files of deltas by their commits.
        self.swaps: dict[IndexId, list[tuple[Seq, Seq, list[int]]]] = {i: [] for i in self.indexes}
        self.deltas: dict[IndexId, list[tuple[Seq, int]]] = {i: [] for i in self.indexes}
        self.garbage: set[int] = set()
        self.marks: dict[Epoch, Seq] = {}
        self.add_node()

    def teardown(self) -> None:
        for epoch in self.marks:
            self.catalog.end_node(epoch)

    @property
    def writer(self) -> Epoch:
        return next(iter(self.marks))

    @rule()
    def add_node(self) -> None:
        epoch = register(self.catalog)
        self.marks[epoch] = self.catalog.head()

    @precondition(lambda self: len(self.marks) > 1)
    @rule(data=st.data())
    def end_node(self, data: st.DataObject) -> None:
        epoch = data.draw(st.sampled_from(sorted(self.marks)))
        self.catalog.end_node(epoch)
        del self.marks[epoch]

    @rule(data=st.data())
    def raise_mark(self, data: st.DataObject) -> None:
        epoch = data.draw(st.sampled_from(sorted(self.marks)))
        mark = self.draw_sequence(data, self.marks[epoch])
        self.catalog.heartbeat(epoch, mark)
        self.marks[epoch] = mark

    @rule(number=st.integers(0, INDEXES - 1))
    def write_inline(self, number: int) -> None:
        index = self.indexes[number]
        seq = accept(self.catalog, self.writer, batches=(batch(index),)).seq
        self.tokens[index].add(seq)

    @rule(number=st.integers(0, INDEXES - 1))
    def write_file(self, number: int) -> None:
        index = self.indexes[number]
        (id_,) = self.catalog.reserve_segments(self.writer, 1)
        seq = accept(self.catalog, self.writer, segments=(segment(id_, index),)).seq
        self.tokens[index].add(seq)
        self.held[id_] = frozenset({seq})
        self.deltas[index].append((seq, id_))

    @rule(number=st.integers(0, INDEXES - 1), reuse=st.booleans(), data=st.data())
    def compact(self, number: int, reuse: bool, data: st.DataObject) -> None:
        """Compacts up to a sequence at or above every mark, keeping the existing files if `reuse`."""
        index = self.indexes[number]
        newest = self.catalog.newest_generation(index)
        low = max(newest.base if newest else self.start, self.marks[self.writer])
        base = self.draw_sequence(data, low)
        contents = self.catalog.index_contents(self.writer, index, base)
        kept = self.files(contents) if reuse else []
        folded = self.read(contents) - {t for id_ in kept for t in self.held[id_]}
        (id_,) = self.catalog.reserve_segments(self.writer, 1)
        self.held[id_] = frozenset(folded)
        members = [segment(one, index) for one in (*kept, id_)]
        expected = GenerationId(newest.id) if newest else None
        change = swap(index, expected, base, members)
        seq = accept(self.catalog, self.writer, generations=(change,)).seq
        self.swaps[index].append((seq, base, [*kept, id_]))

    def draw_sequence(self, data: st.DataObject, low: int) -> Seq:
        """A sequence between `low` and the head."""
        return Seq(low + data.draw(st.integers(0, self.catalog.head() - low)))

    @rule(forget=st.booleans())
    def collect(self, forget: bool) -> None:
        given = self.catalog.collect(self.writer, 0)
        self.garbage |= set(given)
        if forget:
            self.catalog.forget_files(given)

    @invariant()
    def every_live_snapshot_reads_what_was_committed(self) -> None:
        head = self.catalog.head()
        for epoch, mark in self.marks.items():
            for at in {mark, Seq((mark + head) // 2), head}:
                for index in self.indexes:
                    contents = self.catalog.index_contents(epoch, index, at)
                    assert self.read(contents) == {t for t in self.tokens[index] if t <= at}
                    assert self.garbage.isdisjoint(self.files(contents))

    @invariant()
    def nodes_keep_the_files_that_they_know(self) -> None:
        for mark in self.marks.values():
            for index in self.indexes:
                known = [one for one in self.swaps[index] if one[0] <= mark]
                _, base, files = known[-1] if known else (0, 0, [])
                recent = [id_ for seq, id_ in self.deltas[index] if base < seq <= mark]
                assert self.garbage.isdisjoint([*files, *recent])

    def files(self, contents: IndexContents) -> list[SegmentId]:
        members = contents.generation.members if contents.generation else ()
        bases = [member.segment.id for member in members]
        return bases + [s.id for delta in contents.deltas for s in delta.segments]

    def read(self, contents: IndexContents) -> set[int]:
        inline = {delta.seq for delta in contents.deltas if delta.batches}
        return inline.union(*(self.held[id_] for id_ in self.files(contents)))


def test_collect_never_takes_what_a_live_mark_can_reach(catalog: Catalog):
    class Machine(CollectMachine):
        def __init__(self) -> None:
            super().__init__(catalog)

    on_sqlite = catalog.url.startswith("sqlite")
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=60 if on_sqlite else 10,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
