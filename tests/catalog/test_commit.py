"""The rules by which a commit is decided, one by one."""

from dataclasses import replace
from typing import Any

import pytest

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.model.ids import DescriptorId, Seq
from seachange.model.log import (
    BelowFloor,
    Burned,
    Committed,
    Conflict,
    Fenced,
    Revalidate,
    StaleEpoch,
    Superseded,
)
from tests.catalog.builders import (
    accept,
    batch,
    drop,
    new_id,
    publish,
    raise_to,
    register,
    request,
    segment,
    submit,
    swap,
    uses,
)


def test_sequences_are_dense_and_timestamps_rise(catalog: Catalog):
    epoch = register(catalog)
    outcomes = [accept(catalog, epoch, writes=(n,)) for n in range(20)]
    assert [o.seq for o in outcomes] == list(range(1, 21))
    timestamps = [o.timestamp_us for o in outcomes]
    assert timestamps == sorted(set(timestamps))
    assert catalog.head() == 20


def test_nothing_is_decided_without_requests(catalog: Catalog):
    assert catalog.commit(register(catalog), ()) == ()


@pytest.mark.parametrize(
    ("first", "second", "conflicts"),
    [
        ({"writes": (1, 2)}, {"writes": (2, 3)}, True),
        ({"writes": (1,)}, {"shares": (1,)}, True),
        ({"shares": (1,)}, {"writes": (1,)}, True),
        ({"shares": (1,)}, {"shares": (1,)}, False),
        ({"writes": (1,)}, {"writes": (2,)}, False),
        ({"writes": (-(2**63),)}, {"writes": (-(2**63), 2**63 - 1)}, True),
        ({"writes": tuple(range(500))}, {"writes": tuple(range(499, 900))}, True),
        ({"shares": tuple(range(500))}, {"writes": tuple(range(499, 900))}, True),
        ({"writes": tuple(range(500))}, {"writes": tuple(range(500, 900))}, False),
    ],
)
def test_conflicts_are_by_key(catalog: Catalog, first: dict[str, Any], second: dict[str, Any], conflicts: bool):
    epoch = register(catalog)
    seq = accept(catalog, epoch, **first).seq
    outcome = submit(catalog, epoch, request(0, **second))
    assert outcome == Conflict(seq) if conflicts else isinstance(outcome, Committed)
    # What was validated is not checked again.
    assert isinstance(submit(catalog, epoch, request(seq + 1, **second)), Committed)


def test_the_oldest_conflict_is_named(catalog: Catalog):
    epoch = register(catalog)
    for key in (1, 2, 2):
        accept(catalog, epoch, writes=(key,))
    assert submit(catalog, epoch, request(0, writes=(2,))) == Conflict(Seq(2))


def test_a_conflict_refuses_only_its_member(catalog: Catalog):
    epoch = register(catalog)
    batch_of = [
        request(0, writes=(1,), touched=(7,), batches=(batch(7, b"one"),)),
        request(0, writes=(1,), touched=(7,), batches=(batch(7, b"refused"), batch(8, b"refused"))),
        request(0, shares=(1,)),
        request(0, writes=(2,), touched=(7, 8), batches=(batch(7, b"two"), batch(8, b"three"))),
    ]
    first, second, third, fourth = catalog.commit(epoch, batch_of)
    assert (second, third) == (Conflict(Seq(1)), Conflict(Seq(1)))
    assert isinstance(first, Committed)
    assert isinstance(fourth, Committed)
    assert (first.seq, fourth.seq) == (1, 2)
    assert fourth.timestamp_us > first.timestamp_us
    entries = catalog.follow(epoch, Seq(0))
    payloads = [[b.payload for b in entry.batches] for entry in entries]
    assert payloads == [[b"one"], [b"two", b"three"]]


@pytest.mark.parametrize(
    ("first", "second", "revalidates"),
    [
        ({"bulk": (5,), "touched": (5,)}, {"writes": (1,), "touched": (5,)}, True),
        ({"writes": (1,), "touched": (5,)}, {"bulk": (5,), "touched": (5,)}, True),
        ({"bulk": (5,), "touched": (5,)}, {"writes": (1,), "touched": (6,)}, False),
        ({"writes": (1,), "touched": (6,)}, {"bulk": (5,), "touched": (5,)}, False),
        ({"bulk": (5,), "touched": (5,)}, {"bulk": (5,), "touched": (5,)}, True),
    ],
)
def test_bulk_writes_are_validated_outside_the_lock(
    catalog: Catalog, first: dict[str, Any], second: dict[str, Any], revalidates: bool
):
    epoch = register(catalog)
    accept(catalog, epoch, **first)
    outcome = submit(catalog, epoch, request(0, **second))
    if revalidates:
        assert outcome == Revalidate(Seq(1))
        outcome = submit(catalog, epoch, request(1, **second))
    assert isinstance(outcome, Committed)


