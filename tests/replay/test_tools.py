"""Histories as tools write them: what is refused of each, and that concurrent writers do not notice the rest."""

import json
from pathlib import Path

import pytest

from seachange.cli.main import main

FOLDER = Path(__file__).parent / "testdata"
# The SQLSTATE of each statement that is refused, with its beginning.
HISTORIES: dict[str, list[tuple[str, str]]] = {
    "prisma": [],
    "diesel": [("0A000", "CREATE OR REPLACE FUNCTION")],
    "flyway": [],
    "django": [],
    "golang_migrate": [],
    "rails/structure.sql": [],
}


@pytest.mark.parametrize("name", list(HISTORIES))
def test_a_history_of_a_tool(name: str, capsys: pytest.CaptureFixture[str]):
    assert main(["replay", str(FOLDER / name), "--writers", "0", "--pause", "0", "--autocommit", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    refused = [s for s in told["statements"] if s["verdict"] == "refused"]
    found = [
        (s["sqlstate"], s["statement"][: len(text)]) for s, (_, text) in zip(refused, HISTORIES[name], strict=True)
    ]
    assert found == HISTORIES[name]


def test_the_naming_of_each_is_found(capsys: pytest.CaptureFixture[str]):
    assert main(["replay", str(FOLDER / "flyway"), "--writers", "0", "--pause", "0", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    order = list(dict.fromkeys(s["migration"] for s in told["statements"]))
    assert (told["naming"], told["not_run"]) == ("Flyway", ["U10__close_accounts.sql"])
    assert order == [
        "V1__create_accounts.sql",
        "V1.1__transfers.sql",
        "V2__currencies.sql",
        "sub/V3__notes.sql",
        "V10__close_accounts.sql",
        "R__views.sql",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(HISTORIES))
def test_history_of_a_tool_fails_no_writer(name: str, capsys: pytest.CaptureFixture[str]):
    assert main(["replay", str(FOLDER / name), "--writers", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["foreground"]["failed"], told["anomalies"]) == ({}, [])
