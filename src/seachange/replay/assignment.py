"""What a writer is told when it starts and later, line by line, and what it answers."""

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
    """LEAVE names the tables that are about to be dropped, all at once: whoever was left before may be used again."""

    LEAVE = "leave"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class WriterAssignment:
    """`pace_ms`: how long a transaction takes at least, with what is waited for after it."""

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
        # From the process that has started this one, and nobody else.
        found = pickle.loads(base64.b64decode(line))
        assert isinstance(found, cls)
        return found
