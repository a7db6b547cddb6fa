"""Enum labels: rows store a text that never changes, expressions use the current label.

**Invariant:** as long as no value was relabelled, both are the same text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from seachange import errors
from seachange.model.schema.objects import EnumType


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a type in order. `stored` maps labels to stored texts, `shown` is the reverse."""

    name: str
    order: tuple[str, ...]
    stored: dict[str, str]
    shown: dict[str, str]
    is_plain: bool

    def hold(self, label: object) -> Any:
        """The stored text of a label, or of each label of a list."""
        if isinstance(label, list):
            return [None if each is None else self.hold(each) for each in label]
        found = self.stored.get(label) if isinstance(label, str) else None
        if found is None:
            raise errors.InvalidTextRepresentation(type=f"enum {self.name}", value=label)
        return found

    @property
    def duckdb(self) -> str:
        """DuckDB's type of the labels; there is none without labels."""
        return f"ENUM({', '.join(map(quote_text, self.order))})" if self.order else "VARCHAR"

    def show(self, held: Any) -> Any:
        """The label of a stored text."""
        if isinstance(held, list):
            return [None if each is None else self.shown[each] for each in held]
        return None if held is None else self.shown[held]

    def decode(self, text: str, is_list: bool = False) -> str:
        """DuckDB text that converts another text's stored value to its label."""
        if is_list:
            return f"CAST({relabel_list(text, self.shown)} AS {self.duckdb}[])"
        return f"CAST({relabel(text, self.shown)} AS {self.duckdb})"


@lru_cache(maxsize=1024)
def labels_of(type_: EnumType) -> Labels:
    stored = {value.label: value.held for value in type_.values}
    shown = {held: label for label, held in stored.items()}
    return Labels(type_.name, tuple(stored), stored, shown, all(held == label for held, label in shown.items()))


def relabel(text: str, names: Iterable[tuple[str, str]] | dict[str, str]) -> str:
    """DuckDB text that renames each value; the text itself if nothing changes."""
    pairs = names.items() if isinstance(names, dict) else names
    cases = [f" WHEN {quote_text(old)} THEN {quote_text(new)}" for old, new in pairs if old != new]
    return f"CASE {text}{''.join(cases)} ELSE {text} END" if cases else text


def relabel_list(text: str, names: Iterable[tuple[str, str]] | dict[str, str]) -> str:
    """The same of each element."""
    relabelled = relabel("label", names)
    return text if relabelled == "label" else f"list_transform({text}, lambda label: {relabelled})"


def quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
