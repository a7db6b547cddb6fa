"""The peers' side of the conversation: one JSON request per line in, one JSON answer per line out.

A request is `{"op": NAME, ...arguments}`; the answer is what the handler
returns, or `{"error": TEXT}`. Standard library only.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from itertools import cycle
from typing import Any, TextIO, TypeVar

Answer = Mapping[str, Any]
Handler = Callable[..., Answer]
Item = TypeVar("Item")


def serve(server: object) -> None:
    """Answers requests by the public methods of the server until the input ends."""
    names = [name for name in dir(server) if not name.startswith("_")]
    handlers = {name: getattr(server, name) for name in names}
    answers = claim_output()
    for line in sys.stdin:
        answers.write(json.dumps(answer(handlers, json.loads(line))) + "\n")
        answers.flush()


def claim_output() -> TextIO:
    """Keeps standard output for answers; what libraries print goes to standard error."""
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return own


def answer(handlers: Mapping[str, Handler], request: dict[str, Any]) -> Answer:
    op = request.pop("op")
    try:
        return handlers[op](**request)
    except Exception as error:  # noqa: BLE001 - the other side decides what an error means
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


def plain_rows(rows: Iterable[Iterable[object]]) -> list[list[object]]:
    """Rows as JSON values: numbers of all kinds as floats, unknown types as text."""
    return [[plain_value(value) for value in row] for row in rows]


def plain_value(value: object) -> object:
    if value is None or isinstance(value, str):
        return value
    return float(value) if isinstance(value, int | float | Decimal) else str(value)


def time_each(action: Callable[[Item], object], items: Iterable[Item]) -> list[float]:
    """The seconds that the action took for each item."""
    seconds = []
    for item in items:
        start = time.perf_counter()
        action(item)
        seconds.append(time.perf_counter() - start)
    return seconds


def span(kinds: Mapping[str, str], count: int, attempt: Callable[[str, int], bool]) -> Answer:
    """One transaction after the other, each with a schema change during it; `attempt` returns whether it committed."""
    texts = [text for _, text in zip(range(count), cycle(kinds.values()), strict=False)]
    failed = sum(not attempt(text, number) for number, text in enumerate(texts))
    return {"failed": failed, "transactions": count, "kinds": list(kinds)}
