"""The sets of rules by release. A change is planned by the newest that every live node knows, and finished by the same.

**Invariant:** a set that was released never changes; what changes gets the next number, and so does a state, or a kind
of element, that older programs do not know.

**Invariant:** a change is planned with the newest rules that every live node knows, and finished with the same. The
agreed number (`Catalog.agree_release`) never decreases, and nodes that know less cannot join.
"""

from __future__ import annotations

from dataclasses import dataclass

from seachange import errors
from seachange.model.change.elements import Element
from seachange.model.change.targets import GOAL_STATUS, Goal, Status
from seachange.planner.elements.registry import LIFECYCLES, RULES, SPECS
from seachange.planner.elements.rule import Rule
from seachange.planner.lifecycles.lifecycle import Lifecycle


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """`in_block` are the lifecycles in transaction blocks; a release without them knows no change that publishes states
    before the COMMIT of its block. Two are the same if they are the same object: what follows from one is cached."""

    number: int
    lifecycles: dict[type[Element], Lifecycle]
    rules: tuple[Rule, ...]
    in_block: dict[type[Element], Lifecycle]


def _known_by(number: int) -> dict[type[Element], Lifecycle]:
    return {kind: lifecycle for kind, lifecycle in LIFECYCLES.items() if SPECS[kind].since <= number}


_IN_BLOCK = {kind: lifecycle.in_block for kind, lifecycle in LIFECYCLES.items()}

# Its nodes know constraints that are enforced or not there: they neither check nor record for one in VALIDATING.
FIRST = Release(1, _known_by(1), RULES, in_block={})
CURRENT = Release(2, _known_by(2), RULES, in_block=_IN_BLOCK)
RELEASES: dict[int, Release] = {release.number: release for release in (FIRST, CURRENT)}


def release_of(number: int) -> Release:
    """The rules by which a change was planned."""
    if number not in RELEASES:
        raise errors.UnknownRelease(release=number)
    return RELEASES[number]


def lifecycle_of(kind: type[Element], goal: Goal, start: Status, release: Release, in_block: bool = False) -> Lifecycle:
    """In a block, a constraint that rejected rows before, or that shall do no more than that, goes the usual way."""
    found = (release.in_block if in_block else release.lifecycles).get(kind)
    if found is not None and not {start, GOAL_STATUS[goal]} <= {*found.statuses}:
        found = release.lifecycles.get(kind)
    if found is None:
        raise errors.FeatureNotSupported(
            feature=f"this change while nodes of release {release.number} use the database",
            instead="Stop or upgrade them: SELECT name, release FROM seachange.nodes WHERE live.",
        )
    return found
