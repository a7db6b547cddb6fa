"""The sets of rules by release. A change is finished by the rules that it was planned with.

**Invariant:** a set that was released never changes; what changes gets the next number.
"""

from __future__ import annotations

from dataclasses import dataclass

from seachange.model.elements import Element
from seachange.planner.lifecycles.lifecycle import Lifecycle
from seachange.planner.lifecycles.seachange import LIFECYCLES
from seachange.planner.rules.column import COLUMN_RULES
from seachange.planner.rules.constraint import CONSTRAINT_RULES
from seachange.planner.rules.index import INDEX_RULES
from seachange.planner.rules.object import OBJECT_RULES
from seachange.planner.rules.rule import Rule


@dataclass(frozen=True, slots=True)
class Release:
    number: int
    lifecycles: dict[type[Element], Lifecycle]
    rules: tuple[Rule, ...]


CURRENT = Release(1, LIFECYCLES, (*OBJECT_RULES, *COLUMN_RULES, *INDEX_RULES, *CONSTRAINT_RULES))
RELEASES: dict[int, Release] = {CURRENT.number: CURRENT}
