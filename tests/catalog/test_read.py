"""What followers and snapshots see."""

import pytest

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.model.ids import IndexId, KeyHash, Seq
from seachange.model.log import Conflict, RecordedViolation, RowViolation
from seachange.model.schema.objects import PublishedDescriptor
from tests.catalog.builders import (
    accept,
    batch,
    drop,
    publish,
    register,
    request,
    segment,
    submit,
    swap,
    table,
)


def test_a_follower_reads_each_entry_whole(catalog: Catalog):
    epoch = register(catalog)
    delta, member = catalog.reserve_segments(epoch, 2)
    first = accept(
        catalog,
        epoch,
        writes=(3, -4),
        shares=(5,),
        bulk=(2,),
        touched=(1, 2),
        batches=(batch(1, b"x"), batch(1, b"y")),
        segments=(segment(delta, 2),),
    )
    accept(
        catalog,
        epoch,
        descriptors=(publish(9, 0, 1, indexes=(3,)),),
        generations=(swap(3, None, 0, (segment(member, 3),)),),
    )
    accept(catalog, epoch, descriptors=(drop(9, 1, 2),))
    one, two, three = catalog.follow(epoch, Seq(0))
    assert (one.seq, one.timestamp_us) == (first.seq, first.timestamp_us)
    assert (one.writes, one.shares, one.bulk, one.touched) == ((3, -4), (5,), (2,), (1, 2))
    assert one.batches == (batch(1, b"x"), batch(1, b"y"))
    (attached,) = one.segments
    assert (attached.id, attached.seq, attached.checksum) == (delta, 1, b"\x00\xff")
    assert two.descriptors == (PublishedDescriptor(table(9, 1).id, 1, table(9, 1, indexes=(3,))),)
    (generation,) = two.generations
    assert (generation.base, generation.swap) == (0, 2)
    assert generation.members[0].deleted == b"\x01\x00\x00\x00"
    assert (generation.members[0].segment.id, generation.members[0].segment.seq) == (member, 0)
    assert three.descriptors == (PublishedDescriptor(table(9, 1).id, 2, None),)
    assert catalog.follow(epoch, Seq(1)) == (two, three)
    assert catalog.follow(epoch, Seq(3)) == ()


def test_an_ended_epoch_reads_nothing(catalog: Catalog):
    epoch, other = catalog.register_node("late", 0), register(catalog)
    accept(catalog, other, batches=(batch(),))
    assert catalog.expire_nodes() == (epoch,)
    for read in (
        lambda: catalog.follow(epoch, Seq(0)),
        lambda: catalog.descriptors(epoch, Seq(1)),
        lambda: catalog.index_contents(epoch, IndexId(1), Seq(1)),
    ):
        with pytest.raises(errors.StaleNode):
            read()


def test_a_snapshot_below_the_floor_is_an_error(catalog: Catalog):
    epoch = register(catalog)
    for _ in range(3):
        accept(catalog, epoch, batches=(batch(),))
    catalog.heartbeat(epoch, Seq(2))
    catalog.collect(epoch, 0)
    for read in (
        lambda: catalog.follow(epoch, Seq(1)),
        lambda: catalog.descriptors(epoch, Seq(1)),
        lambda: catalog.index_contents(epoch, IndexId(1), Seq(1)),
    ):
        with pytest.raises(errors.SnapshotTooOld):
            read()
    assert len(catalog.follow(epoch, Seq(2))) == 1
    assert len(catalog.index_contents(epoch, IndexId(1), Seq(2)).deltas) == 2


def test_descriptors_are_those_of_the_snapshot(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, descriptors=(publish(1, 0, 1), publish(2, 0, 1, name="u")))
    accept(catalog, epoch, descriptors=(publish(1, 1, 5, name="renamed"),))
    accept(catalog, epoch, descriptors=(drop(2, 1, 2, name="u"),))
    seen = [[(d.id, d.version) for d in catalog.descriptors(epoch, Seq(at))] for at in range(4)]
    assert seen == [[], [(1, 1), (2, 1)], [(1, 5), (2, 1)], [(1, 5)]]
    (renamed,) = catalog.descriptors(epoch, Seq(3))
    assert renamed.body is not None
    assert renamed.body.name == "renamed"