def test_conflict_takes_precedence_over_revalidation(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, bulk=(5,), touched=(5,))
    accept(catalog, epoch, writes=(1,))
    outcome = submit(catalog, epoch, request(0, writes=(1,), touched=(5,)))
    assert outcome == Conflict(Seq(2))


def test_a_commit_id_commits_once(catalog: Catalog):
    epoch = register(catalog)
    what = request(0, writes=(1,), batches=(batch(),))
    outcome = submit(catalog, epoch, what)
    # Whatever else it says, and whether or not its epoch has ended meanwhile.
    assert submit(catalog, epoch, replace(what, batches=())) == outcome
    twice = request(1, writes=(2,))
    assert len(set(catalog.commit(epoch, (twice, twice)))) == 1
    catalog.end_node(epoch)
    assert submit(catalog, epoch, what) == outcome
    assert catalog.outcome(what.commit_id) == outcome
    assert catalog.head() == 2


def test_lookup_of_an_unknown_commit_tombstones_its_id(catalog: Catalog):
    epoch = register(catalog)
    what = request(0, writes=(1,))
    assert catalog.outcome(what.commit_id) is None
    assert catalog.outcome(what.commit_id) is None
    assert submit(catalog, epoch, what) == Burned(what.commit_id)
    assert catalog.head() == 0


def test_a_dead_epoch_commits_nothing(catalog: Catalog):
    epoch = register(catalog)
    catalog.end_node(epoch)
    assert submit(catalog, epoch, request(0, writes=(1,))) == StaleEpoch(epoch)
    assert catalog.head() == 0


def test_below_the_floor_nothing_can_be_checked(catalog: Catalog):
    epoch = register(catalog)
    for key in range(3):
        accept(catalog, epoch, writes=(key,))
    catalog.heartbeat(epoch, Seq(2))
    catalog.collect(epoch, 0)
    assert catalog.floor() == 2
    assert submit(catalog, epoch, request(3, oldest=Seq(1), writes=(9,))) == BelowFloor(Seq(2))
    assert submit(catalog, epoch, request(1, oldest=Seq(3), writes=(9,))) == BelowFloor(Seq(2))
    assert isinstance(submit(catalog, epoch, request(2, writes=(9,))), Committed)
    assert submit(catalog, epoch, request(2, writes=(2,))) == Conflict(Seq(3))


def test_the_fence_refuses_commits_planned_below_min_version(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, descriptors=(publish(1, 0, 1),))
    accept(catalog, epoch, descriptors=(publish(1, 1, 2),))
    # A new version alone fences no writer.
    accept(catalog, epoch, versions=uses(1, 1))
    accept(catalog, epoch, raises=(raise_to(1, 2),), versions=uses(1, 1))
    assert catalog.min_versions() == {1: 2}
    head = catalog.head()
    fenced = submit(catalog, epoch, request(head, versions=uses(1, 1), writes=(1,)))
    assert fenced == Fenced(DescriptorId(1), 2)
    accept(catalog, epoch, versions=uses(1, 2), writes=(1,))
    # A raise never lowers.
    accept(catalog, epoch, raises=(raise_to(1, 1),))
    assert catalog.min_versions() == {1: 2}


def test_the_fence_holds_inside_a_batch(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, descriptors=(publish(1, 0, 1),))
    outcomes = catalog.commit(
        epoch,
        (
            request(1, descriptors=(publish(1, 1, 2),), raises=(raise_to(1, 2),)),
            request(1, versions=uses(1, 1), writes=(1,)),
        ),
    )
    assert outcomes[1] == Fenced(DescriptorId(1), 2)


def test_a_dropped_descriptor_is_fenced(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, descriptors=(publish(1, 0, 1),))
    accept(catalog, epoch, descriptors=(drop(1, 1, 2),), versions=uses(1, 1))
    for version in (1, 2):
        what = request(catalog.head(), versions=uses(1, version))
        assert submit(catalog, epoch, what) == Fenced(DescriptorId(1), 2)
    unknown = request(catalog.head(), versions=uses(99, 1))
    assert submit(catalog, epoch, unknown) == Fenced(DescriptorId(99), 0)


def test_a_commit_may_use_what_it_publishes(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, descriptors=(publish(1, 0, 1),), versions=uses(1, 1), writes=(1,))
    raised = {"descriptors": (publish(1, 1, 2),), "raises": (raise_to(1, 2),)}
    accept(catalog, epoch, versions=uses(1, 2), **raised)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (publish(1, 0, 1), "descriptor 1"),
        (publish(1, 2, 3), "descriptor 1"),
        (publish(2, 0, 1, name="t"), "name t"),
        (publish(1, 1, 1), "descriptor 1"),
        (drop(3, 1, 2), "descriptor 3"),
    ],
)
def test_descriptors_are_compared_and_set(catalog: Catalog, change, what: str):
    epoch = register(catalog)
    accept(catalog, epoch, descriptors=(publish(1, 0, 1, name="t"),))
    assert submit(catalog, epoch, request(1, descriptors=(change,))) == Superseded(what)
    assert catalog.head() == 1


