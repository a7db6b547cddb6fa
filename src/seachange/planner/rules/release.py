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
from seachange.planner.elements.registry import LIFECYCLES, RULES
from seachange.planner.elements.rule import Rule
from seachange.planner.lifecycles.lifecycle import Lifecycle


@dataclass(frozen=True, slots=True)
class Release:
    number: int
    lifecycles: dict[type[Element], Lifecycle]
    rules: tuple[Rule, ...]


CURRENT = Release(1, LIFECYCLES, RULES)
RELEASES: dict[int, Release] = {CURRENT.number: CURRENT}


def release_of(number: int) -> Release:
    """The rules by which a change was planned."""
    if number not in RELEASES:
        raise errors.UnknownRelease(release=number)
    return RELEASES[number]


def lifecycle_of(kind: type[Element], release: Release) -> Lifecycle:
    found = release.lifecycles.get(kind)
    if found is None:
        raise errors.FeatureNotSupported(
            feature=f"this change while nodes of release {release.number} use the database",
            instead="Stop or upgrade them: SELECT name, release FROM seachange.nodes WHERE live.",
        )
    return found
