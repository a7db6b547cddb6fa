"""What the README claims in words is what the kept results show in figures."""

from collections.abc import Callable

import pytest

from bench.headline.changes import CHANGES
from bench.page.figures import is_worse, percent_kept
from bench.page.files import README
from bench.page.headline import Lines, lines_of
from bench.store import KEPT, Line, read_all

TAKEN = read_all(KEPT)
READINGS: dict[str, Line] = {line.name: line for taken in TAKEN for line in taken.lines}
COMPARED: Lines = lines_of(TAKEN)


def kept(change: str, system: str) -> float:
    return percent_kept(COMPARED[change, system].facts)


def no_writer_waits_or_fails() -> bool:
    ours = [COMPARED[change.name, "seachange"] for change in CHANGES]
    return all(line.facts["failed"] == 0 and percent_kept(line.facts) > 90 for line in ours)


def every_constraint_is_validated() -> bool:
    ours = [COMPARED[change.name, "seachange"] for change in CHANGES if change.is_constraint]
    return all(line.facts["validated"] for line in ours)


def postgresql_locks_for_a_type() -> bool:
    return kept("type", "postgresql_plain") < 50 < kept("type", "seachange")


def postgresql_locks_for_an_index_without_concurrently() -> bool:
    return kept("index", "postgresql_plain") < 50 < kept("index", "postgresql_careful")


def seconds(change: str, system: str) -> float:
    line = COMPARED[change, system]
    return line.subject.median if line.subject is not None else float("inf")


def postgresql_adds_columns_faster() -> bool:
    return seconds("add_column", "postgresql_plain") < seconds("add_column", "seachange") / 2


def postgresql_takes_as_long_with_a_lock() -> bool:
    ratios = [seconds(change, "postgresql_plain") / seconds(change, "seachange") for change in ("type", "index")]
    return all(2 / 3 < ratio < 3 / 2 for ratio in ratios)


def batches_take_long() -> bool:
    return 3.5 < seconds("type", "postgresql_batched") / seconds("type", "seachange") < 4.5


def single_rows_cost_more() -> bool:
    return all(is_worse(READINGS[f"evolution.{mix}.rate"]) for mix in ("read_heavy", "update_heavy", "mixed"))


def lakes_have_neither_indexes_nor_keys() -> bool:
    lakes = ("ducklake", "deltalake")
    return all(COMPARED[change, lake].subject is None for change in ("index", "foreign_key") for lake in lakes)


def writers_in_flight_fail_on_lakes() -> bool:
    def failed(system: str) -> float:
        subject = READINGS[f"aborts.spanning.{system}"].subject
        assert subject is not None
        return subject.median

    return failed("seachange") == 0 < min(failed("ducklake"), failed("deltalake"))


CLAIMS: tuple[tuple[str, Callable[[], bool]], ...] = (
    ("No table is locked", no_writer_waits_or_fails),
    ("New constraints are validated against all rows", every_constraint_is_validated),
    ("It locks the table while a type changes", postgresql_locks_for_a_type),
    ("while an index is built unless you use CONCURRENTLY", postgresql_locks_for_an_index_without_concurrently),
    ("adds a column in a fraction of the time", postgresql_adds_columns_faster),
    ("takes about as long for a type or an index if it may lock the table", postgresql_takes_as_long_with_a_lock),
    ("took four times as long", batches_take_long),
    ("Single-row statements cost more than PostgreSQL's", single_rows_cost_more),
    ("They have no indexes, enforced unique or foreign keys", lakes_have_neither_indexes_nor_keys),
    ("writers in flight fail on DuckLake and Delta", writers_in_flight_fail_on_lakes),
)


@pytest.mark.parametrize(("words", "holds"), CLAIMS, ids=[words for words, _ in CLAIMS])
def test_the_readme_claims_what_was_measured(words: str, holds: Callable[[], bool]):
    assert words in " ".join(README.read_text().split())
    assert holds()


def test_everything_was_taken_in_full():
    assert {taken.scale for taken in TAKEN} == {"full"}
