"""Sequences in the catalog: blocks follow each other, and nothing that was taken is given again."""

import threading

import pytest

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.model.ids import DescriptorId
from seachange.model.schema.sequences import SequenceLimits, SequenceState

ID = DescriptorId(7)
LIMITS = SequenceLimits("s", start=1, increment=1, minimum=1, maximum=10_000, cycle=False)


def test_blocks_follow_each_other(catalog: Catalog):
    assert catalog.sequence_state(ID, 0) is None
    assert list(catalog.draw_sequence(ID, 0, LIMITS, 3).values()) == [1, 2, 3]
    assert list(catalog.draw_sequence(ID, 0, LIMITS, 2).values()) == [4, 5]
    assert catalog.sequence_state(ID, 0) == SequenceState(5, called=True)
    # Another run, another sequence.
    assert catalog.draw_sequence(ID, 1, LIMITS, 1).first == 1
    assert catalog.draw_sequence(DescriptorId(8), 0, LIMITS, 1).first == 1


def test_set_and_move(catalog: Catalog):
    catalog.set_sequence(ID, 0, SequenceState(9_999, called=False))
    assert list(catalog.draw_sequence(ID, 0, LIMITS, 5).values()) == [9_999, 10_000]
    with pytest.raises(errors.SequenceExhausted):
        catalog.draw_sequence(ID, 0, LIMITS, 1)
    assert not catalog.move_sequence(ID, 0, SequenceState(9_999, called=True), SequenceState(1, called=False))
    assert catalog.move_sequence(ID, 0, SequenceState(10_000, called=True), SequenceState(4, called=False))
    assert catalog.draw_sequence(ID, 0, LIMITS, 1).first == 4


def test_threads_never_share_a_value(open_one):
    taken: list[int] = []

    def draw(catalog: Catalog) -> None:
        for count in (1, 2, 3) * 5:
            taken.extend(catalog.draw_sequence(ID, 0, LIMITS, count).values())

    threads = [threading.Thread(target=draw, args=(open_one(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 4 * 30 + 1))
