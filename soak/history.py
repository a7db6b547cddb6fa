"""The history of a run: JSON lines, one file for each client, with an invocation and a completion for each statement.

**Invariant:** an invocation is written before the statement is sent, and a completion after its answer came; so the
history of a process that was killed says what may have happened.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soak.checker.model import Level, Outcome
from soak.checker.records import Record, Step

Entry = dict[str, Any]
SUFFIX = ".jsonl"


def now_us() -> int:
    """A monotonic clock that all processes of the machine share."""
    return time.monotonic_ns() // 1000


class Recorder:
    """The recorder of one client."""

    def __init__(self, folder: Path, client: str) -> None:
        self.client = client
        self._file = os.open(folder / f"{client}{SUFFIX}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, event: str, **details: Any) -> int:
        time_us = now_us()
        os.write(self._file, json.dumps({"event": event, "time": time_us, **details}).encode() + b"\n")
        return time_us


@dataclass(slots=True)
class Tail:
    """One file, read as it grows."""

    path: Path
    offset: int = 0
    rest: bytes = b""

    def read(self) -> Iterator[Entry]:
        with self.path.open("rb") as file:
            file.seek(self.offset)
            found = file.read()
        self.offset += len(found)
        *lines, self.rest = (self.rest + found).split(b"\n")
        return (json.loads(line) for line in lines)


@dataclass(slots=True)
class History:
    """The recordings of all clients so far, as records of transactions by the round that each began in."""

    folder: Path
    rounds: dict[int, dict[str, Record]] = field(default_factory=dict)
    # Entries that do not belong to a transaction: schema changes, and failures of clients.
    events: list[Entry] = field(default_factory=list)
    _tails: dict[str, Tail] = field(default_factory=dict)
    _open: dict[str, Record] = field(default_factory=dict)

    def poll(self) -> None:
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            client = path.name.removesuffix(SUFFIX)
            tail = self._tails.setdefault(client, Tail(path))
            for entry in tail.read():
                self._take(client, entry)

    def bury(self, clients: Iterable[str]) -> None:
        """Closes the records of dead clients: open transactions were not committed, unless COMMIT had been sent."""
        dead = set(clients)
        for record in [r for r in self._open.values() if r.client in dead]:
            record.outcome = Outcome.UNKNOWN if record.commit_began else Outcome.ABORTED
            record.where = "killed"
            del self._open[record.name]

    def is_complete(self, number: int) -> bool:
        return not any(record.round == number for record in self._open.values())

    def open_clients(self, number: int) -> set[str]:
        return {record.client for record in self._open.values() if record.round == number}

    def take_round(self, number: int) -> list[Record]:
        return list(self.rounds.pop(number, {}).values())

    def _take(self, client: str, entry: Entry) -> None:
        name = entry.get("transaction")
        if name is None:
            self.events.append({"client": client, **entry})
        elif entry["event"] == "begin":
            level = Level(entry["level"])
            record = Record(name, client, entry["round"], level, entry["time"])
            self._open[name] = self.rounds.setdefault(record.round, {})[name] = record
        else:
            take_entry(self._open[name], entry)
            if entry["event"] == "end":
                del self._open[name]


def take_entry(record: Record, entry: Entry) -> None:
    """Adds an entry to the record of its transaction."""
    time_us = entry["time"]
    match entry["event"]:
        case "invoke":
            record.steps.append(Step(entry["operation"], time_us))
            if entry.get("commits"):
                record.commit_began = time_us
        case "return":
            record.steps[-1].ended, record.steps[-1].answer = time_us, entry["answer"]
        case "undo":
            for step in record.steps[entry["first"] :]:
                step.undone = True
        case "commit":
            record.commit_began = time_us
        case "end":
            record.outcome = Outcome(entry["outcome"])
            record.ended = time_us if record.outcome is Outcome.COMMITTED else None
            record.sqlstate, record.message = entry.get("sqlstate"), entry.get("message", "")
            record.where = entry.get("where", "")
        case unknown:
            raise ValueError(f"an entry of a kind that is not known: {unknown}")
