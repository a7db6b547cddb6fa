"""Garbage collection: what is removed, what stays, and what a new node still finds."""

from seachange.catalog.port import Catalog
from seachange.model.ids import GenerationId, IndexId, SegmentId, Seq
from seachange.model.log import BelowFloor, Committed, Superseded
from seachange.model.segments import Holdings
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
    uses,
)

DAY_US = 24 * 3_600 * 1_000_000


def newest_id(catalog: Catalog, index_id: int = 1) -> GenerationId:
    generation = catalog.newest_generation(IndexId(index_id))
    assert generation is not None
    return generation.id


def raise_mark(catalog: Catalog, epoch) -> None:
    catalog.heartbeat(epoch, catalog.head())


def test_the_horizon_is_the_lowest_live_mark(catalog: Catalog):
    one, two = register(catalog), register(catalog)
    for _ in range(5):
        accept(catalog, one)
    catalog.heartbeat(one, Seq(4))
    catalog.heartbeat(two, Seq(2))
    catalog.collect(one, 0)
    assert catalog.floor() == 2
    catalog.end_node(two)
    catalog.collect(one, 0)
    assert catalog.floor() == 4


def test_the_retention_holds_the_floor(catalog: Catalog):
    epoch = register(catalog)
    for _ in range(5):
        accept(catalog, epoch)
    raise_mark(catalog, epoch)
    catalog.collect(epoch, DAY_US)
    assert catalog.floor() == 0
    catalog.collect(epoch, 0)
    assert catalog.floor() == 5
    # The floor never goes back.
    catalog.collect(epoch, DAY_US)
    assert catalog.floor() == 5


def test_a_superseded_generation_goes_by_the_sequence_of_the_swap(catalog: Catalog):
    epoch, reader = register(catalog), register(catalog)
    old, delta, new = catalog.reserve_segments(epoch, 3)
    accept(catalog, epoch, generations=(swap(1, None, 0, (segment(old),)),))
    accept(catalog, epoch, segments=(segment(delta),), batches=(batch(1),))
    accept(catalog, epoch, generations=(swap(1, newest_id(catalog), 2, (segment(new),)),))
    raise_mark(catalog, epoch)
    # A reader at the base has not heard of the swap and may still list the old files.
    catalog.heartbeat(reader, Seq(2))
    assert catalog.collect(epoch, 0) == ()
    assert catalog.holdings() == Holdings(segments=3, bytes=3_000, superseded=2, garbage=0)
    catalog.heartbeat(reader, Seq(3))
    assert catalog.collect(epoch, 0) == (old, delta)
    assert catalog.holdings() == Holdings(segments=1, bytes=1_000, superseded=0, garbage=2)
    # Given again until they are forgotten.
    assert catalog.collect(epoch, 0) == (old, delta)
    catalog.forget_files((SegmentId(old),))
    assert catalog.collect(epoch, 0) == (delta,)
    contents = catalog.index_contents(epoch, IndexId(1), Seq(3))
    assert contents.generation is not None
    assert [m.segment.id for m in contents.generation.members] == [new]
    assert contents.deltas == ()


def test_a_file_that_a_newer_generation_shares_stays(catalog: Catalog):
    epoch = register(catalog)
    kept, gone, delta, new = catalog.reserve_segments(epoch, 4)
    accept(catalog, epoch, generations=(swap(1, None, 0, (segment(kept), segment(gone))),))
    accept(catalog, epoch, segments=(segment(delta),))
    members = (segment(kept), segment(delta), segment(new))
    accept(catalog, epoch, generations=(swap(1, newest_id(catalog), 2, members),))
    raise_mark(catalog, epoch)
    assert catalog.collect(epoch, 0) == (gone,)
    found = catalog.newest_generation(IndexId(1))
    assert found is not None
    assert [m.segment.id for m in found.members] == [kept, delta, new]


def test_an_index_without_a_base_keeps_its_deltas(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, batches=(batch(1), batch(2)))
    accept(catalog, epoch, generations=(swap(2, None, 1),))
    raise_mark(catalog, epoch)
    catalog.collect(epoch, 0)
    at = catalog.head()
    assert len(catalog.index_contents(epoch, IndexId(1), at).deltas) == 1
    assert catalog.index_contents(epoch, IndexId(2), at).deltas == ()


