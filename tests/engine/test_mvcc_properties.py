"""MVCC over segments against a dict.

Two nodes commit, load in bulk, change the table's shape, compact, collect garbage and start again, in any order. Every
snapshot that is open, and every sequence that is still kept, shows exactly the state that the dict had then: by scan,
by key, and by the reference reader, on both nodes.
"""

import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import Seq
from seachange.model.isolation import Isolation
from seachange.model.schema.descriptor import Column
from seachange.values.types import BIGINT, TEXT
from seachange.verify.consistency import inspect
from seachange.verify.reference import ReferenceReader
from seachange.verify.subject import CheckedIndex
from tests.engine.database import INTEGER, add_column, arrow, new_table, open_quiet, scan, with_columns
from tests.engine.model import CODE, ID, NUMBER, State

COLUMNS = (Column(ID, "id", INTEGER, nullable=False), Column(CODE, "code", TEXT), Column(NUMBER, "number", INTEGER))
INDEXES = (("t_code_key", (CODE,), True), ("t_number_idx", (NUMBER,), False))
# A buffer of more entries than this becomes files.
INLINE_ROWS_MAX = 5
SNAPSHOTS_MAX = 4

keys = st.integers(0, 12)
codes = st.one_of(st.none(), st.sampled_from("abcdefgh"))
numbers = st.one_of(st.none(), st.integers(0, 3))
nodes = st.integers(0, 1)
records = st.tuples(keys, codes, numbers)
pairs = st.tuples(st.booleans(), st.booleans())
operations = st.one_of(
    st.tuples(st.just("insert"), records),
    st.tuples(st.just("update"), records),
    st.tuples(st.just("move"), st.tuples(keys, keys)),
    st.tuples(st.just("delete"), keys),
    st.tuples(st.just("bulk"), st.lists(records, min_size=1, max_size=10, unique_by=lambda r: r[0])),
    st.tuples(st.just("fill"), st.integers(20, 60)),
    st.tuples(st.just("renumber"), numbers),
)


@dataclass(frozen=True)
class Open:
    node: int
    txn: Transaction
    state: State


