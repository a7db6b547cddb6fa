"""Histories with rows in which all writers count: blocks of different processes change the same rows, and none
fails."""

import json
import shutil
from pathlib import Path

import pytest

from seachange.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
HISTORIES = ("bank", "forum", "depot")
# Up to here: tables that refer to each other, a block of updates, an update of all rows.
FIRST = 8


def replay(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> None:
    code = main(["replay", str(folder), "--json", "--strict", *options])
    told = json.loads(capsys.readouterr().out)
    assert (told["foreground"]["failed"], told["anomalies"]) == ({}, []), (options, told["foreground"])
    assert code == 0
    assert told["foreground"]["done"] > 10


@pytest.mark.timeout(600)
def test_blocks_that_count_in_shared_rows_do_not_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for migration in sorted((EXAMPLES / "bank").glob("*.sql"))[:FIRST]:
        shutil.copy(migration, tmp_path)
    replay(tmp_path, capsys, "--writers", "3", "--pace", "10")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("history", HISTORIES)
def test_no_block_fails_in_any_history(history: str, seed: int, capsys: pytest.CaptureFixture[str]):
    replay(EXAMPLES / history, capsys, "--writers", "4", "--seed", str(seed))
