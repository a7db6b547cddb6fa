"""Outcomes: what was acknowledged is there, what was refused is not, and no statement gave a wrong answer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from soak.checker.model import Outcome, Violation
from soak.checker.records import Record, Step

Row = tuple[Any, ...]
# The state of an item: code and quantity, or None.
Item = tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class Remains:
    """The rows of one round after all of its transactions have ended."""

    # id, payer, payee, amount
    transfers: Sequence[Row]
    # id, code, qty
    items: Sequence[Row]


def check_outcomes(records: Sequence[Record], remains: Remains) -> list[Violation]:
    return [*_check_transfers(records, remains.transfers), *_check_items(records, remains.items)]


def _check_transfers(records: Iterable[Record], rows: Sequence[Row]) -> Iterator[Violation]:
    sent = {
        step.operation["id"]: (record, step.operation)
        for record, step in _steps(records)
        if step.kind == "transfer" and not step.undone
    }
    found = {row[0]: tuple(row[1:]) for row in rows}
    for id_, (record, operation) in sent.items():
        expected = (operation["payer"], operation["payee"], operation["amount"])
        if record.outcome is Outcome.COMMITTED and found.get(id_) != expected:
            yield _violation("lost write", record, f"transfer {id_} is {found.get(id_)} instead of {expected}")
        if record.outcome is Outcome.ABORTED and id_ in found:
            yield _violation("refused write", record, f"transfer {id_} is there")
    for id_ in sorted(found.keys() - sent.keys()):
        yield Violation(
            "phantom write", f"transfer {id_} is there, and no transaction made it that was not rolled back"
        )


def _check_items(records: Iterable[Record], rows: Sequence[Row]) -> Iterator[Violation]:
    possible, last = expected_items(records)
    found: dict[int, Item] = {id_: (code, qty) for id_, code, qty in rows}
    for id_ in sorted(possible.keys() | found.keys()):
        states = possible.get(id_, [None])
        if found.get(id_) not in states:
            name = last[id_].name if id_ in last else "none"
            detail = f"item {id_} is {found.get(id_)} instead of {' or '.join(map(str, states))}; last: {name}"
            yield Violation("wrong row", detail, (name,) if id_ in last else ())


def expected_items(records: Iterable[Record]) -> tuple[dict[int, list[Item]], dict[int, Record]]:
    """The possible states of each item, and the last transaction that wrote it. An item has one writer."""
    possible: dict[int, list[Item]] = defaultdict(lambda: [None])
    last: dict[int, Record] = {}
    for record in sorted(records, key=lambda record: record.began):
        if record.outcome is not Outcome.ABORTED:
            for id_, item in _effects(record).items():
                last[id_] = record
                kept = [] if record.outcome is Outcome.COMMITTED else possible[id_]
                possible[id_] = [*kept, item]
    return dict(possible), last


def _effects(record: Record) -> Mapping[int, Item]:
    effects: dict[int, Item] = {}
    for step in record.steps:
        if step.kind in ("insert", "update", "delete") and not step.undone:
            effects |= {id_: None if code is None else (code, qty) for id_, code, qty in step.operation["items"]}
    return effects


# Answers.


def check_answers(records: Iterable[Record], total: int) -> Iterator[Violation]:
    """Of transactions that committed: counts of rows, own rows, and the sum of all balances."""
    for record, step in _steps(records):
        if record.outcome is not Outcome.COMMITTED or step.answer is None:
            continue
        expected = _expected_answer(step, total)
        if expected is not None and step.answer != expected:
            detail = f"{step.operation}: {step.answer} instead of {expected} at {record.level}"
            yield _violation("wrong answer", record, detail)


def _expected_answer(step: Step, total: int) -> Any:
    match step.kind:
        case "transfer":
            return [1, 1, 1]
        case "total":
            return total
        case "insert" | "update" | "delete":
            return len(step.operation["items"])
        case "look":
            return step.operation["expected"]
        case "extra":
            return 1
        case _:
            return None


# Refusals.

RETRIES = frozenset({"40001", "40P01", "55P03"})
# The SQLSTATEs that each kind of fault explains. None: the connection was lost.
BY_FAULT: Mapping[str, frozenset[str | None]] = {
    "kill": frozenset({None, "57P01", "57P03", "72000", "08006"}),
    "stop": frozenset({None, "57P01", "57P03", "72000", "08006", "57014"}),
    "postgres": frozenset({None, "08006", "08003", "08007", "40003", "57P01", "57P03", "57014"}),
    "disk": frozenset({"53100", "58030"}),
    "store": frozenset({"58030", "57014"}),
}
_MAY = re.compile(r'"(may_\w+)"|column "?note"?')
_GONE = frozenset({"42703", "428C9"})
_NO_SIDE = frozenset({"42P01"})


def check_refusals(records: Iterable[Record], faults: Iterable[str]) -> Iterator[Violation]:
    """No transaction is refused without a reason."""
    excused = RETRIES.union(*(BY_FAULT[fault] for fault in faults))
    for record in records:
        if record.where in ("rollback", "killed") or record.outcome is Outcome.COMMITTED:
            continue
        state = record.sqlstate
        by_constraint = (state or "").startswith("23") and _MAY.search(record.message)
        by_column = state in _GONE and any(step.kind == "extra" for step in record.steps)
        by_table = state in _NO_SIDE and any(step.kind == "side" for step in record.steps)
        if not (state in excused or by_constraint or by_column or by_table):
            detail = f"refused in {record.where} at {record.level}: {state}: {record.message}"
            yield _violation("refused without a reason", record, detail)


# What a change of a schema may answer besides: another made or dropped the same thing, has it in work, or has
# cancelled it; or rows break what is to hold.
CHANGE_STATES = frozenset(
    [
        "42P07",
        "42710",
        "42804",
        "42883",
        "42704",
        "42701",
        "42703",
        "42P01",
        "42P16",
        "42601",
        "42611",
        "2BP01",
        "55006",
        "55000",
        "23505",
        "23514",
        "23502",
        "23503",
        "57014",
        "428C9",
    ]
)


def check_changes(events: Iterable[Mapping[str, Any]], faults: Iterable[str]) -> Iterator[Violation]:
    excused = (RETRIES | CHANGE_STATES | {"00000"}).union(*(BY_FAULT[fault] for fault in faults))
    for event in events:
        if event["event"] == "broken":
            yield Violation("broken client", f"{event['client']}: {event['message']}")
        elif event["event"] == "changed" and event["sqlstate"] not in excused and not _is_limit(event):
            detail = f"{event['sql']}: {event['sqlstate']}: {event['message']}"
            yield Violation("change refused without a reason", detail)


def _is_limit(event: Mapping[str, Any]) -> bool:
    """Whether it is a change that is documented as not possible in a transaction block."""
    return event["sqlstate"] == "0A000" and "transaction" in event["message"]


def _steps(records: Iterable[Record]) -> Iterator[tuple[Record, Step]]:
    return ((record, step) for record in records for step in record.steps)


def _violation(anomaly: str, record: Record, detail: str) -> Violation:
    return Violation(anomaly, f"{record.name} ({record.outcome}): {detail}", (record.name,))
