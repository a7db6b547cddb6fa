"""The history of a web shop in examples/shop."""

import json
import shutil
from pathlib import Path

import pytest

from seachange.cli.main import main

SHOP = Path(__file__).parents[2] / "examples" / "shop"
# Up to here: tables, foreign keys, indexes, a conversion, NOT VALID and VALIDATE, an enum type.
FIRST = 13


def replay(folder: Path, *options: str) -> None:
    assert main(["replay", str(folder), "--strict", *options]) == 0


def test_every_migration_is_taken():
    replay(SHOP, "--writers", "0", "--pause", "0", "--autocommit")


def test_first_migrations_fail_no_writer(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for migration in sorted(SHOP.glob("*.sql"))[:FIRST]:
        shutil.copy(migration, tmp_path)
    assert main(["replay", str(tmp_path), "--writers", "2", "--pace", "50", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["foreground"]["failed"], told["anomalies"]) == ({}, [])
    assert told["foreground"]["done"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("how", [(), ("--autocommit", "--strict")], ids=["blocks", "autocommit"])
def test_all_migrations_fail_no_writer(how: tuple[str, ...], seed: int, capsys: pytest.CaptureFixture[str]):
    assert main(["replay", str(SHOP), "--writers", "4", "--seed", str(seed), "--json", *how]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["foreground"]["failed"], told["anomalies"]) == ({}, [])
    assert told["foreground"]["done"] > 100
