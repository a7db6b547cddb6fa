"""A limit for computations over JSON documents whose steps are a product of sizes, since they cannot be interrupted."""

from __future__ import annotations

from seachange import errors

JSON_STEPS_MAX = 1_000_000


class StepBudget:
    """The steps that one call may still take."""

    __slots__ = ("_left", "_what")

    def __init__(self, what: str) -> None:
        self._left = JSON_STEPS_MAX
        self._what = what

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise errors.ProgramLimitExceeded(detail=f"{self._what} takes more than {JSON_STEPS_MAX} steps")
