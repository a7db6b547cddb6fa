"""`seachange feed`, in processes of its own."""

import json
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import seachange
from tests.support.forks import Fork
from tests.support.workers import wait_until


@pytest.fixture
def data(tmp_path: Path) -> Path:
    run(
        tmp_path,
        "create table t (id int primary key, n numeric)",
        "create feed f for table t",
        "insert into t values (1, 12345678901234567890.5)",
        "update t set n = 0.10",
    )
    return tmp_path


def run(data: Path, *statements: str) -> list[Any]:
    with closing(seachange.connect(data, autocommit=True)) as db:
        for statement in statements:
            cursor = db.execute(statement)
        return cursor.fetchall() if cursor.description else []


def feed(data: Path, *options: str) -> list[str]:
    with Fork("seachange.cli.main", "feed", "f", "--data", str(data), *options) as process:
        done = process.communicate("")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_changes_are_written_once(data: Path):
    first, second = feed(data)
    assert '"after": {"n": 12345678901234567890.5, "id": 1}' in first
    assert list(json.loads(second)) == ["seq", "ordinal", "relation", "op", "committed_at", "before", "after", "schema"]
    assert feed(data) == []
    run(data, "delete from t")
    (third,) = feed(data)
    assert json.loads(third)["op"] == "delete"


def test_until_is_the_last_commit(data: Path):
    seq = json.loads(feed(data)[0])["seq"]
    run(data, "drop feed f", f"create feed f for table t from {seq - 1}")
    assert len(feed(data, "--until", str(seq))) == 1
    assert len(feed(data)) == 1


def test_debezium_envelopes(data: Path):
    run(data, "alter table t add column a int", "delete from t")
    made = [json.loads(line) for line in feed(data, "--format", "debezium")]
    assert [event.get("op") for event in made] == ["c", "u", None, "d"]
    assert made[0]["source"]["table"] == "t"
    assert made[1]["before"]["id"] == made[1]["after"]["id"] == 1
    assert made[2]["tableChanges"][0]["type"] == "ALTER"


def test_nothing_is_lost_when_it_is_killed(data: Path):
    run(data, "insert into t select i, i from generate_series(2, 50) g (i)")
    with Fork("seachange.cli.main", "feed", "f", "--data", str(data), "--follow") as process:
        seen = {read_key(process.stdout.readline().decode()) for _ in range(51)}
        run(data, "insert into t select i, i from generate_series(51, 60) g (i)")
        seen |= {read_key(process.stdout.readline().decode()) for _ in range(5)}
        process.send_signal(signal.SIGKILL)
        # What it had written is in the pipe; the last line may not be whole.
        written, _, _ = process.stdout.read().decode().rpartition("\n")
        seen |= {read_key(line) for line in written.splitlines()}
    seen |= {read_key(line) for line in feed(data)}
    events = run(data, "select seq, ordinal from seachange.feed('{t}') where op <> 'schema'")
    assert seen >= set(events)
    wait_until(lambda: run(data, "select lag_rows from seachange.feeds") == [(0,)], "the feed to be read")


def read_key(line: str) -> tuple[int, int]:
    event = json.loads(line)
    return event["seq"], event["ordinal"]


@pytest.mark.parametrize("name", ["nowhere", "f"])
def test_errors_have_codes(tmp_path: Path, name: str):
    run(tmp_path, "create table t (id int)", "create feed f for table t")
    with closing(seachange.connect(tmp_path)) as db:
        db.session.node.parts.catalog.end_feed("seachange", "f", "too far behind")
    with Fork("seachange.cli.main", "feed", name, "--data", str(tmp_path)) as process:
        done = process.communicate("")
    assert done.returncode == 1
    assert done.stderr.startswith("ERROR:  42704" if name == "nowhere" else "ERROR:  72000")
