"""Writers planned at either of two adjacent versions of a change, in any order, on two nodes.

Whatever they do, the index that was being built equals the rows once it has its generation, unique keys and references
hold, and no transaction is refused but for a conflict or a violation that is really there.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import ColumnId, ConstraintId, Seq
from seachange.model.schema.constraint import ForeignKey
from seachange.model.schema.descriptor import Table
from seachange.model.states import State
from seachange.verify.consistency import check
from tests.engine.changing import attach, fence, new_index, publish, with_index
from tests.engine.database import arrow, create, insert, open_quiet, rows, scan
from tests.support.examples import examples

KEYS = st.integers(0, 4)
VALUES = st.sampled_from("abcd")
STEP = st.tuples(st.sampled_from(["put", "delete", "load"]), KEYS, VALUES)
# The steps of a change, and a while before and after.
MOMENTS = 7
# When a writer begins and writes, when it commits, and what it writes.
CAREERS = st.tuples(st.integers(0, MOMENTS - 1), st.integers(0, MOMENTS - 1), st.lists(STEP, min_size=1, max_size=3))
Career = tuple[int, int, list[tuple[str, int, str]]]


@dataclass
class Writer:
    node: Node
    txn: Transaction | None = None

    def write(self, how: str, key: int, value: str) -> None:
        if self.txn is None:
            self.txn = self.node.begin()
        table = self.txn.schema.table(None, "t")
        present = {row[0]: row for row in scan(self.node, self.txn, table)}
        row = (key, value, key % 3)
        match how:
            case "delete" if key in present:
                self.txn.writes.delete(table, [present[key]])
            case "put" if key in present:
                self.txn.writes.update(table, [present[key]], [row])
            case "put":
                self.txn.writes.insert(table, [row])
            case "load" if key not in present:
                self.txn.writes.insert_arrow(table, arrow(table, [row]))
            case _:
                pass

    def write_all(self, steps: Sequence[tuple[str, int, str]]) -> None:
        try:
            for how, key, value in steps:
                self.write(how, key, value)
        except (errors.UniqueViolation, errors.SerializationFailure):
            self.give_up()

    def commit(self) -> bool:
        """Whether what there was to commit was committed."""
        txn, self.txn = self.txn, None
        if txn is None:
            return True
        try:
            txn.commit()
        except (errors.SerializationFailure, errors.UniqueViolation, errors.StillReferenced):
            return False
        return True

    def give_up(self) -> None:
        if self.txn is not None:
            self.txn.rollback()
            self.txn = None


@contextmanager
def two_nodes() -> Iterator[tuple[Node, Node]]:
    """Over a database of their own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_quiet(Path(folder))) as one,
        closing(open_quiet(Path(folder), "two")) as two,
    ):
        yield one, two


class Change:
    """A unique index on v, step by step as the planner orders them."""

    def __init__(self, node: Node, table: Table) -> None:
        self.node = node
        self.table = table
        self.index = new_index(node, "t_v", [ColumnId(2)], unique=True)
        self.at: Seq | None = None
        # The keys and values of rows when every writer knew that values are unique.
        self.enforced_over: set[tuple[int, str]] = set()
        steps = [self._come, self._raise, self._attach, self._enforce, self._raise_again]
        self._steps = iter(steps)

    def advance(self) -> bool:
        step = next(self._steps, None)
        if step is not None:
            step()
        return step is not None

    def _come(self) -> None:
        self.table = with_index(self.node, self.table, self.index)

    def _raise(self) -> None:
        self.at = fence(self.node, self.table)

    def _attach(self) -> None:
        assert self.at is not None
        attach(self.node, self.table, self.index, self.at)

    def _enforce(self) -> None:
        self.index = replace(self.index, state=State.ENFORCED)
        self.table = with_index(self.node, self.table, self.index)

    def _raise_again(self) -> None:
        fence(self.node, self.table)
        self.enforced_over = {(row[0], row[1]) for row in rows(self.node)}

    def finish(self) -> bool:
        """Validates, and publishes if the rows allow it."""
        while self.advance():
            pass
        values = [row[1] for row in rows(self.node)]
        if len(set(values)) == len(values):
            self.table = with_index(self.node, self.table, replace(self.index, state=State.PUBLIC))
            return True
        return False


