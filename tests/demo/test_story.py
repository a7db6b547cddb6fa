"""The story of the demonstration holds on a small table: each change comes out as it says."""

import random
from pathlib import Path

import pytest

import seachange
from demo.scene import Act, Scene
from demo.story import BALANCE, QUICK, Scale, locking_form, rows, steps, tables
from demo.traffic import Traffic
from demo.view import render
from demo.watch import Lease

SCALE = Scale(accounts=1_000, pause_s=0, transactions_per_second=1, slow_bytes_per_second="1MB")


def test_every_change_comes_out_as_it_says_and_traffic_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    db = seachange.connect(str(tmp_path))
    db.autocommit = True
    cursor = db.cursor()
    for statement in (*tables(), *rows(SCALE)):
        cursor.execute(statement)
    other = seachange.connect(str(tmp_path))
    traffic = Traffic(other, 0, SCALE.accounts, random.Random(7))
    kinds = (traffic._transfer, traffic._open, traffic._look_up, traffic._close)
    for step in steps(SCALE):
        for kind in kinds:
            traffic._one(kind, due=0.0)
        if step.fails_with is None:
            cursor.execute(locking_form(step.statement))
        else:
            with pytest.raises(seachange.IntegrityError, match=step.fails_with):
                cursor.execute(locking_form(step.statement))
    other.close()
    told = capsys.readouterr().out.splitlines()
    assert len(told) == len(kinds) * len(steps(SCALE))
    assert all('"error": null' in line for line in told), told
    cursor.execute("select sum(balance), count(distinct currency), count(opened) from accounts")
    assert cursor.fetchall() == [(SCALE.accounts * BALANCE, 1, SCALE.accounts)]
    cursor.execute("select count(*) from ledger where amount > 0")
    assert cursor.fetchall() == [(len(steps(SCALE)),)]


def test_an_error_of_the_traffic_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    db = seachange.connect(str(tmp_path))
    traffic = Traffic(db, 0, SCALE.accounts, random.Random(7))
    traffic._one(traffic._look_up, due=0.0)
    assert '"error": "42P01: ' in capsys.readouterr().out


def test_more_than_two_versions_at_once_are_noticed():
    scene = Scene("x", [Act(step) for step in steps(QUICK)])
    scene.note_leases([Lease("a", "t", 1, 2), Lease("b", "t", 2, 2), Lease("b", "u", 9, 9)])
    assert scene.versions_at_once == 2
    scene.note_leases([Lease(name, "t", version, 3) for name, version in (("a", 1), ("b", 2), ("c", 3))])
    assert scene.versions_at_once == 3
    # It can be drawn before anything has begun.
    assert render(scene).renderables
