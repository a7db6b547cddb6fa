"""The retry policy of jobs: for each error, whether the change is reverted or retried."""

from __future__ import annotations

from enum import StrEnum

from seachange import errors


class Reaction(StrEnum):
    """RESTART: the rows that were read have been collected; the work begins again at a new raise. WAIT: the change
    itself is fine, and waits without limit."""

    REVERT = "the change is reverted"
    RETRY = "the step is retried later"
    RESTART = "the work starts again"
    WAIT = "the step is retried when there is disk space"


# By SQLSTATE, or by its class. Other errors are retried, since they may be temporary.
REACTIONS: dict[str, Reaction] = {
    # The data or the statement is invalid.
    "0A": Reaction.REVERT,
    "22": Reaction.REVERT,
    "23": Reaction.REVERT,
    "42": Reaction.REVERT,
    "54": Reaction.REVERT,
    # A timeout, or a cancel by a user.
    "55P03": Reaction.REVERT,
    "57014": Reaction.REVERT,
    # A bug would occur again.
    "XX000": Reaction.REVERT,
    "72000": Reaction.RESTART,
}

# Errors that share a SQLSTATE but need another reaction.
SPECIAL: dict[type[errors.Error], Reaction] = {
    errors.WillNotFit: Reaction.REVERT,
    errors.LowDisk: Reaction.WAIT,
}

# How often a step is retried for other reasons; after that the change is reverted, if it still can be.
ATTEMPTS_MAX = 10
_BACKOFF_S_MIN, _BACKOFF_S_MAX = 0.1, 30.0


def reaction_to(problem: errors.Error, attempts: int) -> Reaction:
    special = SPECIAL.get(type(problem))
    if special is not None:
        return special
    named = REACTIONS.get(problem.sqlstate, REACTIONS.get(problem.sqlstate[:2], Reaction.RETRY))
    return Reaction.REVERT if named is Reaction.RETRY and attempts >= ATTEMPTS_MAX else named


def backoff_s(attempts: int) -> float:
    """Exponential back-off.

    >>> [backoff_s(n) for n in (1, 2, 5, 20)]
    [0.1, 0.2, 1.6, 30.0]
    """
    return min(_BACKOFF_S_MAX, _BACKOFF_S_MIN * float(1 << min(attempts, 20) - 1))
