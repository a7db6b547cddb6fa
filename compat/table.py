"""The results as a table for the terminal and as one for the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    OK = "ok"
    FAILS = "fails"
    # Fails, as `expected.py` says.
    KNOWN = "known to fail"
    # Listed in `expected.py`, and works by now: the list is to be mended.
    MENDED = "works, but is listed as failing"
    SKIPPED = "skipped"


_WORKING = (Verdict.OK, Verdict.MENDED)


@dataclass(frozen=True, slots=True)
class Cell:
    client: str
    feature: str
    verdict: Verdict
    reason: str = ""

    @property
    def is_bad(self) -> bool:
        return self.verdict is Verdict.FAILS


def judge(client: str, feature: str, problem: str, known: dict[tuple[str, str], str]) -> Cell:
    reason = known.get((client, feature))
    if not problem:
        return Cell(client, feature, Verdict.OK if reason is None else Verdict.MENDED)
    if reason is not None:
        return Cell(client, feature, Verdict.KNOWN, reason)
    return Cell(client, feature, Verdict.FAILS, problem)


def as_text(cells: Sequence[Cell]) -> str:
    rows = [(cell.client, cell.feature, _shown(cell)) for cell in cells]
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join(f"{client:{first}}  {feature:{second}}  {shown}" for client, feature, shown in rows)


def as_markdown(cells: Sequence[Cell]) -> str:
    """One line per client: what works, and what does not, with the reason."""
    lines = ["| client | works | does not |", "| --- | --- | --- |"]
    for client in dict.fromkeys(cell.client for cell in cells):
        own = [cell for cell in cells if cell.client == client]
        works = [f"`{cell.feature}`" for cell in own if cell.verdict in _WORKING]
        fails = [f"`{cell.feature}`: {cell.reason}" for cell in own if cell.verdict not in _WORKING]
        lines.append(f"| {client} | {' '.join(works)} | {'; '.join(fails)} |")
    return "\n".join(lines)


def _shown(cell: Cell) -> str:
    return f"{cell.verdict}: {cell.reason}" if cell.reason else str(cell.verdict)
