"""A seeded series of operations, and what the tables hold after each: the model that a database is compared with.

**Invariant:** a step is a pure function of the contents before it, so that the contents after any number of steps are
known without a database.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Row = tuple[Any, ...]
LOAD_ROWS = 120
ADDED_VALUE = 7

# The order is fixed, so that every fault point is passed; keys and counts come from the seed.
KINDS = (
    "create",
    "insert",
    "load",
    "change",
    "insert",
    "compact",
    "delete",
    "collect",
    "add column",
    "insert",
    "load",
    "change",
    "compact",
    "delete",
    "collect",
    "change",
    "insert",
)


@dataclass(frozen=True, slots=True)
class Step:
    """`keys` are the ids it inserts, changes or deletes; `marker` is what a write leaves in every row it touches."""

    kind: str
    marker: str
    keys: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Contents:
    """The rows that both tables hold, by id. A step without a table has none."""

    exists: bool
    rows: Mapping[int, Row]
    added_columns: int = 0

    def table(self) -> list[Row]:
        return sorted(self.rows.values())


NOTHING = Contents(exists=False, rows={})


@lru_cache(maxsize=64)
def make_script(seed: int) -> tuple[Step, ...]:
    chance = random.Random(seed)
    contents = NOTHING
    steps: list[Step] = []
    fresh = 0
    for number, kind in enumerate(KINDS):
        keys: tuple[int, ...] = ()
        if kind in ("insert", "load"):
            count = LOAD_ROWS if kind == "load" else chance.randint(2, 5)
            keys = tuple(range(fresh, fresh + count))
            fresh += count
        elif kind in ("change", "delete"):
            keys = tuple(sorted(chance.sample(sorted(contents.rows), chance.randint(3, 9))))
        steps.append(Step(kind, f"{kind} {number}", keys))
        contents = apply_step(contents, steps[-1])
    return tuple(steps)


def contents_after(seed: int, count: int) -> Contents:
    contents = NOTHING
    for step in make_script(seed)[:count]:
        contents = apply_step(contents, step)
    return contents


def apply_step(before: Contents, step: Step) -> Contents:
    rows = dict(before.rows)
    match step.kind:
        case "create":
            return Contents(exists=True, rows={})
        case "insert" | "load":
            rows |= {key: new_row(before, step, key) for key in step.keys}
        case "change":
            rows |= {key: changed_row(rows[key], step) for key in step.keys}
        case "delete":
            rows = {key: row for key, row in rows.items() if key not in step.keys}
        case "add column":
            rows = {key: (*row, ADDED_VALUE) for key, row in rows.items()}
            return Contents(True, rows, before.added_columns + 1)
        case "compact" | "collect":
            return before
        case _:
            raise AssertionError(step.kind)
    return Contents(before.exists, rows, before.added_columns)


def new_row(before: Contents, step: Step, key: int) -> Row:
    return (key, f"code {key}", 0, step.marker, *([key] * before.added_columns))


def changed_row(row: Row, step: Step) -> Row:
    """Counts up, so that a change that is applied twice shows; every other row moves in the secondary index too."""
    key, code, n, _, *rest = row
    moved = f"code {key} moved {n + 1}" if key % 2 else code
    return (key, moved, n + 1, step.marker, *rest)
