"""Constraints, sums and indexes that do not fit the raw rows are found; growth without bound too."""

from dataclasses import replace
from typing import Any

import pytest

from soak.checker.growth import MEGABYTE, Sample, check_growth
from soak.checker.rules import Audit, Probe, check_audit

ITEM = {"id": 1, "round": 0, "code": "A", "qty": 5, "slot": 1, "kind": 1, "note": "noted"}
GOOD = Audit(
    items=[ITEM, ITEM | {"id": 2, "code": "B", "slot": None}, ITEM | {"id": 3, "code": "C", "slot": None}],
    kinds=frozenset({1}),
    accounts={1: 90, 2: 110},
    opening={1: 100, 2: 100},
    transfers=[(1, 2, 10)],
    constraints={
        "items_pkey": "PRIMARY KEY (id)",
        "sure_items_u0": "UNIQUE (code)",
        "may_items_u": "UNIQUE (slot)",
        "sure_items_c1": "CHECK ((qty >= 0))",
        "may_items_c": "CHECK ((slot < 2000000000000))",
        "may_items_f": "FOREIGN KEY (kind) REFERENCES kinds(id)",
        "sure_items_k0": "CREATE UNIQUE INDEX sure_items_k0 ON public.items USING btree (lower(code))",
    },
    not_null=frozenset({"id", "note"}),
    probes=[Probe("code = %s", ("A",), (1,)), Probe("qty >= %s and qty < %s", (5, 15), (3, 1, 2))],
    count=3,
    accounts_by_balance=[(2, 110), (1, 90)],
)


def with_item(**values: Any) -> Audit:
    return replace(GOOD, items=[*GOOD.items, ITEM | {"id": 4, "code": "D", "slot": 4} | values], count=4, probes=[])


def test_good_snapshot_passes():
    assert check_audit(GOOD) == []
    assert check_audit(with_item()) == []


@pytest.mark.parametrize(
    ("audit", "anomalies"),
    [
        (with_item(id=1), {"broken unique key"}),
        (with_item(code="A"), {"broken unique key"}),
        (with_item(code="a"), {"broken unique key"}),
        (with_item(slot=1), {"broken unique key"}),
        (with_item(qty=-1), {"broken check"}),
        (with_item(slot=2_000_000_000_000), {"broken check"}),
        (with_item(kind=9), {"broken foreign key"}),
        (with_item(note=None), {"broken not-null"}),
        (replace(GOOD, accounts={1: 90, 2: 109}, accounts_by_balance=[(1, 90), (2, 109)]), {"wrong balance"}),
        (replace(GOOD, transfers=[]), {"wrong balance"}),
        (replace(GOOD, accounts_by_balance=[(1, 90)]), {"index against scan"}),
        (replace(GOOD, accounts_by_balance=[(1, 90), (2, 110), (2, 120)]), {"index against scan"}),
        (replace(GOOD, probes=[Probe("qty >= %s", (0,), (1, 3))]), {"index against scan"}),
        (replace(GOOD, count=4), {"index against scan"}),
        (replace(GOOD, probes=[Probe("code = %s", ("A",), ())]), {"index against scan"}),
        (replace(GOOD, probes=[Probe("slot = %s", (1,), (1, 2))]), {"index against scan"}),
        (replace(GOOD, probes=[Probe("slot = %s", (1,), (1, 1))]), {"index against scan"}),
    ],
)
def test_what_does_not_fit_the_rows_is_found(audit: Audit, anomalies: set[str]):
    assert {violation.anomaly for violation in check_audit(audit)} == anomalies


def test_constraint_that_is_not_in_force_is_not_checked():
    loose = replace(with_item(qty=-1, kind=9, code="A"), constraints={}, not_null=frozenset())
    assert check_audit(loose) == []


def series(measure: str, values: list[float]) -> list[Sample]:
    return [Sample("node0", measure, value) for value in values]


def test_growth_without_bound_is_found():
    steady = [300.0 * MEGABYTE + n for n in range(40)]
    leaking = [(300.0 + 20 * n) * MEGABYTE for n in range(40)]
    assert not list(check_growth(series("memory", steady)))
    assert [v.anomaly for v in check_growth(series("memory", leaking))] == ["growth"]
    assert not list(check_growth(series("memory", leaking[:5])))
    assert list(check_growth(series("threads", [20.0 + n for n in range(100)])))
    assert list(check_growth(series("latency", [0.01 * 1.2**n for n in range(40)])))
