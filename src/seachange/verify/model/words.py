"""Descriptions of traces: each step, with the version of the schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seachange.model.change import elements
from seachange.model.change.elements import Element, element_name
from seachange.model.states import State as SchemaState
from seachange.verify.model.explore import Label, State
from seachange.verify.model.program import Act, Instruction, Program

Trace = list[tuple[State, Label, State]]

_VALUES = "abcdefgh"


def say_value(value: int, bad: int = -1) -> str:
    if value < 0:
        return "nothing"
    return "a value that breaks the rule" if value == bad else repr(_VALUES[value])


class Speaker:
    """Names of versions, elements and steps of the job."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._elements = program.elements
        self._named = [e for e in self._elements if _is_told(e) and len(set(self._states(e))) > 1]
        self._has_many = len(program.starts) > 1

    def _states(self, element: Element) -> list[SchemaState]:
        return [self._program.state(n, element) for n in range(len(self._program.versions))]

    def element(self, element: Element) -> str:
        match element:
            case elements.PrimaryIndex() | elements.SecondaryIndex() | elements.UniqueIndex():
                kind = {elements.PrimaryIndex: "primary index", elements.UniqueIndex: "unique index"}
                return f"{kind.get(type(element), 'index')} {self._index_name(element)}"
            case elements.ColumnElement() | elements.ConvertedColumn() | elements.RestoredColumn():
                kind = {elements.ConvertedColumn: "converted column", elements.RestoredColumn: "restored column"}
                return f"{kind.get(type(element), 'column')} {self._column_name(element.table_id, element.column_id)}"
            case elements.ColumnNotNull():
                return f"NOT NULL of {self._column_name(element.table_id, element.column_id)}"
            case elements.ColumnDefault():
                return f"default {element.expression}"
            case elements.CheckConstraint():
                return "the CHECK"
            case elements.ForeignKeyElement():
                return f"the foreign key (to index {element.parent_index_id})"
            case _:
                return element_name(type(element)).lower()

    def _index_name(self, index: elements.AnyIndex) -> str:
        found = [e for e in self._elements if isinstance(e, elements.IndexName) and e.index_id == index.index_id]
        return f"{found[0].name} ({index.index_id})" if found else str(index.index_id)

    def _column_name(self, table_id: int, column_id: int) -> str:
        for e in self._elements:
            if isinstance(e, elements.ColumnName) and (e.table_id, e.column_id) == (table_id, column_id):
                return e.name
        return str(column_id)

    def version(self, number: int) -> str:
        """A zombie's version is described as the one that it was meant to be."""
        number %= len(self._program.versions)
        states = self._program.versions[number]
        told = [f"{self.element(e)} {self._program.state(number, e)}" for e in self._named if e in states]
        gone = [f"{self.element(e)} {SchemaState.ABSENT}" for e in self._named if e not in states]
        return f"version {number} ({', '.join([*told, *gone])})"

    def publication(self, instruction: Instruction) -> str:
        number = self._program.alone(instruction)
        if not self._has_many:
            return self.version(number)
        # The others are published by the other job.
        own = [e for e in self._named if self._is_changed_by(e, instruction.job)]
        return f"a version with {', '.join(f'{self.element(e)} {self._program.state(number, e)}' for e in own)}"

    def _is_changed_by(self, element: Element, job: int) -> bool:
        versions = {0, *(self._program.alone(i) for i in self._program.instructions if i.job == job)}
        return len({self._program.state(number, element) for number in versions}) > 1

    def raised_to(self, instruction: Instruction) -> str:
        return "the newest version" if self._has_many else f"version {instruction.version}"

    def step(self, position: int) -> str:
        instruction = self._program.instructions[position]
        return f"{self.job(position)} {_STEPS[instruction.act](self, instruction)}"

    def failed(self, position: int) -> str:
        act = self._program.instructions[position].act
        what = {Act.BACKFILL: "backfill", Act.VALIDATE: "validation"}.get(act, "publication")
        return f"{self.job(position)}'s {what} finds a row that does not allow the change: the change is rolled back"

    def canceled(self, position: int) -> str:
        return f"{self.job(position)} is cancelled" if self._has_many else "the change is cancelled"

    def job(self, position: int) -> str:
        number = self._program.instructions[position].job
        return f"the {('first', 'second')[number]} job" if self._has_many else "the job"


