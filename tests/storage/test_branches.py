"""The order in which files are read, and over how many joins they are spread."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from seachange.storage import plan


@dataclass
class File:
    """The parts of a FileSlice that are used."""

    key_min: int
    rows: int = 500_000

    @property
    def segment(self):
        return self

    @property
    def superseded(self):
        return np.array([0])


def files(keys: Iterable[int]) -> Any:
    """Stand-ins that have what the order and the split look at."""
    return [File(key) for key in keys]


@pytest.mark.parametrize(
    ("keys", "order"),
    [([], []), ([1], [1]), ([2, 1], [1, 2]), ([3, 1, 2], [1, 3, 2]), ([1, 2, 3, 4, 5], [1, 5, 2, 3, 4])],
)
def test_both_ends_are_read_first(keys, order):
    assert [f.segment.key_min for f in plan._ends_first(files(keys))] == order


@pytest.mark.parametrize(("count", "joins"), [(0, 0), (1, 1), (2, 2), (3, 2), (5, 3), (20, 4)])
def test_files_are_split_into_few_joins(count, joins):
    parts = list(plan._split(files(range(count))))
    assert len(parts) == joins
    assert sorted(f.segment.key_min for part in parts for f in part) == [*range(count)]
