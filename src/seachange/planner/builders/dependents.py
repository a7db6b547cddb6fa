"""Dependents that block a drop, or are dropped with it: all are reported together.

**Invariant:** a statement that lacks CASCADE is looked at to its end, so that every dependent is known, and then
refused; the draft is of no use any more.
"""

from __future__ import annotations

from seachange import errors
from seachange.model.ids import DescriptorId
from seachange.planner.builders.draft import Draft


def need_cascade(draft: Draft, cascade: bool, what: str, dependent: str) -> None:
    """`dependent` goes if `what` does."""
    draft.dependents.setdefault((dependent, what), cascade)


def settle_dependents(draft: Draft) -> None:
    """At the end of a statement: 2BP01, or the notice of what went with the rest."""
    if not all(draft.dependents.values()):
        raise _refusal(list(draft.dependents))
    going = dict.fromkeys(dependent for dependent, _ in draft.dependents)
    if len(going) == 1:
        draft.notices.append(f"drop cascades to {next(iter(going))}")
    elif going:
        draft.notices.append(f"drop cascades to {len(going)} other objects: {', '.join(going)}")
    draft.dependents.clear()


def _refusal(dependents: list[tuple[str, str]]) -> errors.Error:
    below = {dependent for dependent, _ in dependents}
    asked_for = dict.fromkeys(what for _, what in dependents if what not in below)
    what = next(iter(asked_for)) if len(asked_for) == 1 else "desired object(s)"
    lines = "\n".join(f"{dependent} depends on {on}" for dependent, on in dependents)
    return errors.DependentObjectsExist(what=what, dependents=lines)


def label_of(draft: Draft, id_: DescriptorId) -> str:
    """As `table t`, with the schema where the name alone would not lead there."""
    entry = draft.entry(id_)
    if not entry.schema or entry.schema in draft.catalog.search_path:
        return f"{entry.kind} {entry.name}"
    return f"{entry.kind} {entry.schema}.{entry.name}"
