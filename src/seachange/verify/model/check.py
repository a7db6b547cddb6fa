"""Explores all scenarios of a protocol, in two processes, and reports the findings.

**Invariant:** the report depends only on the arguments: scenarios are reported in a fixed order, whichever finishes
first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import Pool

from seachange.planner.stages import PlanningError
from seachange.verify.model.explore import Exploration, explore
from seachange.verify.model.mutants import Mutant, shown_by
from seachange.verify.model.program import Parse
from seachange.verify.model.scenario import Protocol, Scenario, Size, build_model
from seachange.verify.model.scenarios import mutants_of, scenarios_of

PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """Without a result: the planner finds no plan without the removed safeguard."""

    scenario: str
    result: Exploration | None


@dataclass(frozen=True, slots=True)
class _Task:
    scenario: str
    protocol: Protocol
    broken: tuple[str, ...]
    parse: Parse


def check_protocol(protocol: Protocol, size: Size, broken: tuple[str, ...], parse: Parse) -> Iterator[Finding]:
    """In the order of the scenarios, but first the one that shows the removed safeguard; the first problem ends the
    run."""
    first = shown_by(tuple(mutants_of(protocol)[name] for name in broken))
    # That one whatever its size: the damage is found long before all its states are.
    chosen = [s for s in scenarios_of(protocol, Size.LARGE) if s.is_part_of(size) or s.name == first]
    scenarios = sorted(chosen, key=lambda scenario: scenario.name != first)
    tasks = [_Task(scenario.name, protocol, broken, parse) for scenario in scenarios]
    # Leaving the pool ends its processes at once.
    with Pool(PROCESSES) as pool:
        for finding in pool.imap(_run, tasks):
            yield finding
            if finding.result is not None and finding.result.problem is not None:
                return


def check_scenario(scenario: Scenario, protocol: Protocol, mutants: tuple[Mutant, ...], parse: Parse) -> Finding:
    try:
        model = build_model(scenario, protocol, mutants, parse)
    except PlanningError:
        return Finding(scenario.name, None)
    return Finding(scenario.name, explore(model))


def _run(task: _Task) -> Finding:
    scenario = next(s for s in scenarios_of(task.protocol, Size.LARGE) if s.name == task.scenario)
    mutants = tuple(mutants_of(task.protocol)[name] for name in task.broken)
    return check_scenario(scenario, task.protocol, mutants, task.parse)
