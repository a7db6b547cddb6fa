"""How much a run measures: the bounds apply to `full`; `small` shows that everything runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    name: str
    # Rounds alternate subject and peer; a repetition is one query within one.
    rounds: int
    repetitions: int
    commits: int
    commits_warm_up: int
    commits_earlier: int
    processes: int
    window_seconds: float
    rows: int
    rows_updated: int
    rows_in_image: int
    lookups: int
    lookups_peer: int
    tpch_factor: float
    # Rounds of what takes minutes, and the tables of which it is seen how it grows.
    rounds_long: int
    rows_growing: tuple[int, ...]
    # Of each table that schema changes are estimated for.
    rows_estimated: int
    # Transactions a second that are asked of everybody while tables change.
    rate: float


FULL = Scale(
    name="full",
    rounds=5,
    repetitions=15,
    commits=200,
    commits_warm_up=20,
    commits_earlier=20_000,
    processes=16,
    window_seconds=5.0,
    rows=10_000_000,
    rows_updated=5_000,
    rows_in_image=10_000,
    lookups=1_000,
    lookups_peer=20,
    tpch_factor=1.0,
    rounds_long=3,
    rows_growing=(1_000_000, 10_000_000, 50_000_000),
    rows_estimated=100_000,
    rate=100.0,
)

SMALL = Scale(
    name="small",
    rounds=2,
    repetitions=3,
    commits=30,
    commits_warm_up=5,
    commits_earlier=1_000,
    processes=4,
    window_seconds=1.0,
    rows=200_000,
    rows_updated=500,
    rows_in_image=1_000,
    lookups=100,
    lookups_peer=5,
    tpch_factor=0.02,
    rounds_long=1,
    rows_growing=(100_000, 200_000, 400_000),
    rows_estimated=20_000,
    rate=50.0,
)

SCALES = {scale.name: scale for scale in (SMALL, FULL)}
