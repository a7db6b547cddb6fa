"""The protocol between a replay and its writer processes: the assignment, orders and answers, line by line."""

from __future__ import annotations

import base64
import pickle
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from seachange.replay.row_rules import Foresight

READY = "ready"
LEFT = "left"


class WriterOrder(StrEnum):
    """LEAVE names all tables that are about to be dropped; tables of an earlier LEAVE may be used again."""

    LEAVE = "leave"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class WriterAssignment:
    """`pace_ms`: the minimum interval between the starts of two transactions."""

    data: Path
    catalog: str | None
    number: int
    seed: int
    pace_ms: int
    foresight: Foresight

    def to_line(self) -> str:
        return base64.b64encode(pickle.dumps(self)).decode()

    @classmethod
    def from_line(cls, line: str) -> WriterAssignment:
        # Sent by the parent process only.
        found = pickle.loads(base64.b64decode(line))
        assert isinstance(found, cls)
        return found
