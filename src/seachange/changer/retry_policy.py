"""What an error means for a job: whether the change is taken back, or tried again."""

from __future__ import annotations

from enum import StrEnum

from seachange import errors


class Reaction(StrEnum):
    """RESTART: the rows that were read are gone; the work begins again at a new raise. WAIT: nothing is wrong with the
    change, and it takes as long as it takes."""

    REVERT = "the change is taken back"
    RETRY = "the step is tried again, later"
    RESTART = "the work is begun again"
    WAIT = "the step is tried again when there is space"


# By SQLSTATE, or by its class. What is not named is tried again: the world may be better then.
REACTIONS: dict[str, Reaction] = {
    # The data, or the statement, is what is wrong.
    "0A": Reaction.REVERT,
    "22": Reaction.REVERT,
    "23": Reaction.REVERT,
    "42": Reaction.REVERT,
    "54": Reaction.REVERT,
    # Somebody does not want to wait any longer.
    "55P03": Reaction.REVERT,
    "57014": Reaction.REVERT,
    # Our mistake: it would be made again.
    "XX000": Reaction.REVERT,
    "72000": Reaction.RESTART,
}

# Of those that share a SQLSTATE and mean different things.
SPECIAL: dict[type[errors.Error], Reaction] = {
    errors.WillNotFit: Reaction.REVERT,
    errors.LowDisk: Reaction.WAIT,
}

# So often a step is tried that fails for other reasons; after that the change is taken back, if it still can be.
ATTEMPTS_MAX = 10
_BACKOFF_S_MIN, _BACKOFF_S_MAX = 0.1, 30.0


def reaction_to(problem: errors.Error, attempts: int) -> Reaction:
    special = SPECIAL.get(type(problem))
    if special is not None:
        return special
    named = REACTIONS.get(problem.sqlstate, REACTIONS.get(problem.sqlstate[:2], Reaction.RETRY))
    return Reaction.REVERT if named is Reaction.RETRY and attempts >= ATTEMPTS_MAX else named


def backoff_s(attempts: int) -> float:
    """
    >>> [backoff_s(n) for n in (1, 2, 5, 20)]
    [0.1, 0.2, 1.6, 30.0]
    """
    return min(_BACKOFF_S_MAX, _BACKOFF_S_MIN * float(1 << min(attempts, 20) - 1))