def test_names_are_unique_among_the_living(catalog: Catalog):
    epoch = register(catalog)
    both = (publish(1, 0, 1, name="a"), publish(2, 0, 1, name="b"))
    accept(catalog, epoch, descriptors=both)
    # Two tables may change their names for each other's in one commit.
    accept(catalog, epoch, descriptors=(publish(1, 1, 2, name="b"), publish(2, 1, 2, name="a")))
    same = (publish(3, 0, 1, name="c"), publish(4, 0, 1, name="c"))
    assert isinstance(submit(catalog, epoch, request(2, descriptors=same)), Superseded)
    accept(catalog, epoch, descriptors=(drop(1, 2, 3, name="b"),))
    accept(catalog, epoch, descriptors=(publish(5, 0, 1, name="b"),))
    # What was dropped can come back as long as it is there, but not to a name that is taken.
    undrop = request(4, descriptors=(publish(1, 3, 4, name="b"),))
    assert submit(catalog, epoch, undrop) == Superseded("name b")
    accept(catalog, epoch, descriptors=(publish(1, 3, 4, name="d"),))
    accept(catalog, epoch, versions=uses(1, 4))


def test_only_known_descriptors_are_raised(catalog: Catalog):
    epoch = register(catalog)
    outcome = submit(catalog, epoch, request(0, raises=(raise_to(1, 1),)))
    assert outcome == Superseded("descriptor 1")


def test_generations_are_compared_and_set(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, generations=(swap(1, None, None),))
    first = catalog.newest_generation(swap(1, None, None).index_id)
    assert first is not None
    assert (first.base, first.swap) == (0, 1)
    accept(catalog, epoch, generations=(swap(1, first.id, 1),))
    first = catalog.newest_generation(first.index_id)
    assert first is not None
    again = request(2, generations=(swap(1, None, 1),))
    assert submit(catalog, epoch, again) == Superseded("generation of index 1")
    ahead = request(2, generations=(swap(1, first.id, 5),))
    assert submit(catalog, epoch, ahead) == Superseded("generation of index 1")
    back = request(2, generations=(swap(1, first.id, 0),))
    assert submit(catalog, epoch, back) == Superseded("generation of index 1")
    accept(catalog, epoch, generations=(swap(1, first.id, 2),))


def test_only_segments_with_an_intent_of_this_epoch_are_attached(catalog: Catalog):
    epoch, other = register(catalog), register(catalog)
    mine, theirs = catalog.reserve_segments(epoch, 2)[0], catalog.reserve_segments(other, 1)[0]
    for id_ in (theirs, 99):
        delta = request(0, segments=(segment(id_),))
        assert submit(catalog, epoch, delta) == Superseded(f"segment {id_}")
        member = request(0, generations=(swap(1, None, 0, (segment(id_),)),))
        assert submit(catalog, epoch, member) == Superseded(f"segment {id_}")
    accept(catalog, epoch, segments=(segment(mine),))
    # It is a reference now: it may become a member, but not a delta again.
    again = request(1, segments=(segment(mine),))
    assert submit(catalog, epoch, again) == Superseded(f"segment {mine}")
    accept(catalog, epoch, generations=(swap(1, None, 1, (segment(mine),)),))


def test_a_refused_member_leaves_its_intent(catalog: Catalog):
    epoch = register(catalog)
    (id_,) = catalog.reserve_segments(epoch, 1)
    accept(catalog, epoch, writes=(1,))
    refused = request(0, writes=(1,), segments=(segment(id_),))
    assert submit(catalog, epoch, refused) == Conflict(Seq(1))
    accept(catalog, epoch, writes=(1,), segments=(segment(id_),))


def test_the_first_rule_that_fails_answers(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, descriptors=(publish(1, 0, 1),), raises=(raise_to(1, 1),), writes=(1,))
    everything: dict[str, Any] = {
        "writes": (1,),
        "versions": uses(1, 0),
        "descriptors": (publish(1, 0, 1),),
    }
    what = request(0, **everything)
    assert submit(catalog, epoch, what) == Fenced(DescriptorId(1), 1)
    what = replace(what, commit_id=new_id(), versions=())
    assert submit(catalog, epoch, what) == Superseded("descriptor 1")
    what = replace(what, commit_id=new_id(), descriptors=())
    assert submit(catalog, epoch, what) == Conflict(Seq(1))


def test_invalid_requests_are_bugs(catalog: Catalog):
    epoch = register(catalog)
    changed_twice = request(0, descriptors=(publish(1, 0, 1), publish(1, 1, 2)))
    swapped_twice = request(0, generations=(swap(1, None, 0), swap(1, None, 0)))
    for what in (changed_twice, swapped_twice):
        with pytest.raises(errors.Bug):
            submit(catalog, epoch, what)
    assert catalog.head() == 0
