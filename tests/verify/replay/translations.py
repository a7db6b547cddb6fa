"""What the steps and states of each model are on the engine: statements, and the rows that they must find."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from seachange.model.change import elements
from seachange.model.states import State as SchemaState
from seachange.verify.model.explore import Label, State, value_at
from seachange.verify.model.layouts import NULL, SET, seen_at
from seachange.verify.model.program import Program
from seachange.verify.model.references import PARENT
from seachange.verify.model.row_state import EXPIRED, HEAD, LIVE, OPEN, ROW, VERSION
from seachange.verify.model.scenario import LayoutFocus, ReferenceFocus, RowFocus
from tests.verify.replay.walks import Subject, Walk

GOOD = ("'10'", "'20'", "'30'")
# What breaks the rule that a scenario is about.
BAD = (("not null", "null"), ("check (a > 0)", "'-1'"), ("type int", "'x'"))
# Columns that need a value of their own, by scenario.
MORE_COLUMNS = {"change the primary key of a table with a unique index": ("b",)}
COLUMN_SET = "99"
# A row that is never changed. Without it a table may be empty when a statement is planned, and the plan another one.
FIXED = 1000


@dataclass(frozen=True, slots=True)
class OnProgress:
    """A query, and the rows that it finds, as text."""

    query: str
    rows: list[tuple[str | None, ...]]


class Rows:
    """Keys are ids from 1 on; values are texts that fit the column before and after a conversion."""

    def __init__(self, subject: Subject) -> None:
        focus = subject.scenario.focus
        assert isinstance(focus, RowFocus)
        self._subject, self._scope = subject, focus.scope
        self._column = focus.column
        self._more = MORE_COLUMNS.get(subject.scenario.name, ())
        # Texts that are told apart, and become one value.
        self._is_key = f"{focus.column} text primary key" in subject.scenario.setup
        self._values = list(GOOD[: self._scope.values])
        if self._scope.bad:
            told = " ".join((*([] if self._is_key else [subject.scenario.setup]), *subject.scenario.changes))
            self._values[-1] = next(value for what, value in BAD if what in told)
        self._columns = [
            e
            for e in subject.program.elements
            if isinstance(e, elements.ColumnElement | elements.ConvertedColumn)
            and self._is_named(e.table_id, e.column_id)
        ]

    def _is_named(self, table_id: int, column_id: int) -> bool:
        names = (e for e in self._subject.program.elements if isinstance(e, elements.ColumnName))
        return any((e.table_id, e.column_id, e.name) == (table_id, column_id, self._column) for e in names)

    def setup(self, walk: Walk) -> Iterator[str]:
        for key, value in enumerate(self._scope.rows):
            if value >= 0:
                yield self._insert(key + 1, self._literal(key, value))
        if self._subject.scenario.has_rows:
            yield self._insert(FIXED, f"'{FIXED}'")

    def _literal(self, key: int, value: int) -> str:
        literal = self._values[value]
        if not self._is_key:
            return literal
        return f"'x{key}'" if literal == "'x'" else f"'{' ' * key}{literal[1:]}"

    def _insert(self, id_: int, value: str, has_column: bool = True) -> str:
        columns = ["id", *self._more, *([self._column] if has_column else [])]
        values = [str(id_)] * (1 + len(self._more)) + ([value] if has_column else [])
        return f"insert into t ({', '.join(columns)}) values ({', '.join(values)})"

    def statement(self, label: Label) -> str:
        _, _, key, old, new, planned, _ = label
        has_column = self._has_column(planned)
        if old < 0:
            return self._insert(key + 1, self._literal(key, new), has_column)
        if new < 0:
            return f"delete from t where id = {key + 1}"
        changed = f"{self._column} = {self._literal(key, new)}" if has_column else "id = id"
        return f"update t set {changed} where id = {key + 1}"

    def _has_column(self, version: int) -> bool:
        states = (self._subject.program.state(version, column) for column in self._columns)
        return SchemaState.PUBLIC in states

    def looks_at_head(self, state: State) -> list[OnProgress] | None:
        return self._looks(state, state[HEAD], state[VERSION])

    def looks_of(self, state: State, slot: int) -> list[OnProgress] | None:
        snapshot, planned, flag = state[OPEN][slot]
        return self._looks(state, snapshot, planned) if flag == LIVE else None

    def _looks(self, state: State, snapshot: int, version: int) -> list[OnProgress] | None:
        version %= len(self._subject.program.versions)
        if not has_table(self._subject.program, version):
            return None
        now = [(key + 1, value_at(events, snapshot, -1)) for key, events in enumerate(state[ROW])]
        now = [(key, value) for key, value in now if value >= 0]
        if not self._has_column(version):
            return [OnProgress(f"select id from t where id < {FIXED} order by id", [(str(key),) for key, _ in now])]
        is_text = self._subject.program.state(version, self._columns[0]) is SchemaState.PUBLIC
        texts = self._is_key and is_text
        literals = [(key, self._literal(key - 1, value) if texts else self._values[value]) for key, value in now]
        shown = [(str(key), _text(literal)) for key, literal in literals]
        looks = [OnProgress(f"select id, {self._column} from t where id < {FIXED} order by id", list(shown))]
        for literal in dict.fromkeys([*self._values, *(literal for _, literal in literals)]):
            if "x" in literal and not texts:
                continue
            condition = "is null" if literal == "null" else f"= {literal}"
            rows = [(key,) for key, value in shown if value == _text(literal)]
            query = f"select id from t where {self._column} {condition} order by id"
            looks.append(OnProgress(query, list(rows)))
        return looks

    def is_expired(self, state: State, slot: int) -> bool:
        return bool(state[OPEN][slot][2] == EXPIRED)


class References:
    """One parent and one child, which refers to it by `a`, or by the column that the change adds."""

    def __init__(self, subject: Subject) -> None:
        assert isinstance(subject.scenario.focus, ReferenceFocus)
        self._subject = subject
        self._scope = subject.scenario.focus.scope
        self._column = "c" if any("add column c" in change for change in subject.scenario.changes) else "a"

    def setup(self, walk: Walk) -> Iterator[str]:
        if self._scope.parent:
            yield "insert into p (id, code) values (1, 'x')"
        if self._scope.child:
            yield "insert into t (id, a) values (1, 1)"
        yield f"insert into p (id, code) values ({FIXED}, 'fixed')"
        yield f"insert into t (id, a) values ({FIXED}, {FIXED})"

    def statement(self, label: Label) -> str:
        _, _, which, there, _, _ = label
        table = "p" if which == PARENT else "t"
        if not there:
            return f"delete from {table} where id = 1"
        if which == PARENT:
            return "insert into p (id, code) values (1, 'x')"
        return f"insert into t (id, {self._column}) values (1, 1)"

    def looks_at_head(self, state: State) -> list[OnProgress]:
        return self._looks(state, state[7])

    def looks_of(self, state: State, slot: int) -> list[OnProgress]:
        return self._looks(state, state[6][slot][0])

    def _looks(self, state: State, snapshot: int) -> list[OnProgress]:
        there = [[("1",)] if value_at(events, snapshot, 0) else [] for events in state[:2]]
        looks = [
            (f"select id from p where id < {FIXED}", 0),
            ("select id from p where code = 'x'", 0),
            (f"select id from t where id < {FIXED}", 1),
        ]
        return [OnProgress(query, list(there[which])) for query, which in looks]

    def is_expired(self, state: State, slot: int) -> bool:
        return False


class Layouts:
    """One row. Its column `c` is looked at; `a` is what writers change that do not speak of it."""

    def __init__(self, subject: Subject) -> None:
        assert isinstance(subject.scenario.focus, LayoutFocus)
        self._subject = subject
        self._fills = subject.model.initial[0][0][3] == SET

    def setup(self, walk: Walk) -> Iterator[str]:
        yield f"insert into t (id, a, c) values (1, 1, {COLUMN_SET})" if self._fills else "insert into t values (1, 1)"
        if any(step.label[0] == "failed" for step in walk):
            # The model lets a validation of another element go either way: here is the row that breaks it.
            yield f"insert into t (id, a{', c' * self._fills}) values ({FIXED + 1}, -1{', 0' * self._fills})"
        yield f"insert into t (id, a{', c' * self._fills}) values ({FIXED}, 1{', 0' * self._fills})"

    def statement(self, label: Label) -> str:
        return {
            "deletes the row": "delete from t where id = 1",
            "updates another column of the row": "update t set a = a + 1 where id = 1",
            f"sets the column to {SET}": f"update t set c = {COLUMN_SET} where id = 1",
            "inserts the row": "insert into t (id, a) values (1, 1)",
            "inserts the row with the column's default": "insert into t (id, a) values (1, 1)",
            f"inserts the row with {SET} in the column": f"insert into t (id, a, c) values (1, 1, {COLUMN_SET})",
        }[label[2]]

    def looks_at_head(self, state: State) -> list[OnProgress]:
        return self._looks(state, state[6], state[2])

    def looks_of(self, state: State, slot: int) -> list[OnProgress]:
        return self._looks(state, *state[4][slot])

    def _looks(self, state: State, snapshot: int, version: int) -> list[OnProgress]:
        _, there, _, meant = seen_at(state[0], snapshot)
        looks = [OnProgress(f"select id from t where id < {FIXED}", [("1",)] if there else [])]
        if self._subject.program.state(version, self._subject.model.column) is SchemaState.PUBLIC:
            shown = {SET: COLUMN_SET, NULL: None}.get(meant, meant.split("'")[1] if "'" in meant else meant)
            rows: list[tuple[str | None, ...]] = [("1", shown)] if there else []
            looks.append(OnProgress("select id, c from t where id = 1", rows))
            looks.append(OnProgress(f"select id, c from t where id < {FIXED}", list(rows)))
        return looks

    def is_expired(self, state: State, slot: int) -> bool:
        return False


Translation = Rows | References | Layouts
_BY_FOCUS: dict[type, Any] = {RowFocus: Rows, ReferenceFocus: References, LayoutFocus: Layouts}


def translation_of(subject: Subject) -> Translation:
    found: Translation = _BY_FOCUS[type(subject.scenario.focus)](subject)
    return found


def has_table(program: Program, version: int) -> bool:
    table = next(
        e.descriptor_id for e in program.elements if isinstance(e, elements.NamespaceElement) and e.name == "t"
    )
    return program.state(version, elements.TableElement(table)) is not SchemaState.ABSENT


def _text(literal: str) -> str | None:
    return None if literal == "null" else literal.strip("'")
