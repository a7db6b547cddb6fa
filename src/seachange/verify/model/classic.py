"""The model of the classic protocol: servers with a cached schema over one store without versions, backfill in place.

A server carries out each operation in one step, with the version in its cache: the one that the job has published last,
or the one before. What is stored are rows and, apart from them, the entries of the element that is added or dropped
(an index, or the values of a column).

**Invariant** (Yugabyte's Definition 1): what is stored is consistent with every version that a server has or may get.
No entry of an element that is ABSENT; no entry without its row; where it is PUBLIC, an entry for every row, and no row
that breaks a constraint.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.states import BEHAVIOUR, Behaviour, Checking
from seachange.model.states import State as SchemaState
from seachange.verify.model.explore import Label, State
from seachange.verify.model.program import Act, Program
from seachange.verify.model.switches import Switch, Switches
from seachange.verify.model.words import Speaker, Trace, say_common, say_value

NONE = -1
_STORED = (elements.ColumnElement, elements.SecondaryIndex, elements.UniqueIndex)


@dataclass(frozen=True, slots=True)
class ClassicScope:
    rows: tuple[int, ...] = (0, NONE)
    values: int = 2
    bad: bool = False
    servers: int = 2


class ClassicModel:
    def __init__(self, program: Program, element: type[Element], scope: ClassicScope, switches: Switches) -> None:
        self._scope, self._switches = scope, switches
        self._speaker = Speaker(program)
        self._code = program.instructions
        # Elements that are the same before and after the change are not its subject.
        self.element = next(
            e
            for e in program.elements
            if isinstance(e, element) and len({program.state(n, e) for n in range(len(program.versions))}) > 1
        )
        self._states = [program.state(n, self.element) for n in range(len(program.versions))]
        self._behaviours = [BEHAVIOUR[state] for state in self._states]
        self._stores = isinstance(self.element, _STORED)
        self._unique = isinstance(self.element, elements.UniqueIndex)
        self._bad = scope.values - 1 if scope.bad else NONE

    # States are (rows, entries, position, version, servers, rows done); an entry is the value that it was made for.

    @property
    def initial(self) -> State:
        held = self._stores and self._behaviours[0].writes
        entries = tuple((v,) if held and v != NONE else () for v in self._scope.rows)
        return (self._scope.rows, entries, 0, 0, (0,) * self._scope.servers, 0)

    def successors(self, state: State) -> Iterable[tuple[Label, State]]:
        rows, entries, position, version, servers, done = state
        out: list[tuple[Label, State]] = []
        for slot, cached in enumerate(servers):
            if slot and cached == servers[slot - 1]:
                continue
            if cached != version:
                renewed = tuple(sorted((*servers[:slot], version, *servers[slot + 1 :])))
                out.append((("renew", slot, version), (rows, entries, position, version, renewed, done)))
            for key, new in product(range(len(rows)), range(NONE, self._scope.values)):
                changed = self._operate(rows, entries, key, new, self._behaviours[cached])
                if changed is not None:
                    label = ("operate", slot, cached, key, rows[key], new)
                    out.append((label, (*changed, position, version, servers, done)))
        self._work(state, out)
        return out

    def _operate(self, rows: Any, entries: Any, key: int, new: int, behaviour: Behaviour) -> tuple[Any, Any] | None:
        old = rows[key]
        if new == old:
            return None
        if behaviour.checks is Checking.REFUSED:
            if new == self._bad != NONE:
                return None
            if self._unique and any(new in held for other, held in enumerate(entries) if other != key and new != NONE):
                return None
        held = set(entries[key])
        if self._stores and behaviour.removes:
            held.discard(old)
        if self._stores and behaviour.writes and new != NONE:
            held.add(new)
        changed = (*entries[:key], tuple(sorted(held)), *entries[key + 1 :])
        return (*rows[:key], new, *rows[key + 1 :]), changed

    def _work(self, state: State, out: list[tuple[Label, State]]) -> None:
        rows, entries, position, version, servers, done = state
        instruction = self._code[position]
        label = ("job", position)
        after = instruction.after
        if instruction.back is not None:
            out.append((("cancel",), (rows, entries, instruction.back, version, servers, 0)))
        match instruction.act:
            case Act.RAISE:
                if all(cached == version for cached in servers) or Switch.NO_DRAIN_NO_REBASE in self._switches:
                    out.append((label, (rows, entries, after, version, servers, 0)))
            case Act.PUBLISH:
                kept = entries
                if self._states[instruction.version] is SchemaState.ABSENT:
                    # A server that only deletes is not affected by data that is already deleted.
                    kept = ((),) * len(entries)
                out.append((label, (rows, kept, after, instruction.version, servers, 0)))
            case Act.BACKFILL:
                if done == len(rows):
                    out.append((label, (rows, entries, after, version, servers, 0)))
                else:
                    held = tuple(sorted({*entries[done], rows[done]} - {NONE}))
                    filled = (*entries[:done], held, *entries[done + 1 :])
                    out.append((("fill", done), (rows, filled, position, version, servers, done + 1)))
            case Act.VALIDATE:
                if self._is_valid(rows):
                    out.append((label, (rows, entries, after, version, servers, 0)))
                elif instruction.back is not None:
                    out.append((("failed", position), (rows, entries, instruction.back, version, servers, 0)))
            case Act.SNAPSHOT | Act.COLLECT | Act.RESTORE:
                out.append((label, (rows, entries, after, version, servers, 0)))
            case Act.END:
                pass

    def _is_valid(self, rows: Any) -> bool:
        present = [value for value in rows if value != NONE]
        if self._unique and len(set(present)) < len(present):
            return False
        return self._bad == NONE or self._bad not in present

    def problem(self, state: State) -> str | None:
        rows, entries, _, version, servers, _ = state
        for used in sorted({version, *servers}):
            wrong = self._inconsistent(rows, entries, self._states[used])
            if wrong is not None:
                return f"what is stored is not consistent with version {used}: {wrong}"
        return None

    def _inconsistent(self, rows: Any, entries: Any, state: SchemaState) -> str | None:
        if state is SchemaState.ABSENT and any(entries):
            return "there is an entry of an element that it does not know"
        behaviour = BEHAVIOUR[state]
        for key, (value, held) in enumerate(zip(rows, entries, strict=True)):
            if any(entry != value for entry in held):
                return f"an entry of row {key} has no row"
            if self._stores and behaviour.reads and value != NONE and value not in held:
                return f"row {key} has no entry"
        if behaviour.reads and not self._is_valid(rows):
            return "a row breaks the constraint"
        return None

    def tell(self, trace: Trace) -> list[str]:
        return [self._say(label) for _, label, _ in trace]

    def _say(self, label: Label) -> str:
        match label[0]:
            case "renew":
                return f"a server renews its lease and has {self._speaker.version(label[2])}"
            case "operate":
                _, _, cached, key, old, new = label
                values = f"from {say_value(old, self._bad)} to {say_value(new, self._bad)}"
                return f"a server with version {cached} sets row {key + 1} {values}"
            case "fill":
                return f"the backfill comes to row {label[1] + 1}"
            case "job" if self._code[label[1]].act is Act.RAISE:
                return "every server has the version that was published last"
            case _:
                return say_common(self._speaker, label, "")
