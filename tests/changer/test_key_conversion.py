"""The type of a primary key changes by an expression while others write: rows stay distinct, or the change fails."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.encode.derive import Derivation
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobStatus
from seachange.verify.consistency import check
from tests.changer.changing import ask, begin, run_between
from tests.support.nodes import Place

ALTER = "alter table concurrently word alter column id type int using nullif(substr(id, 2)::int, 0)"
ROWS = [("a1", 1), ("a2", 2), ("a3", 3)]


@pytest.fixture
def catalog_kind() -> str:
    """The schema change cases cover the other catalog with the same change."""
    return "sqlite"


@pytest.fixture
def words(node: Node) -> Node:
    ask(node, "create table word (id text primary key, n int)")
    ask(node, "create index word_n on word (n)")
    ask(node, "insert into word select 'a' || i, i from generate_series(1, 3) g(i)")
    return node


def at_step(number: int, act: Callable[[], object]) -> Callable[[str], object]:
    """Before the step of this number."""
    steps = iter(range(100))
    return lambda stage: act() if next(steps) == number else None


def each(node: Node, *statements: str) -> None:
    for statement in statements:
        ask(node, statement)


def rows(node: Node) -> list[tuple[object, ...]]:
    """By the primary index; the secondary one has the same."""
    found = ask(node, "select id, n from word order by id")
    assert ask(node, "select id, n from word where n >= 0 order by id") == found
    assert check(node) == []
    return found


# Drain, backfill, publication, drain, validation, publication, drain, backfill, publication.
STEPS = range(9)


@pytest.mark.parametrize("step", STEPS)
def test_concurrent_writes_are_converted(words: Node, step: int):
    write = at_step(
        step,
        lambda: each(
            words,
            "insert into word values ('b17', 17)",
            "update word set id = 'b22' where id = 'a2'",
            "delete from word where id = 'a1'",
            "update word set n = 33 where id = 'a3'",
            # The bad rows are removed in time.
            "insert into word values ('wrong', 5), ('b0', 6), ('worse', 7)",
            "delete from word where id = 'wrong'",
            "update word set id = 'b40', n = 40 where id = 'worse'",
            "delete from word where id = 'b0'",
        ),
    )
    job = run_between(words, begin(words, ALTER), write)
    assert job.status is JobStatus.SUCCEEDED
    assert rows(words) == [(3, 33), (17, 17), (22, 2), (40, 40)]
    assert [i.name for i in words.epoch.schemas.newest.within().by_name["public", "word"].indexes] == [
        "word_pkey",
        "word_n",
    ]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("stays", "sqlstate", "told"), [("wrong", "22P02", '"rong"'), ("b0", "23502", "(id)=(b0)")], ids=["text", "null"]
)
def test_a_row_without_a_key_fails_the_change(words: Node, step: int, stays: str, sqlstate: str, told: str):
    """Also if another such row, which would be the same entry of the new index, was inserted and deleted."""
    write = at_step(
        step,
        lambda: each(
            words,
            f"insert into word values ('{stays}', 9)",
            "insert into word values ('weird', 8)",
            "delete from word where id = 'weird'",
        ),
    )
    job = run_between(words, begin(words, ALTER), write)
    assert job.failure is not None
    assert (job.status, job.failure.sqlstate) == (JobStatus.FAILED, sqlstate)
    assert told in job.failure.message
    assert rows(words) == sorted([*ROWS, (stays, 9)])


@pytest.mark.parametrize("step", STEPS)
def test_concurrent_rows_with_equal_new_keys_do_not_merge(words: Node, step: int):
    """Either the change fails because of it, or the writer of the second row gets the error."""
    refused = []

    def write() -> None:
        try:
            ask(words, "insert into word values ('b3', 9)")
        except errors.UniqueViolation:
            refused.append(step)

    job = run_between(words, begin(words, ALTER), at_step(step, write))
    if refused:
        assert job.status is JobStatus.SUCCEEDED
        assert rows(words) == [(1, 1), (2, 2), (3, 3)]
    else:
        assert job.failure is not None
        assert job.failure.sqlstate == "23505"
        assert rows(words) == [*ROWS, ("b3", 9)]
    # Keys are not checked before every entry exists.
    assert bool(refused) is (step > 2)


@pytest.mark.parametrize("step", STEPS)
def test_late_transaction_with_a_bad_key_is_refused(shop: Place, words: Node, step: int):
    with closing(open_node(shop.data, shop.catalog, name="there")) as there:
        good, bad, twin = (Session(there) for _ in range(3))
        told: dict[Session, str] = {}

        def send(session: Session, *statements: str) -> None:
            try:
                for statement in statements:
                    session.execute(statement)
            except errors.Error as problem:
                told[session] = problem.sqlstate

        def write() -> None:
            send(good, "begin", "insert into word values ('b17', 17)", "update word set id = 'b22' where id = 'a2'")
            send(bad, "begin", "insert into word values ('wrong', 9)")
            send(twin, "begin", "insert into word values ('c3', 9)")

        job = run_between(words, begin(words, ALTER), at_step(step, write))
        assert job.status is JobStatus.SUCCEEDED
        for session in (good, bad, twin):
            send(session, "commit")
            session.close()
        assert told == {bad: "22P02", twin: "23505"}
    assert rows(words) == [(1, 1), (3, 3), (17, 17), (22, 2)]


def test_bulk_load_during_key_conversion(words: Node):
    """Rows without a key are in no file of the new index."""
    load = "insert into word select 'a' || i, i from generate_series(10, 20000) g(i)"
    wrong = "insert into word select 'w' || repeat('x', i % 3 + 1) || i, i from generate_series(1, 3000) g(i)"

    def write() -> None:
        each(words, load, wrong, "update word set n = n + 1 where id like 'w%'", "delete from word where id like 'w%'")

    statement = "alter table concurrently word alter column id type int using substr(id, 2)::int"
    job = run_between(words, begin(words, statement), at_step(8, write))
    assert job.status is JobStatus.SUCCEEDED
    assert len(rows(words)) == 3 + 19991


@pytest.mark.parametrize("type_", ["int", "text"])
def test_bulk_update_of_rows_whose_keys_are_converted(words: Node, type_: str, monkeypatch: pytest.MonkeyPatch):
    """The new key has the name of the old one, and entries of the validating index contain both."""
    monkeypatch.setattr("seachange.sql.write.update.ROWS_MAX", 1)
    refused: list[str] = []

    def write() -> None:
        ask(words, "update word set n = n + 1")
        try:
            ask(words, "update word set n = 2 where n > 2")
        except errors.UniqueViolation as problem:
            refused.append(problem.sqlstate)

    statement = f"alter table concurrently word alter column id type {type_} using n::{type_}"
    job = run_between(words, begin(words, statement), at_step(4, write))
    assert job.status is JobStatus.SUCCEEDED
    assert refused == ["23505"]
    assert rows(words) == [((str if type_ == "text" else int)(n), n) for n in (2, 3, 4)]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("alter a type text using lower(a::text)", [("1", 10, 5), ("2", 20, 6)]),
        ("alter a type int using b / 10 + 1, alter b type text using 'x' || b", [(2, "x10", 5), (3, "x20", 6)]),
        ("alter a type int using c, drop column c", [(5, 10), (6, 20)]),
        ("alter a type int using c, alter primary key using columns (c)", [(5, 10, 5), (6, 20, 6)]),
    ],
)
def test_keys_of_several_columns(node: Node, statement: str, expected: list[tuple[object, ...]]):
    ask(node, "create table pair (a int, b int, c int not null, primary key (a, b))")
    ask(node, "insert into pair values (1, 10, 5), (2, 20, 6)")
    node.jobs.paused = False
    ask(node, f"alter table pair {statement}")
    assert ask(node, "select * from pair order by 1") == expected
    ask(node, f"update pair set b = b where a = {expected[0][0]!r}")
    assert check(node) == []
    assert not [i for i in node.epoch.schemas.newest.within().by_name["public", "pair"].indexes if "proof" in i.name]


@pytest.mark.parametrize(
    ("old", "new", "keys", "twin"),
    [
        ("numeric", "numeric(4,1)", ("1.11", "1.22"), "1.14"),
        ("text", "char(3)", ("a ", "b"), "a"),
        (
            "timestamptz",
            "timestamptz(0)",
            ("2020-01-01 00:00:00.1Z", "2020-01-01 00:00:01.1Z"),
            "2020-01-01 00:00:00.2Z",
        ),
    ],
)
@pytest.mark.parametrize("step", [None, 1, 8])
def test_keys_that_become_equal_fail_the_change(
    node: Node, old: str, new: str, keys: tuple[str, str], twin: str, step: int | None
):
    """Without USING too; no writer is refused before keys are checked."""
    ask(node, f"create table mark (k {old} primary key, n int)")
    ask(node, f"insert into mark values ('{keys[0]}', 1), ('{keys[1]}', 2)")
    before = ask(node, "select k, n from mark order by n")
    add = f"insert into mark values ('{twin}', 3)"

    def write() -> None:
        with pytest.raises(errors.UniqueViolation):
            ask(node, add)

    job_id = begin(node, f"alter table concurrently mark alter column k type {new}")
    act = {None: lambda: None, 1: lambda: ask(node, add), 8: write}[step]
    job = run_between(node, job_id, at_step(-1 if step is None else step, act))
    assert (job.failure.sqlstate if job.failure else None) == ("23505" if step == 1 else None)
    if job.failure:
        assert ask(node, "select k, n from mark where n < 3 order by n") == before
    assert ask(node, "select n from mark order by n") == [(1,), (2,), *([(3,)] if step == 1 else [])]
    assert check(node) == []
    assert [i.name for i in node.epoch.schemas.newest.within().by_name["public", "mark"].indexes] == ["mark_pkey"]


def test_row_without_a_new_key_is_not_lost(words: Node, monkeypatch: pytest.MonkeyPatch):
    """Even if the conversion gives a value when it is computed again."""
    computed = Derivation._computed

    def fail(self: Derivation, item: Any, rows: Any, duck: Any, lenient: bool = False) -> list[Any]:
        if item.converted is not None:
            raise errors.InvalidTextRepresentation(type="integer", value="b17")
        return computed(self, item, rows, duck, lenient)

    def write() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Derivation, "_computed", fail)
            ask(words, "insert into word values ('b17', 17)")

    job = run_between(words, begin(words, ALTER), at_step(8, write))
    assert job.status is JobStatus.FAILED
    assert rows(words) == [*ROWS, ("b17", 17)]


def test_cancel_during_key_computation_cancels_the_statement(words: Node, monkeypatch: pytest.MonkeyPatch):
    def cancel(*_: object, **__: object) -> None:
        raise errors.QueryCanceled(reason="user request")

    def write() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Derivation, "_computed", cancel)
            with pytest.raises(errors.QueryCanceled):
                ask(words, "insert into word values ('b17', 17)")

    job = run_between(words, begin(words, ALTER), at_step(8, write))
    assert job.status is JobStatus.SUCCEEDED
    assert rows(words) == [(1, 1), (2, 2), (3, 3)]
