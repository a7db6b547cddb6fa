"""EXPLAIN (DDL, EACH): the cost of several statements, each on its own and after those before it, as migrations run.

**Invariant:** a statement that cannot be planned is reported with its error, and the others are planned without it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from seachange import errors
from seachange.model.change import elements
from seachange.model.ids import TableId
from seachange.model.statements import DdlExplanation
from seachange.planner.explain.form import explain_plan
from seachange.planner.explain.names import Names, one_line
from seachange.planner.explain.subjects import subjects
from seachange.planner.explain.words import bytes_in_words, count_of
from seachange.planner.known_schema import KnownSchema, TableSize
from seachange.planner.plan import ChangePlan
from seachange.planner.strategy import measure_whole

# What goes with its values when it is dropped.
_BEARERS = (
    elements.TableElement,
    elements.ColumnElement,
    elements.SequenceElement,
    elements.EnumValue,
    elements.DatabaseElement,
)
_MS = 1_000
# Of a plan that follows.
_INTRODUCTION = " With rows:"


@dataclass(frozen=True, slots=True)
class SizesWithNew(Mapping[TableId, TableSize]):
    """Sizes of the tables that there are; those that a statement before creates are empty."""

    known: Mapping[TableId, TableSize]
    created: frozenset[TableId]

    def __getitem__(self, table_id: TableId) -> TableSize:
        return TableSize() if table_id in self.created else self.known[table_id]

    def __iter__(self) -> Iterator[TableId]:
        yield from self.known
        yield from self.created

    def __len__(self) -> int:
        return len(self.known) + len(self.created)


def with_created(before: KnownSchema, after: KnownSchema) -> KnownSchema:
    created = frozenset(TableId(id_) for id_ in after.descriptors.keys() - before.descriptors.keys())
    return replace(after, sizes=SizesWithNew(before.sizes, created))


def describe_step(text: str, plan: ChangePlan, catalog: KnownSchema, remarks: list[str]) -> dict[str, Any]:
    cost = measure_whole(plan, catalog)
    estimate = cost.estimate
    return {
        "statement": text,
        "strategy": cost.strategy.value,
        "rows": estimate.rows,
        "bytes": estimate.written_bytes,
        "ms": None if estimate.duration_us is None else estimate.duration_us // _MS,
        "waits": estimate.drains,
        "versions": cost.versions,
        "loses": _losses(plan, catalog),
        "remarks": [one_line(remark).removesuffix(_INTRODUCTION) for remark in remarks],
        "cost": explain_plan(plan, catalog, DdlExplanation.COST),
    }


def describe_refusal(text: str, problem: errors.Error) -> dict[str, Any]:
    told = {"sqlstate": problem.sqlstate, "message": str(problem), "hint": problem.hint}
    return {"statement": text, "error": told}


def _losses(plan: ChangePlan, catalog: KnownSchema) -> list[str]:
    """What goes with its values. A column that another of its name replaces is converted."""
    names, targets = Names(plan, catalog), plan.graph.targets
    found = subjects(plan, names)
    come = {subject.label.rstrip("+") for subject in found if subject.adds}
    gone = [s.label.rstrip("-") for s in found if not s.adds and isinstance(targets[s.host].element, _BEARERS)]
    lost = [label for label in gone if label not in come]
    return lost if plan.then is None or plan.between is None else [*lost, *_losses(plan.then, plan.between)]


def show_steps(steps: list[dict[str, Any]], as_json: bool) -> list[str]:
    if as_json:
        return [json.dumps(steps, indent=2)]
    return [line for number, step in enumerate(steps, 1) for line in _lines(number, step)]


def _lines(number: int, step: Mapping[str, Any]) -> Iterator[str]:
    yield f"{number}. {one_line(step['statement'])}"
    if "error" in step:
        yield f"  refused: {step['error']['sqlstate']}: {one_line(step['error']['message'])}"
        return
    rows = "an unknown number of rows" if step["rows"] is None else count_of(step["rows"], "row")
    yield f"  {step['strategy']}: reads {rows}, moves {bytes_in_words(step['bytes'])}, waits {step['waits']} times"
    for lost in step["loses"]:
        yield f"  its values are lost: {lost}"
    for remark in step["remarks"]:
        yield f"  {remark}"
