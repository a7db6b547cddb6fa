"""Fault points: an action runs once, at the passage that it is armed for."""

import errno

import pytest

from seachange.runtime.faults import POINTS, FaultPoints, arm_from


def test_an_action_runs_at_its_passage_only():
    faults, hits = FaultPoints(), []
    faults.arm("commit.locked", lambda: hits.append("now"), occurrence=2)
    for expected in (0, 1, 1):
        faults.reach("commit.locked")
        faults.reach("commit.written")
        assert len(hits) == expected


def test_a_disarmed_point_is_passed():
    faults = FaultPoints()
    faults.arm("commit.locked", lambda: pytest.fail("it was disarmed"))
    faults.disarm()
    faults.reach("commit.locked")


def test_a_point_must_be_announced():
    with pytest.raises(KeyError):
        FaultPoints().arm("nowhere", lambda: None)
    assert all(what for what in POINTS.values())


@pytest.mark.parametrize(("action", "code"), [("enospc", errno.ENOSPC), ("eio", errno.EIO)])
def test_an_error_asked_for_by_name(action: str, code: int):
    faults = FaultPoints()
    arm_from(f"segment.written:2:{action}", faults)
    faults.reach("segment.written")
    with pytest.raises(OSError, match=r".") as raised:
        faults.reach("segment.written")
    assert raised.value.errno == code