@given(st.lists(CAREERS, min_size=1, max_size=4), st.booleans())
@settings(max_examples=examples(25), deadline=None)
def test_an_index_that_is_being_built(careers: Sequence[Career], inline: bool):
    with two_nodes() as (one, two):
        for node in (one, two):
            node.parts.inline_rows_max = 5_000 if inline else 0
        table = create(one)
        insert(one, (0, "a", 0), (1, "b", 1), (2, "c", 2))
        change = Change(one, table)
        writers = [Writer((one, two)[number % 2]) for number in range(len(careers))]
        for moment in range(MOMENTS):
            for writer, (begins, _, steps) in zip(writers, careers, strict=True):
                if begins == moment:
                    writer.write_all(steps)
            for writer, (_, lasts, _) in zip(writers, careers, strict=True):
                if lasts == moment:
                    writer.commit()
            change.advance()
        for writer in writers:
            writer.commit()
        # What is enforced may have been broken before, and is not broken any further.
        after = [(row[0], row[1]) for row in rows(one)]
        values = [value for _, value in after]
        assert {(key, value) for key, value in after if values.count(value) > 1} <= change.enforced_over
        change.finish()
        assert check(one) == []
        assert check(two) == []


@given(
    st.lists(
        st.tuples(st.integers(0, 1), KEYS, VALUES, st.sampled_from(["put", "delete", "load"])),
        max_size=6,
        unique_by=lambda s: s[1],
    )
)
@settings(max_examples=examples(15), deadline=None)
def test_no_statement_is_rejected_without_a_reason(steps: Sequence[tuple[int, int, str, str]]):
    """Two writers of different rows, who began before the change came, commit after it: both are made to fit."""
    with two_nodes() as (one, two):
        table = create(one)
        insert(one, (0, "a", 0), (1, "b", 1), (2, "c", 2))
        writers = [Writer(one), Writer(two)]
        for who, key, _, how in steps:
            # Values of their own, so that keys do not collide.
            writers[who].write(how, key, f"v{key}")
        expected = {row[0]: row for row in rows(one)}
        for _, key, _, how in steps:
            if how == "delete":
                expected.pop(key, None)
            elif how == "put" or key not in expected:
                expected[key] = (key, f"v{key}", key % 3)
        change = Change(one, table)
        while change.advance():
            pass
        assert all(writer.commit() for writer in writers)
        assert change.finish()
        assert rows(one) == sorted(expected.values())
        assert check(two) == []


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from(["child", "parent", "commit", "advance"]), KEYS), max_size=20)
)
@settings(max_examples=examples(20), deadline=None)
def test_a_foreign_key_that_comes(steps: Sequence[tuple[int, str, int]]):
    """Children are added to parents that are deleted, while none, some, and all know of the foreign key."""
    with two_nodes() as (one, two):
        parent = create(one)
        child = create(one, name="c", columns=(parent.columns[0], replace(parent.columns[0], id=ColumnId(2), name="p")))
        insert(one, *[(key, "", key) for key in range(8)])
        states = iter([State.WRITE_ONLY, State.ENFORCED])
        sessions: list[Transaction | None] = [None, None]
        fresh = iter(range(1000))

        def advance() -> bool:
            nonlocal parent, child
            state = next(states, None)
            if state is None:
                return False
            key = ForeignKey(ConstraintId(1), "c_p", (ColumnId(2),), parent.id, parent.primary.id, state=state)
            child, parent = publish(one, child, foreign_keys=(key,)), publish(one, parent)
            fence(one, child, parent)
            return True

        for who, what, key in steps:
            node = (one, two)[who]
            txn = sessions[who]
            try:
                if what == "advance":
                    advance()
                elif what == "commit" and txn is not None:
                    sessions[who] = None
                    txn.commit()
                elif what in ("child", "parent"):
                    if txn is None:
                        txn = sessions[who] = node.begin()
                    if what == "child":
                        txn.writes.insert(txn.schema.table(None, "c"), [(next(fresh), key)])
                    else:
                        found = txn.reads.get(txn.schema.table(None, "t"), (key,))
                        if found is not None:
                            txn.writes.delete(txn.schema.table(None, "t"), [found])
            except (errors.SerializationFailure, errors.IntegrityError):
                if sessions[who] is not None:
                    sessions[who].rollback()  # type: ignore[union-attr]
                sessions[who] = None
        # Rows that are left when the key is enforced are checked.
        while advance():
            pass
        orphans_before = {row for row in rows(one, "c") if row[1] not in {p[0] for p in rows(one)}}
        for txn in sessions:
            if txn is not None:
                with suppress(errors.SerializationFailure, errors.IntegrityError):
                    txn.commit()
        orphans = {row for row in rows(one, "c") if row[1] not in {p[0] for p in rows(one)}}
        assert orphans <= orphans_before
        assert check(one) == []
