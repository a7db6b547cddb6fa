"""EXPLAIN (DDL, VERIFY): what the model checker finds out about a plan within a time.

**Invariant:** nothing is claimed of what was not explored to its end.
"""

from __future__ import annotations

from seachange.planner.explain.words import count_of
from seachange.planner.known_schema import KnownSchema
from seachange.planner.plan import ChangePlan
from seachange.planner.rules.release import release_of
from seachange.sql.port.port import TransactionPort
from seachange.verify.model.plan_check import CheckedSubject, check_plan

_NOT_COVERED = "Not covered: the change has no part that a model knows (indexes, constraints, columns, foreign keys)."


def explain_check(plan: ChangePlan, catalog: KnownSchema, seconds: int, port: TransactionPort) -> list[str]:
    lines: list[str] = []
    states, complete = 0, True
    for checked in check_plan(plan, catalog, port.statement.deadline(seconds), release_of(plan.change.release)):
        lines += _tell(checked, seconds)
        result = checked.result
        states += result.states if result is not None else 0
        complete = complete and result is not None and result.complete
        if result is not None and result.problem is not None:
            return lines
    if not lines:
        return [_NOT_COVERED]
    if not complete:
        return [*lines, f"Nothing is proven of the change as a whole. VERIFY n looks for n seconds, here {seconds}."]
    reached = "that these parts, their reverts and open transactions over one or two rows can reach"
    return [
        *lines,
        f"Proven: all of the {count_of(states, 'state')} {reached} are consistent with every version in use.",
    ]


def _tell(checked: CheckedSubject, seconds: int) -> list[str]:
    label, result = checked.label, checked.result
    if not checked.is_known:
        return [f"{label}: not covered by a model"]
    if result is None:
        return [f"{label}: not explored within {seconds} s"]
    if result.problem is not None:
        trace = [f"  {number}. {line}" for number, line in enumerate(result.trace, 1)]
        count = count_of(result.states, "state")
        return [f"{label}: NOT consistent, after {count}", *trace, f"  Then {result.problem}."]
    count = count_of(result.states, "state")
    if not result.complete:
        return [f"{label}: no problem in {count}, and there are more: nothing is proven"]
    return [f"{label}: consistent, {count}"]