def test_contents_are_the_newest_base_and_the_deltas_above_it(catalog: Catalog):
    epoch = register(catalog)
    index = IndexId(1)
    ids = catalog.reserve_segments(epoch, 3)
    accept(catalog, epoch, generations=(swap(1, None, 0),))
    accept(catalog, epoch, batches=(batch(1, b"two"), batch(2, b"other index")))
    accept(catalog, epoch, segments=(segment(ids[0]),), batches=(batch(1, b"three"),))
    first = catalog.newest_generation(index)
    assert first is not None
    accept(catalog, epoch, batches=(batch(1, b"four"),))
    accept(catalog, epoch, generations=(swap(1, first.id, 3, (segment(ids[1]), segment(ids[0]))),))

    before = catalog.index_contents(epoch, index, Seq(2))
    assert before.generation == first
    assert [(d.seq, [b.payload for b in d.batches]) for d in before.deltas] == [(2, [b"two"])]
    # The swap has sequence 5, but what it holds is complete from 3 on.
    folded = catalog.index_contents(epoch, index, Seq(3))
    assert folded.generation is not None
    assert [m.segment.id for m in folded.generation.members] == [ids[1], ids[0]]
    # A new file begins with the base, one that was there before keeps its sequence.
    assert [m.segment.seq for m in folded.generation.members] == [3, 3]
    assert folded.deltas == ()
    after = catalog.index_contents(epoch, index, Seq(5))
    assert after.generation == folded.generation
    assert [d.seq for d in after.deltas] == [4]
    nothing = catalog.index_contents(epoch, IndexId(77), Seq(5))
    assert (nothing.generation, nothing.deltas) == (None, ())


def test_a_delta_segment_is_a_delta_of_its_commit(catalog: Catalog):
    epoch = register(catalog)
    (id_,) = catalog.reserve_segments(epoch, 1)
    accept(catalog, epoch)
    accept(catalog, epoch, segments=(segment(id_),), batches=(batch(1),))
    contents = catalog.index_contents(epoch, IndexId(1), Seq(2))
    (delta,) = contents.deltas
    assert (delta.seq, len(delta.batches), [s.id for s in delta.segments]) == (2, 1, [id_])


def test_sequences_by_time(catalog: Catalog):
    epoch = register(catalog)
    times = [accept(catalog, epoch).timestamp_us for _ in range(9)]
    assert catalog.sequence_at(times[0] - 1) == 0
    for seq, timestamp in enumerate(times, start=1):
        assert catalog.sequence_at(timestamp) == seq
    assert catalog.sequence_at(times[-1] + 1_000_000) == 9
    catalog.heartbeat(epoch, Seq(5))
    catalog.collect(epoch, 0)
    assert catalog.sequence_at(times[6]) == 7
    # What is too old to be known is below the floor, where every read fails.
    assert catalog.sequence_at(times[0]) < catalog.floor()


def test_ids_are_never_given_twice(catalog: Catalog):
    first, second = catalog.allocate_ids(3), catalog.allocate_ids(1)
    assert len(first) == 3
    assert second.start >= first.stop


def test_an_index_may_be_created_complete_with_rows_of_the_same_commit(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch)
    accept(catalog, epoch, generations=(swap(1, None, None),), batches=(batch(1),))
    contents = catalog.index_contents(epoch, IndexId(1), Seq(2))
    assert contents.generation is not None
    assert contents.generation.base == 1
    assert [delta.seq for delta in contents.deltas] == [2]


def test_first_reliance_finds_the_commit(catalog: Catalog):
    epoch = register(catalog)
    first = accept(catalog, epoch, writes=(7,), shares=(5, 6))
    accept(catalog, epoch, writes=(5,))
    second = accept(catalog, epoch, shares=(-8, 6))
    keys = [KeyHash(6), KeyHash(9)]
    assert catalog.first_reliance(epoch, keys, Seq(0)) == first.seq
    assert catalog.first_reliance(epoch, keys, first.seq) == second.seq
    assert catalog.first_reliance(epoch, keys, second.seq) is None
    assert catalog.first_reliance(epoch, [KeyHash(7)], Seq(0)) is None
    catalog.heartbeat(epoch, second.seq)
    catalog.collect(epoch, 0)
    with pytest.raises(errors.SnapshotTooOld):
        catalog.first_reliance(epoch, keys, first.seq)


def test_first_violation_is_that_of_the_first_commit(catalog: Catalog):
    epoch = register(catalog)
    one, other = (RowViolation(KeyHash(-6), f"row {number}", f"session {number}") for number in (1, 2))
    first = accept(catalog, epoch, shares=(-6,), violations=(one,))
    second = accept(catalog, epoch, shares=(-6,), violations=(RowViolation(KeyHash(9), "another", "session 3"), other))
    keys = [KeyHash(5), KeyHash(-6)]
    assert catalog.first_violation(keys, Seq(0)) == RecordedViolation(one, first.seq)
    assert catalog.first_violation(keys, first.seq) == RecordedViolation(other, second.seq)
    assert catalog.first_violation(keys, second.seq) is None
    assert catalog.first_violation([KeyHash(5)], Seq(0)) is None
    catalog.heartbeat(epoch, second.seq)
    catalog.collect(epoch, 0)
    assert catalog.first_violation(keys, Seq(0)) is None


def test_refused_commit_records_no_violation(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, writes=(6,))
    violation = RowViolation(KeyHash(6), "row 1", "session 1")
    late = request(0, shares=(6,), violations=(violation,))
    assert isinstance(submit(catalog, epoch, late), Conflict)
    assert catalog.first_violation([KeyHash(6)], Seq(0)) is None