class Walk(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.data = Path(tempfile.mkdtemp(prefix="seachange-walk-"))
        self.nodes = [self._open(name) for name in ("one", "two")]
        txn = self.nodes[0].begin()
        table = new_table(txn, columns=COLUMNS, indexes=INDEXES)
        self.state = State(table, {})
        self.history: dict[Seq, State] = {}
        self.open: list[Open] = []
        self._committed(txn.commit(), self.state)

    def _open(self, name: str) -> Node:
        node = open_quiet(self.data, name)
        node.parts.inline_rows_max = INLINE_ROWS_MAX
        return node

    def teardown(self) -> None:
        for each in self.open:
            each.txn.rollback()
        try:
            for node in self.nodes:
                assert inspect(node).anomalies == []
        finally:
            for node in self.nodes:
                node.close()
            shutil.rmtree(self.data)

    def _committed(self, seq: Seq | None, state: State) -> None:
        if seq is not None:
            self.history[seq] = state
        self.state = state

    # Writing.

    @rule(node=nodes, work=st.lists(operations, min_size=1, max_size=5), undo=st.sampled_from([False] * 4 + [True]))
    def write(self, node: int, work: list[tuple[str, Any]], undo: bool) -> None:
        txn = self.nodes[node].begin(Isolation.REPEATABLE_READ)
        state = self.state
        for name, arguments in work:
            mark = txn.undo.mark()
            try:
                state = getattr(self, f"_{name}")(txn, state, arguments)
            except errors.UniqueViolation:
                txn.undo.reset(mark)
        self._sees(self.nodes[node], txn, state)
        if undo:
            txn.rollback()
        else:
            self._committed(txn.commit(), state)

    @rule(first=records, second=records, meet=st.sampled_from(["key", "code", ""]), loads=pairs, follow=st.booleans())
    def write_at_once(self, first: Any, second: Any, meet: str, loads: Any, follow: bool) -> None:
        """Two transactions of two nodes from one snapshot: both get through exactly if they share no key."""
        second = (first[0] if meet == "key" else second[0], first[1] if meet == "code" else second[1], second[2])
        txns = [node.begin(Isolation.REPEATABLE_READ) for node in self.nodes]
        states = [self._put_one(*each) for each in zip(txns, (first, second), loads, strict=True)]
        shared = states[0] is not None and self._written(first) & self._written(second)
        if states[0] is not None:
            self._committed(txns[0].commit(), states[0])
        if follow:
            # Then the node itself finds the conflict; otherwise the sequencer does.
            self.nodes[1].begin().rollback()
        if states[1] is not None and not shared:
            self._committed(txns[1].commit(), self.state.with_row(states[1].rows[second[0]]))
        elif states[1] is not None:
            with pytest.raises(errors.SerializationFailure):
                txns[1].commit()
        for txn in txns:
            txn.rollback()

    def _put_one(self, txn: Transaction, record: Any, bulk: bool) -> State | None:
        state = self.state
        try:
            if record[0] in state.rows:
                return self._update(txn, state, record)
            return self._bulk(txn, state, [record]) if bulk else self._insert(txn, state, record)
        except errors.UniqueViolation:
            return None

    def _written(self, record: Any) -> set[Any]:
        """The keys that conflict: the row's own, and the unique ones that it takes and gives up."""
        key, code, _ = record
        before = self.state.rows.get(key, {}).get(CODE)
        return {key} if before == code else {key, before, code} - {None}

    def _insert(self, txn: Transaction, state: State, record: Any) -> State:
        row = state.record(*record)
        txn.writes.insert(state.table, [tuple(row.values())])
        assert record[0] not in state.rows
        assert not state.holds_code(record[1])
        return state.with_row(row)

    def _update(self, txn: Transaction, state: State, record: Any) -> State:
        if record[0] not in state.rows:
            return state
        row = state.record(*record)
        txn.writes.update(state.table, [state.tuple_of(record[0])], [tuple(row.values())])
        assert not state.holds_code(record[1], but=record[0])
        return state.with_row(row)

    def _move(self, txn: Transaction, state: State, pair: tuple[int, int]) -> State:
        """Gives a row another key; where the other key is taken, the two rows swap theirs."""
        source, target = pair
        if source not in state.rows or source == target:
            return state
        moved = {**state.rows[source], ID: target}
        if target not in state.rows:
            txn.writes.update(state.table, [state.tuple_of(source)], [tuple(moved.values())])
            return state.without(source).with_row(moved)
        back = {**state.rows[target], ID: source}
        old = [state.tuple_of(source), state.tuple_of(target)]
        txn.writes.update(state.table, old, [tuple(moved.values()), tuple(back.values())])
        return state.with_row(moved).with_row(back)

    def _delete(self, txn: Transaction, state: State, key: int) -> State:
        if key not in state.rows:
            return state
        txn.writes.delete(state.table, [state.tuple_of(key)])
        return state.without(key)

    def _bulk(self, txn: Transaction, state: State, given: list[Any]) -> State:
        rows = [state.record(*record) for record in given]
        txn.writes.insert_arrow(state.table, arrow(state.table, [tuple(row.values()) for row in rows]))
        for row in rows:
            assert row[ID] not in state.rows
            assert not state.holds_code(row[CODE])
            state = state.with_row(row)
        return state

    def _fill(self, txn: Transaction, state: State, first: int) -> State:
        """Enough rows for a file."""
        for key in range(first, first + INLINE_ROWS_MAX + 3):
            state = self._insert(txn, state, (key, None, key % 4)) if key not in state.rows else state
        return state

    def _renumber(self, txn: Transaction, state: State, number: int | None) -> State:
        """An update of everything: often more than goes inline."""
        for key in list(state.rows):
            row = {**state.rows[key], NUMBER: number}
            txn.writes.update(state.table, [state.tuple_of(key)], [tuple(row.values())])
            state = state.with_row(row)
        return state

    # Shape.

    @rule(node=nodes, value=st.one_of(st.none(), st.integers(-5, 5)), record=records)
    def add_column(self, node: int, value: int | None, record: Any) -> None:
        name = f"extra{self.state.table.next_column_id}"
        frozen = None if value is None else str(value)
        self._alter(node, add_column(self.state.table, name, frozen=frozen), record)

    @rule(node=nodes)
    def drop_column(self, node: int) -> None:
        table = self.state.table
        if len(table.columns) > 3:
            self._alter(node, with_columns(table, (*table.columns[:3], *table.columns[4:])))

    @rule(node=nodes, which=st.integers(0, 9))
    def widen_column(self, node: int, which: int) -> None:
        table = self.state.table
        narrow = [i for i, c in enumerate(table.columns) if c.type == INTEGER]
        if narrow:
            columns = list(table.columns)
            position = narrow[which % len(narrow)]
            columns[position] = replace(columns[position], type=BIGINT)
            self._alter(node, with_columns(table, columns))

    def _alter(self, node: int, table: Any, record: Any = None) -> None:
        """Publishes a version, after a write in the same transaction if one is given."""
        txn = self.nodes[node].begin()
        state = self.state
        if record is not None and record[0] not in state.rows and not state.holds_code(record[1]):
            state = self._bulk(txn, state, [record]) if record[0] % 2 else self._insert(txn, state, record)
        txn.definitions.publish(state.table, table)
        state = state.with_table(table)
        self._sees(self.nodes[node], txn, state)
        self._committed(txn.commit(), state)

    # Housekeeping.

    @rule(node=nodes, full=st.booleans())
    def compact(self, node: int, full: bool) -> None:
        self.nodes[node].compact(self.state.table, full)

    @rule(node=nodes, keep=st.booleans())
    def collect_garbage(self, node: int, keep: bool) -> None:
        for each in self.nodes:
            each.follow()
            each.beat()
        self.nodes[node].collect_garbage(None if keep else 0)

    @rule(node=nodes)
    def start_again(self, node: int) -> None:
        """A node that knows nothing but what the catalog and the files say."""
        for each in [each for each in self.open if each.node == node]:
            each.txn.rollback()
            self.open.remove(each)
        self.nodes[node].close()
        self.nodes[node] = self._open(f"node {node} again")

    # Reading.

    @precondition(lambda self: len(self.open) < SNAPSHOTS_MAX)
    @rule(node=nodes)
    def open_snapshot(self, node: int) -> None:
        self.open.append(Open(node, self.nodes[node].begin(Isolation.REPEATABLE_READ), self.state))

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, SNAPSHOTS_MAX - 1))
    def close_snapshot(self, which: int) -> None:
        self.open.pop(which % len(self.open)).txn.rollback()

    @rule(node=nodes, which=st.integers(0, 1_000))
    def travel(self, node: int, which: int) -> None:
        """The past is as it was, or it is said to be gone: never something else."""
        seq, state = list(self.history.items())[which % len(self.history)]
        reader = self.nodes[node]
        txn = reader.begin(as_of=seq)
        try:
            self._sees(reader, txn, state)
        except errors.SnapshotTooOld:
            assert seq < reader.parts.catalog.floor()
        finally:
            txn.rollback()

    @invariant()
    def every_open_snapshot_is_unchanged(self) -> None:
        for each in self.open:
            self._sees(self.nodes[each.node], each.txn, each.state)

    @invariant()
    def both_nodes_see_the_present(self) -> None:
        for node in self.nodes:
            txn = node.begin()
            self._sees(node, txn, self.state)
            self._holds(node, txn, self.state)
            txn.rollback()

    def _sees(self, node: Node, txn: Transaction, state: State) -> None:
        table = txn.schema.table(None, "t")
        assert table == state.table
        assert scan(node, txn, table) == state.tuples()
        for key in range(-1, 20):
            assert txn.reads.get(table, (key,)) == (state.tuple_of(key) if key in state.rows else None)

    def _holds(self, node: Node, txn: Transaction, state: State) -> None:
        """What the reference reader finds in the segments themselves."""
        subject = CheckedIndex(state.table, state.table.primary)
        contents = node.parts.catalog.index_contents(txn.state.epoch.epoch, subject.index.id, txn.state.snapshot.seq)
        found = ReferenceReader(subject, node.parts.files).read(contents)
        assert found.anomalies == []
        assert sorted(found.live.values(), key=repr) == state.tuples()


QUICK = settings(
    max_examples=6,
    stateful_step_count=30,
    suppress_health_check=list(HealthCheck),
)


def test_random_transactions_agree_with_the_model():
    run_state_machine_as_test(Walk, settings=QUICK)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_long_walks():
    longer = settings(QUICK, max_examples=500, stateful_step_count=80)
    run_state_machine_as_test(Walk, settings=longer)
