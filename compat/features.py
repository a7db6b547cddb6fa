"""The features of one client, as functions that raise if the result is wrong.

Runs in the environments of the clients: uses the standard library only.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable

Check = Callable[[str], None]
_PROBLEM_CHARACTERS = 300


class Features:
    """In the order in which they are checked: a later one may need the objects of an earlier one."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def __call__(self, name: str) -> Callable[[Check], Check]:
        def add(check: Check) -> Check:
            self._checks[name] = check
            return check

        return add

    def run(self) -> None:
        """Checks all of them against the server named on the command line."""
        (url,) = sys.argv[1:]
        for name, check in self._checks.items():
            print(json.dumps({"feature": name, "problem": _problem_of(check, url)}), flush=True)


def expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{found!r} in place of {wanted!r}")


def _problem_of(check: Check, url: str) -> str:
    try:
        check(url)
    except Exception as problem:  # noqa: BLE001 - whatever a client raises is why its feature fails
        traceback.print_exc()
        lines = f"{type(problem).__name__}: {problem}".split()
        return " ".join(lines)[:_PROBLEM_CHARACTERS]
    return ""
