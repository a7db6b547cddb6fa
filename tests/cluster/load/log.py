"""What a process of the load writes down: one JSON line at a time, so that a killed one leaves whole lines."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


class Log:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, what: str, **details: Any) -> None:
        os.write(self._file, json.dumps({"what": what, **details}).encode() + b"\n")


def read_log(path: Path) -> Iterator[Entry]:
    for line in path.read_text().splitlines():
        yield json.loads(line)