def test_intents_of_the_dead_and_abandoned_ones_are_garbage(catalog: Catalog):
    alive, dead = register(catalog), register(catalog)
    mine, abandoned = catalog.reserve_segments(alive, 2)
    theirs = catalog.reserve_segments(dead, 2)
    assert catalog.collect(alive, 0) == ()
    catalog.abandon_segments(alive, (SegmentId(abandoned),))
    catalog.end_node(dead)
    assert catalog.collect(alive, 0) == (abandoned, *theirs)
    # Their epoch is dead: it cannot attach them, and no other node may abandon them.
    for id_ in (abandoned, theirs[0]):
        what = request(0, segments=(segment(id_),))
        assert submit(catalog, alive, what) == Superseded(f"segment {id_}")
    catalog.abandon_segments(dead, (SegmentId(mine),))
    accept(catalog, alive, segments=(segment(mine),))


def test_a_dropped_table_goes_when_no_snapshot_has_it(catalog: Catalog):
    epoch, reader = register(catalog), register(catalog)
    base, delta, other = catalog.reserve_segments(epoch, 3)
    accept(
        catalog,
        epoch,
        descriptors=(publish(7, 0, 1, indexes=(1, 2)), publish(8, 0, 1, name="u", indexes=(3,))),
        generations=(
            swap(1, None, 0, (segment(base),)),
            swap(2, None, 0),
            swap(3, None, 0, (segment(other, 3),)),
        ),
    )
    accept(catalog, epoch, segments=(segment(delta, 2),), batches=(batch(1),))
    accept(catalog, epoch, descriptors=(drop(7, 1, 2),))
    raise_mark(catalog, epoch)
    catalog.heartbeat(reader, Seq(2))
    assert catalog.collect(epoch, 0) == ()
    assert catalog.index_contents(reader, IndexId(1), Seq(2)).deltas != ()
    raise_mark(catalog, reader)
    assert catalog.collect(epoch, 0) == (base, delta)
    assert [d.id for d in catalog.descriptors(epoch, Seq(3))] == [8]
    assert catalog.newest_generation(IndexId(1)) is None
    assert catalog.min_versions() == {}
    late = request(catalog.head(), versions=uses(7, 2))
    assert not isinstance(submit(catalog, epoch, late), Committed)
    # It cannot come back, and its name is free.
    back = request(catalog.head(), descriptors=(publish(7, 2, 3, name="back"),))
    assert submit(catalog, epoch, back) == Superseded("descriptor 7")
    accept(catalog, epoch, descriptors=(publish(9, 0, 1, name="t"),))


def test_a_dropped_index_goes_and_its_table_stays(catalog: Catalog):
    epoch = register(catalog)
    ids = catalog.reserve_segments(epoch, 2)
    accept(
        catalog,
        epoch,
        descriptors=(publish(7, 0, 1, indexes=(1, 2)),),
        generations=(
            swap(1, None, 0, (segment(ids[0]),)),
            swap(2, None, 0, (segment(ids[1], 2),)),
        ),
    )
    accept(catalog, epoch, descriptors=(publish(7, 1, 2, indexes=(1,)),))
    raise_mark(catalog, epoch)
    assert catalog.collect(epoch, 0) == (ids[1],)
    assert [d.version for d in catalog.descriptors(epoch, Seq(2))] == [2]


def test_a_new_node_starts_from_what_is_left(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, descriptors=(publish(7, 0, 1),), generations=(swap(1, None, 0),))
    accept(catalog, epoch, descriptors=(publish(7, 1, 2),))
    for number in range(10):
        accept(catalog, epoch, writes=(number,), batches=(batch(1, b"%d" % number),))
    accept(catalog, epoch, generations=(swap(1, newest_id(catalog), 6),))
    accept(catalog, epoch, batches=(batch(1, b"last"),))
    raise_mark(catalog, epoch)
    catalog.collect(epoch, 0)
    assert catalog.floor() == catalog.head() == 14
    fresh = register(catalog)
    at = catalog.head()
    assert [d.version for d in catalog.descriptors(fresh, at)] == [2]
    contents = catalog.index_contents(fresh, IndexId(1), at)
    assert contents.generation is not None
    assert contents.generation.base == 6
    assert [d.seq for d in contents.deltas] == [7, 8, 9, 10, 11, 12, 14]
    assert catalog.follow(fresh, at) == ()
    seq = accept(catalog, fresh, writes=(1,)).seq
    assert (seq, [e.seq for e in catalog.follow(fresh, at)]) == (15, [15])


def test_a_commit_id_is_known_for_the_retention(catalog: Catalog):
    epoch = register(catalog)
    what = request(0, writes=(1,))
    outcome = submit(catalog, epoch, what)
    for _ in range(3):
        accept(catalog, epoch)
    raise_mark(catalog, epoch)
    catalog.collect(epoch, DAY_US)
    assert submit(catalog, epoch, what) == outcome
    # Even when it is forgotten it is not committed twice.
    catalog.collect(epoch, 0)
    assert submit(catalog, epoch, what) == BelowFloor(Seq(4))
