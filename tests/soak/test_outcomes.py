"""What was acknowledged and is missing, what was refused and is there, and wrong answers are found."""

from typing import Any

import pytest

from soak.checker.model import Level, Outcome
from soak.checker.outcomes import Remains, check_answers, check_changes, check_outcomes, check_refusals
from soak.checker.records import Record, Step

TRANSFER = {"kind": "transfer", "id": 7, "payer": 1, "payee": 2, "amount": 5}
INSERT = {"kind": "insert", "items": [[3, "code 3", 30]]}
UPDATE = {"kind": "update", "items": [[3, "code 4", 31]]}
DELETE = {"kind": "delete", "items": [[3, None, None]]}
ROW, CHANGED = (3, "code 3", 30), (3, "code 4", 31)


def record(
    *operations: dict[str, Any],
    outcome: Outcome = Outcome.COMMITTED,
    began: int = 1,
    undone: bool = False,
    **details: Any,
) -> Record:
    steps = [Step(operation, began, undone=undone) for operation in operations]
    return Record(f"t{began}", "client", 0, Level.READ_COMMITTED, began, steps, outcome=outcome, **details)


def anomalies(records: list[Record], transfers: Any = (), items: Any = ()) -> list[str]:
    return [violation.anomaly for violation in check_outcomes(records, Remains(transfers, items))]


@pytest.mark.parametrize(
    ("outcome", "is_there", "expected"),
    [
        (Outcome.COMMITTED, True, []),
        (Outcome.COMMITTED, False, ["lost write"]),
        (Outcome.ABORTED, True, ["refused write"]),
        (Outcome.ABORTED, False, []),
        (Outcome.UNKNOWN, True, []),
        (Outcome.UNKNOWN, False, []),
    ],
)
def test_transfer_is_there_if_and_only_if_it_was_committed(outcome: Outcome, is_there: bool, expected: list[str]):
    assert anomalies([record(TRANSFER, outcome=outcome)], [(7, 1, 2, 5)] if is_there else []) == expected


def test_transfer_that_was_altered_or_that_no_client_made_is_found():
    assert anomalies([record(TRANSFER)], [(7, 1, 2, 6)]) == ["lost write"]
    assert anomalies([], [(8, 1, 2, 6)]) == ["phantom write"]
    assert anomalies([record(TRANSFER, undone=True)], [(7, 1, 2, 5)]) == ["phantom write"]


@pytest.mark.parametrize(
    ("records", "found", "fits"),
    [
        ([record(INSERT)], ROW, True),
        ([record(INSERT)], None, False),
        ([record(INSERT, outcome=Outcome.ABORTED)], ROW, False),
        ([record(INSERT, outcome=Outcome.UNKNOWN)], ROW, True),
        ([record(INSERT, outcome=Outcome.UNKNOWN)], None, True),
        ([record(INSERT), record(UPDATE, began=2)], CHANGED, True),
        ([record(INSERT), record(UPDATE, began=2)], ROW, False),
        ([record(INSERT), record(UPDATE, began=2, outcome=Outcome.UNKNOWN)], ROW, True),
        ([record(INSERT), record(UPDATE, began=2, outcome=Outcome.UNKNOWN)], CHANGED, True),
        ([record(INSERT), record(UPDATE, began=2, outcome=Outcome.UNKNOWN)], None, False),
        ([record(INSERT), record(DELETE, began=2)], ROW, False),
        ([record(INSERT, DELETE)], None, True),
        ([record(INSERT), record(UPDATE, began=2, undone=True)], ROW, True),
    ],
)
def test_item_is_in_a_state_that_its_transactions_explain(records: list[Record], found: Any, fits: bool):
    assert anomalies(records, items=[found] if found else []) == ([] if fits else ["wrong row"])


@pytest.mark.parametrize(
    ("operation", "answer", "is_right"),
    [
        ({"kind": "total"}, 100, True),
        ({"kind": "total"}, 99, False),
        (TRANSFER, [1, 1, 1], True),
        (TRANSFER, [1, 0, 1], False),
        (UPDATE, 0, False),
        ({"kind": "look", "expected": [[3, "a"]]}, [[3, "a"]], True),
        ({"kind": "look", "expected": [[3, "a"]]}, [], False),
    ],
)
def test_wrong_answer_is_found_in_committed_transactions_alone(operation: dict[str, Any], answer: Any, is_right: bool):
    for outcome in Outcome:
        checked = Record("t", "c", 0, Level.SERIALIZABLE, 1, [Step(operation, 1, 2, answer)], outcome=outcome)
        assert bool(list(check_answers([checked], 100))) is (outcome is Outcome.COMMITTED and not is_right)


@pytest.mark.parametrize(
    ("sqlstate", "message", "faults", "is_allowed"),
    [
        ("40001", "", (), True),
        (None, "the connection was lost", (), False),
        (None, "the connection was lost", ("kill",), True),
        ("53100", "disk full", ("kill",), False),
        ("53100", "disk full", ("disk",), True),
        ("08006", "no catalog", ("postgres",), True),
        ("23505", 'duplicate key value violates unique constraint "may_items_u"', (), True),
        ("23505", 'duplicate key value violates unique constraint "sure_items_u1"', (), False),
        ("42703", 'column "code" does not exist', (), False),
        ("XX000", "a defect", ("kill", "stop", "postgres", "disk"), False),
    ],
)
def test_only_some_refusals_are_allowed(sqlstate: str | None, message: str, faults: tuple[str, ...], is_allowed: bool):
    refused = record(INSERT, outcome=Outcome.ABORTED, sqlstate=sqlstate, message=message, where="insert")
    assert bool(list(check_refusals([refused], faults))) is not is_allowed


def test_schema_change_that_meets_a_defect_is_found():
    event = {"event": "changed", "client": "c", "sql": "alter", "sqlstate": "XX000", "message": "a defect"}
    assert [v.anomaly for v in check_changes([event], ())] == ["change refused without a reason"]
    assert not list(check_changes([{**event, "sqlstate": "42701"}], ()))
    broken = {"event": "broken", "client": "c", "message": "Traceback"}
    assert [v.anomaly for v in check_changes([broken], ())] == ["broken client"]
