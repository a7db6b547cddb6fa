"""A history that is read while it is written, and what a killed client leaves."""

from pathlib import Path

from soak.checker.model import Append, Outcome, Read
from soak.checker.records import to_transactions
from soak.history import History, Recorder


def begin(recorder: Recorder, name: str, number: int = 0) -> None:
    recorder.note("begin", transaction=name, level="read committed", round=number)


def append(recorder: Recorder, name: str, value: int) -> None:
    recorder.note("invoke", transaction=name, operation={"kind": "append", "key": 1, "value": value})
    recorder.note("return", transaction=name, answer=[value])


def test_transactions_are_read_as_they_come(tmp_path: Path):
    recorder, history = Recorder(tmp_path, "c"), History(tmp_path)
    begin(recorder, "c.1")
    append(recorder, "c.1", 5)
    history.poll()
    assert not history.is_complete(0)
    recorder.note("commit", transaction="c.1")
    recorder.note("end", transaction="c.1", outcome="committed")
    recorder.note("changed", sql="alter table", sqlstate="00000", message="")
    history.poll()
    assert history.is_complete(0)
    assert [event["sql"] for event in history.events] == ["alter table"]
    (transaction,) = to_transactions(history.take_round(0))
    assert transaction.outcome is Outcome.COMMITTED
    assert transaction.operations == (Append(1, 5), Read(1, (5,)))
    assert transaction.began < transaction.statements[0].began < transaction.commit_began < (transaction.ended or 0)


def test_killed_client_has_aborted_unless_commit_was_sent(tmp_path: Path):
    recorder, history = Recorder(tmp_path, "c"), History(tmp_path)
    begin(recorder, "c.1")
    append(recorder, "c.1", 5)
    begin(recorder, "c.2")
    append(recorder, "c.2", 6)
    recorder.note("commit", transaction="c.2")
    begin(recorder, "c.3", 1)
    recorder.note("invoke", transaction="c.3", operation={"kind": "append", "key": 1, "value": 7}, commits=True)
    history.poll()
    history.bury(["other"])
    assert not history.is_complete(0)
    history.bury(["c"])
    assert [r.outcome for r in history.take_round(0)] == [Outcome.ABORTED, Outcome.UNKNOWN]
    assert [r.outcome for r in history.take_round(1)] == [Outcome.UNKNOWN]


def test_appends_rolled_back_to_a_savepoint_count_as_aborted(tmp_path: Path):
    recorder, history = Recorder(tmp_path, "c"), History(tmp_path)
    begin(recorder, "c.1")
    append(recorder, "c.1", 5)
    append(recorder, "c.1", 6)
    recorder.note("undo", transaction="c.1", first=1)
    recorder.note("commit", transaction="c.1")
    recorder.note("end", transaction="c.1", outcome="committed")
    history.poll()
    kept, undone = to_transactions(history.take_round(0))
    assert [a.value for a in kept.appends] == [5]
    assert [a.value for a in undone.appends] == [6]
    assert undone.outcome is Outcome.ABORTED
