"""Histories of a simulated database pass, and those of one without a rule do not."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soak.checker.isolation import check_isolation
from soak.checker.shrink import shrink
from tests.soak.simulator import Simulator


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), transactions=st.integers(1, 60), clients=st.integers(1, 6))
def test_history_of_a_right_database_passes(seed: int, transactions: int, clients: int):
    history = Simulator(random.Random(seed)).run(transactions, clients)
    assert check_isolation(history) == []


@pytest.mark.parametrize("without", ["lost updates", "frozen", "dirty", "skew"])
def test_missing_rule_is_found_and_shrunk(without: str):
    """In every one of four histories of 200 transactions; shrunk, each is a handful."""
    for seed in range(4):
        history = Simulator(random.Random(seed), without=without).run(200, 5)
        violations = check_isolation(history)
        assert violations, f"seed {seed}"
        small = shrink(history, violations[0])
        assert len(small) <= 5, f"seed {seed}: {small}"
        assert violations[0].anomaly in {v.anomaly for v in check_isolation(small)}
