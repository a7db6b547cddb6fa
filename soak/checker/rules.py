"""Constraints, sums and indexes, recomputed from the raw rows of one snapshot."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from soak.checker.model import Violation

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Probe:
    """A query of items by predicate, and the ids that the database returned."""

    predicate: str
    values: tuple[Any, ...]
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """The reads of one transaction at one snapshot."""

    items: Sequence[Row]
    kinds: frozenset[int]
    accounts: Mapping[int, int]
    opening: Mapping[int, int]
    # payer, payee, amount
    transfers: Sequence[tuple[int, int, int]]
    # The definition of each constraint and each unique index that is in force, by name.
    constraints: Mapping[str, str]
    not_null: frozenset[str]
    probes: Sequence[Probe]
    # count(*) by its own query.
    count: int
    # What an index on the balance has: account and balance.
    accounts_by_balance: Sequence[tuple[int, int]]


def check_audit(audit: Audit) -> list[Violation]:
    return [
        *_check_balances(audit),
        *(v for name, text in sorted(audit.constraints.items()) for v in _check_constraint(audit, name, text)),
        *_check_not_null(audit),
        *_check_probes(audit),
    ]


def _check_balances(audit: Audit) -> Iterator[Violation]:
    """A balance equals the opening balance plus the transfers since."""
    expected = Counter(audit.opening)
    for payer, payee, amount in audit.transfers:
        expected[payer] -= amount
        expected[payee] += amount
    for id_ in sorted(expected.keys() | audit.accounts.keys()):
        if audit.accounts.get(id_) != expected[id_]:
            detail = f"account {id_} has {audit.accounts.get(id_)}; with its transfers it is {expected[id_]}"
            yield Violation("wrong balance", detail)


# Constraints.

_KEY = re.compile(r"^(PRIMARY KEY|UNIQUE)(?: NULLS DISTINCT)? \((?P<columns>[^)]*)\)$")
_UNIQUE_INDEX = re.compile(r"^CREATE UNIQUE INDEX .*? USING btree \((?P<columns>.*?)\)(?P<rest>.*)$")
_FOREIGN_KEY = re.compile(r"^FOREIGN KEY \(kind\) REFERENCES \w*\.?kinds")
_EXPRESSIONS: Mapping[str, Callable[[Row], Any]] = {
    "lower(code)": lambda row: row["code"].lower(),
    "lower(code": lambda row: row["code"].lower(),
}
# By the name of the constraint, without its number.
_CHECKS: Mapping[str, Callable[[Row], bool]] = {
    "sure_items_c": lambda row: row["qty"] >= 0,
    "may_items_c": lambda row: row["slot"] is None or row["slot"] < 2_000_000_000_000,
}


def _check_constraint(audit: Audit, name: str, text: str) -> Iterator[Violation]:
    key = _KEY.match(text) or _UNIQUE_INDEX.match(text)
    if key is not None:
        yield from _check_unique(audit.items, name, [part.strip() for part in key["columns"].split(",")])
    elif _FOREIGN_KEY.match(text):
        for row in audit.items:
            if row["kind"] is not None and row["kind"] not in audit.kinds:
                yield Violation("broken foreign key", f"{name}: item {row['id']} has kind {row['kind']}")
    elif (holds := _CHECKS.get(name.rstrip("0123456789"))) is not None:
        for row in audit.items:
            if not holds(row):
                yield Violation("broken check", f"{name}: {dict(row)}")


def _check_unique(rows: Sequence[Row], name: str, columns: Sequence[str]) -> Iterator[Violation]:
    known = rows[0].keys() if rows else ()
    if not all(column in known or column in _EXPRESSIONS for column in columns):
        return
    keys = Counter(tuple(_EXPRESSIONS[c](row) if c in _EXPRESSIONS else row[c] for c in columns) for row in rows)
    for key, count in keys.items():
        if count > 1 and None not in key:
            yield Violation("broken unique key", f"{name}: {count} items have {dict(zip(columns, key, strict=True))}")


def _check_not_null(audit: Audit) -> Iterator[Violation]:
    for row in audit.items:
        for column in audit.not_null & row.keys():
            if row[column] is None:
                yield Violation("broken not-null", f"item {row['id']} has no {column}")


# Indexes.

# What a probe asks for, in Python.
PREDICATES: Mapping[str, Callable[..., bool]] = {
    "id = %s": lambda row, id_: row["id"] == id_,
    "code = %s": lambda row, code: row["code"] == code,
    "code || '' = %s": lambda row, code: row["code"] == code,
    "lower(code) = %s": lambda row, code: row["code"].lower() == code,
    "slot = %s": lambda row, slot: row["slot"] == slot,
    "qty = %s": lambda row, qty: row["qty"] == qty,
    "qty >= %s and qty < %s": lambda row, low, high: low <= row["qty"] < high,
    "kind = %s and qty = %s": lambda row, kind, qty: row["kind"] == kind and row["qty"] == qty,
    # All rows, by an index on the column if there is one.
    "code >= %s": lambda row, low: row["code"] >= low,
    "lower(code) >= %s": lambda row, low: row["code"].lower() >= low,
    "qty >= %s": lambda row, low: row["qty"] >= low,
    "slot >= %s": lambda row, low: row["slot"] is not None and row["slot"] >= low,
    "kind >= %s": lambda row, low: row["kind"] is not None and row["kind"] >= low,
    "note = %s and qty > 50": lambda row, note, *_: row["note"] == note and row["qty"] > 50,
}


def _check_probes(audit: Audit) -> Iterator[Violation]:
    if audit.count != len(audit.items):
        yield Violation("index against scan", f"count(*) is {audit.count}, and a scan has {len(audit.items)} items")
    if sorted(audit.accounts_by_balance) != sorted(audit.accounts.items()):
        detail = (
            f"accounts by balance: {sorted(audit.accounts_by_balance)}, by a scan: {sorted(audit.accounts.items())}"
        )
        yield Violation("index against scan", detail)
    for probe in audit.probes:
        holds = PREDICATES[probe.predicate]
        expected = sorted(row["id"] for row in audit.items if holds(row, *probe.values))
        if sorted(probe.ids) != expected:
            missing, extra = sorted(set(expected) - set(probe.ids)), sorted(set(probe.ids) - set(expected))
            detail = f"items where {probe.predicate} {probe.values}: missing {missing[:5]}, extra {extra[:5]}"
            yield Violation("index against scan", f"{detail} of {len(expected)}")
