"""Anomalies of a database, as values that print as one sentence each.

The six items are those of the definition of a database that is consistent with its schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any


class AnomalyRule(IntEnum):
    BELONGS_TO_INDEX = 1
    BELONGS_TO_COLUMN = 2
    POINTS_TO_ROW = 3
    REQUIRED_VALUE = 4
    COMPLETE_INDEX = 5
    CONSTRAINT = 6


class AnomalyKind(Enum):
    """An item of the definition, and a sentence in which `{at}` names the index, table and key."""

    FILE_MISSING = (AnomalyRule.COMPLETE_INDEX, "the file {detail} of {at} is missing")
    FILE_DAMAGED = (AnomalyRule.COMPLETE_INDEX, "a file of {at} is damaged: {detail}")
    FILE_DIFFERS = (AnomalyRule.BELONGS_TO_INDEX, "a file of {at} is not what the catalog recorded: {detail}")
    FILE_COLUMNS = (AnomalyRule.BELONGS_TO_COLUMN, "a file of {at} does not have the columns of its layout: {detail}")
    FILE_UNREFERENCED = (
        AnomalyRule.BELONGS_TO_INDEX,
        "the file {detail} is one that no commit, live writer or job refers to",
    )
    ROWS_DAMAGED = (AnomalyRule.COMPLETE_INDEX, "rows of {at} in the catalog are damaged: {detail}")
    UNKNOWN_LAYOUT = (
        AnomalyRule.BELONGS_TO_COLUMN,
        "{at} holds rows in a layout that the table does not have: {detail}",
    )
    UNSORTED = (AnomalyRule.BELONGS_TO_INDEX, "a file of {at} is not in key order: {detail}")
    BAD_DELETED = (
        AnomalyRule.BELONGS_TO_INDEX,
        "the generation of {at} hides positions that a file does not have: {detail}",
    )
    TWO_VERSIONS = (AnomalyRule.CONSTRAINT, "{at} has two versions at one sequence: {detail}")
    BROKEN_PROMISE = (AnomalyRule.CONSTRAINT, "{at} was written as new while a version was visible: {detail}")
    SCAN_MISSES = (AnomalyRule.COMPLETE_INDEX, "a scan of {at} does not show what its segments hold ({detail})")
    SCAN_INVENTS = (AnomalyRule.POINTS_TO_ROW, "a scan of {at} shows what its segments do not hold ({detail})")
    LOOKUP_DIFFERS = (AnomalyRule.COMPLETE_INDEX, "a look-up in {at} finds {detail}")
    MISSING_ENTRY = (AnomalyRule.COMPLETE_INDEX, "{at} has no entry for a row of the table ({detail})")
    ORPHAN_ENTRY = (AnomalyRule.POINTS_TO_ROW, "{at} has an entry that no row of the table calls for ({detail})")
    NULL_VALUE = (AnomalyRule.REQUIRED_VALUE, "{at} has no value in the required column {detail}")
    DUPLICATE_KEY = (AnomalyRule.CONSTRAINT, "{at} is a unique key that {detail} rows have")
    CHECK_BROKEN = (AnomalyRule.CONSTRAINT, "{at} does not fulfil the check {detail}")
    GENERATED_WRONG = (AnomalyRule.CONSTRAINT, "{at} does not have the value that its other columns give {detail}")
    ORPHAN_ROW = (AnomalyRule.CONSTRAINT, "{at} refers to a row that does not exist, by the foreign key {detail}")
    UNREADABLE = (AnomalyRule.COMPLETE_INDEX, "{at} could not be compared: {detail}")

    def __init__(self, item: AnomalyRule, sentence: str) -> None:
        self.item = item
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class Anomaly:
    """`key`: the names and values of the key columns if one entry or row is concerned."""

    kind: AnomalyKind
    table: str
    index: str
    key: tuple[tuple[str, Any], ...] = ()
    detail: str = ""

    @property
    def item(self) -> AnomalyRule:
        return self.kind.item

    def __str__(self) -> str:
        names = ", ".join(name for name, _ in self.key)
        values = ", ".join("NULL" if value is None else str(value) for _, value in self.key)
        key = f"key ({names}) = ({values}) of " if self.key else ""
        at = f'{key}index "{self.index}" of table "{self.table}"'
        sentence = self.kind.sentence.format(at=at, detail=self.detail)
        return f"{sentence[0].upper()}{sentence[1:]}."


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of an index was compared key by key."""

    table: str
    index: str
    rows_checked: int
    rows_total: int

    @property
    def is_whole(self) -> bool:
        return self.rows_checked >= self.rows_total

    def __str__(self) -> str:
        share = 100.0 if not self.rows_total else 100.0 * self.rows_checked / self.rows_total
        return (
            f'Index "{self.index}" of table "{self.table}": {self.rows_checked} of {self.rows_total} '
            f"stored rows ({share:.1f} %) were compared key by key."
        )
