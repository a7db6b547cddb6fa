"""Errors of Spark, condensed to one line."""

from __future__ import annotations

import re
from pathlib import Path

from seachange import errors

_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def failure(said: str, log: Path) -> errors.Error:
    missing = _MISSING.search(said)
    if missing is None:
        return errors.SparkFailed(detail=cause(said), log=log)
    return errors.SparkUnavailable(
        detail=f"the Python of its executors has no module {missing.group(1)}",
        remedy="Install this version of Seachange there, or set seachange.spark.python to an interpreter that has it.",
    )


def cause(said: str) -> str:
    """The first and last lines that say what happened, out of several pages."""
    lines = [line.strip() for line in said.splitlines()]
    telling = [line for line in lines if line and not line.startswith(("at ", "File ", "Driver stacktrace"))]
    return " / ".join([telling[0], telling[-1]] if len(telling) > 1 else telling)[:500]
