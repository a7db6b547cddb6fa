"""SERIALIZABLE reads under conditions: no conflict is missed, and what is disjoint does not conflict.

The oracle knows nothing of conditions: it runs the query again after every commit. A transaction that would have read
something else must be refused; one that is refused would have been by the rule that a scan reads the whole table.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from seachange import errors
from seachange.engine.buffer import read_set
from seachange.engine.buffer.predicate import compile_predicate
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.engine.test_seek_properties import (
    SCHEMA,
    Clause,
    change,
    changes,
    compact,
    conditions,
    found,
    numbered,
    opened,
    queries,
)
from tests.support.examples import examples

writes = changes().filter(lambda step: step[0] in {"insert", "bulk", "update", "delete", "children"})
null_tests = st.sampled_from("abcdefgh").map(lambda column: (f"{column} is null", list[Any]()))
asked = st.one_of(
    queries(),
    st.tuples(null_tests, conditions()).map(
        lambda both: (f"select * from t where {both[0][0]} and ({both[1][0]})", both[1][1])
    ),
    null_tests.map(lambda term: (f"select id, b from t where {term[0]}", term[1])),
)


@contextmanager
def filled(before: list[tuple[str, Any]]) -> Iterator[tuple[Node, Session]]:
    with opened() as node, closing(Session(node)) as writer:
        for statement in (*SCHEMA, "create table log (id int)"):
            writer.execute(statement)
        for kind, what in before:
            if kind == "compact":
                compact(node, what)
            elif kind != "open":
                with suppress(errors.Error):
                    change(writer, kind, what)
        yield node, writer


def is_refused(session: Session) -> bool:
    try:
        session.execute("commit")
    except errors.SerializationFailure:
        return True
    return False


def is_missed(before: list[tuple[str, Any]], query: Clause, disturbances: list[tuple[str, Any]]) -> bool:
    """Whether a transaction commits that would have read something else at the time of its commit."""
    with filled(before) as (node, writer), closing(Session(node)) as reader:
        reader.execute("begin isolation level serializable")
        try:
            seen = found(reader, query)
        except errors.Error:
            return False
        reader.execute("insert into log values (1)")
        touched = False
        for kind, what in disturbances:
            with suppress(errors.Error):
                change(writer, kind, what)
                touched = True
        with closing(Session(node)) as later:
            differs = found(later, query) != seen
        refused = is_refused(reader)

        assert touched or not refused
        return differs and not refused


@settings(max_examples=examples(25), deadline=None)
@given(
    before=st.lists(changes(), min_size=2, max_size=6),
    query=asked,
    disturbances=st.lists(writes, min_size=1, max_size=4),
)
def test_no_conflict_is_missed(before, query, disturbances):
    assert not is_missed(before, query, disturbances)


@settings(max_examples=examples(20), deadline=None)
@given(before=st.lists(changes(), min_size=1, max_size=5), wanted=conditions())
def test_a_row_that_a_query_finds_meets_its_conditions(before, wanted):
    """What the read set asks of single rows, against what DuckDB finds."""
    with filled(before) as (_, session):
        where, values = wanted
        query = numbered(f"select * from t where {where}")
        session.execute("begin isolation level serializable")
        try:
            rows = session.execute(query, values).rows
        except errors.Error:
            return
        transaction = session.open_transaction
        assert transaction is not None
        reads = transaction.state.read_set
        table = transaction.schema.table(None, "t")
        if table.primary.id in reads.scanned or table.primary.id not in reads.conditional:
            return
        (meets,) = reads.conditional[table.primary.id].predicates.values()
        event("conditions")
        assert all(meets(row) for row in rows)


def test_the_oracle_notices_what_the_read_set_overlooks(monkeypatch: pytest.MonkeyPatch):
    """Proves that the property can fail: with conditions that no row meets, a conflict is missed."""
    before = [("insert", [(1, 1, "a", None, None, None, None, None, None)])]
    query: Clause = ("select * from t where a = ?", [1])
    disturbances = [("update", ("a", 2, ("id = ?", [1])))]
    assert not is_missed(before, query, disturbances)
    monkeypatch.setattr(
        read_set, "compile_predicate", lambda table, _: lambda row: not compile_predicate(table, ())(row)
    )
    assert is_missed(before, query, disturbances)