_STEPS: dict[Act, Callable[[Speaker, Instruction], str]] = {
    Act.RAISE: lambda s, i: f"raises min_version to {s.raised_to(i)}; R is the sequence of the raise",
    Act.SNAPSHOT: lambda s, i: "takes the head as R, without a raise",
    Act.PUBLISH: lambda s, i: f"publishes {s.publication(i)}" + (", and raises min_version to it" if i.tables else ""),
    Act.BACKFILL: lambda s, i: "reads the rows at R and attaches what it has built",
    Act.VALIDATE: lambda s, i: "looks at the rows at R and finds nothing wrong",
    Act.RESTORE: lambda s, i: "writes the values that rows had into those without one",
    Act.COLLECT: lambda s, i: "deletes the data of what was dropped",
    Act.END: lambda s, i: "is over",
}
_TOLD = (
    elements.TableElement,
    elements.ColumnElement,
    elements.ConvertedColumn,
    elements.RestoredColumn,
    elements.ColumnNotNull,
    elements.ColumnDefault,
    elements.PrimaryIndex,
    elements.SecondaryIndex,
    elements.UniqueIndex,
    elements.CheckConstraint,
    elements.ForeignKeyElement,
)


def _is_told(element: Element) -> bool:
    return isinstance(element, _TOLD)


# Steps of a transaction: their second field is its position among the open ones.
_BY_TRANSACTION = frozenset({"commit", "write", "register", "expire", "stale", "refused"})
_STAYS = frozenset({"register", "expire"})


def tell_steps(trace: Trace, transactions_at: int, say: Callable[[Label, str], str]) -> list[str]:
    """`say` describes a step, given the name of its transaction."""
    names = name_transactions(trace, transactions_at)
    return [say(label, who) for (_, label, _), who in zip(trace, names, strict=True)]


def name_transactions(trace: Trace, transactions_at: int) -> list[str]:
    """The transaction of each step. Positions change from state to state, since states are canonical; names do not."""
    names: list[str] = []
    count = 0
    takers: list[str] = []
    for before, label, after in trace:
        who = ""
        if label[0] == "begin":
            count += 1
            who = f"T{count}"
            names = _moved(names, who, before[transactions_at], after[transactions_at], None)
        elif label[0] in _BY_TRANSACTION:
            who = names[label[1]]
            rest = names[: label[1]] + names[label[1] + 1 :]
            if label[0] in _STAYS:
                names = _moved(rest, who, before[transactions_at], after[transactions_at], label[1])
            else:
                names = rest
        takers.append(who)
    return takers


def _moved(
    rest: list[str], who: str, before: Sequence[tuple[int, ...]], after: Sequence[tuple[int, ...]], slot: int | None
) -> list[str]:
    """The position of the transaction now: the others are unchanged, except for the ranks of their snapshots."""
    others = [t[1:] for n, t in enumerate(before) if n != slot]
    for place in range(len(after) - 1, -1, -1):
        if [t[1:] for n, t in enumerate(after) if n != place] == others:
            return [*rest[:place], who, *rest[place:]]
    raise AssertionError((before, after))


def say_common(speaker: Speaker, label: Label, who: str) -> str:
    """Steps that all models share."""
    match label[0]:
        case "begin":
            late = "; it is not registered yet" if label[2] else ""
            return f"{who} begins at the head and plans with {speaker.version(label[1])}{late}"
        case "register":
            return f"{who} is registered in its node"
        case "expire":
            return f"the node of {who} is stopped; its epoch ends"
        case "stale":
            return f"{who} goes on and commits; it is refused, since its epoch has ended"
        case "refused":
            return f"{who} commits; it is refused, since its version is below min_version"
        case "cancel":
            return speaker.canceled(label[1] if len(label) > 1 else 0)
        case "stop":
            return "the job's worker is stopped; another takes the job over"
        case "turned away":
            return "the first worker wakes up and goes on; it is refused, since the job is not where it was"
        case "zombie":
            return f"the first worker wakes up and goes on: {speaker.step(label[1])}"
        case "failed" | "recorded":
            return speaker.failed(label[1])
        case "looked again":
            return "the job finds that a row without a value was written, looks for it, and finds it gone"
        case "job":
            return speaker.step(label[1])
        case _:
            raise AssertionError(label)


def say_rebase(planned: int, used: int) -> str:
    return f", derived again with version {used}" if planned != used else ""


def say_rewrite(speaker: Speaker, label: Label, who: str) -> str:
    """Steps of models with one row, which transactions change and a rewrite stores again."""
    match label[0]:
        case "write":
            return f"{who} commits: it {label[2]}{say_rebase(label[3], label[4])}"
        case "fold":
            return f"a rewrite reads the row at the head, planned with {speaker.version(label[1])}"
        case "swap":
            return "the rewrite swaps in the row as it has stored it"
        case _:
            return say_common(speaker, label, who)
