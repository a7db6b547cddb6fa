"""The type of a referenced column changes: foreign keys are validated with the new values first."""

from collections import Counter
from collections.abc import Callable

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobStatus
from seachange.verify.consistency import check
from tests.changer.changing import ask, begin, run_between

pytestmark = pytest.mark.parametrize("catalog_kind", ["sqlite"])

# Each code becomes that of the next.
FOLLOWING = "'c' || (substr(code, 2)::int + 1)"


def prepare(node: Node, *statements: str) -> None:
    session = Session(node)
    for statement in statements:
        session.execute(statement)
    session.close()


@pytest.fixture
def key() -> str:
    return "add constraint item_code unique (code)"


# Also of codes by which the rows are known.
of_any_key = pytest.mark.parametrize(
    "key",
    ["add constraint item_code unique (code)", "alter primary key using columns (code)"],
    ids=["unique", "primary"],
)


@pytest.fixture
def codes(node: Node, key: str) -> Node:
    """Rows that refer to c1, c2 and c3."""
    node.jobs.paused = False
    prepare(
        node,
        "delete from item where id > 10",
        f"alter table item {key}",
        "create table line (id int primary key, code text references item (code) on delete cascade on update cascade)",
        "insert into line values (1, 'c1'), (2, 'c2'), (3, 'c3')",
    )
    node.jobs.paused = True
    return node


def at(acts: dict[tuple[str, int], Callable[[], object]]) -> Callable[[str], object]:
    """Runs an action when a stage is about to begin for the n-th time."""
    begun: Counter[str] = Counter()

    def between(stage: str) -> None:
        begun[stage] += 1
        acts.get((stage, begun[stage]), lambda: None)()

    return between


@of_any_key
def test_the_foreign_key_is_checked_again(codes: Node):
    job = run_between(codes, begin(codes, _alter("code || ''")), lambda stage: None)
    assert job.status is JobStatus.SUCCEEDED
    with pytest.raises(errors.MissingParent):
        ask(codes, "insert into line values (4, 'c99')")
    ask(codes, "update item set code = 'x' where id = 1")
    ask(codes, "delete from item where id = 2")
    assert ask(codes, "select id, code from line order by id") == [(1, "x"), (3, "c3")]
    assert check(codes) == []


@of_any_key
def test_dangling_reference_fails_the_change(codes: Node):
    job = run_between(codes, begin(codes, _alter("upper(code)")), lambda stage: None)
    assert job.failure is not None
    assert (job.status, job.failure.sqlstate) == (JobStatus.FAILED, "23503")
    assert 'violates foreign key constraint "line_code_fkey"' in job.failure.message
    ask(codes, "insert into line values (4, 'c4')")
    assert check(codes) == []


@of_any_key
def test_rows_go_with_those_that_they_refer_to_in_view(codes: Node, key: str):
    """Line 2 is to refer to item 1."""
    ask(codes, "insert into item values (0, 'c0', 0)")
    seen: list[object] = []

    def delete() -> None:
        with pytest.raises(errors.StillReferenced):
            ask(codes, "delete from item where id = 1")
        ask(codes, "delete from item where id = 3")
        seen.extend(ask(codes, "select id from line order by id"))

    job = run_between(codes, begin(codes, _alter(FOLLOWING)), at({("validation", 1 + key.startswith("alter")): delete}))
    assert job.status is JobStatus.SUCCEEDED
    assert seen == [(1,), (2,)]
    ask(codes, "delete from item where id = 1")
    assert ask(codes, "select id from line") == [(1,)]
    assert check(codes) == []


def test_reference_to_a_key_under_construction_conflicts_with_its_delete(codes: Node):
    """A row comes that refers, by the new key, to item 5, of which there is no entry yet; another deletes item 5 as of
    a moment before the row was there."""
    ask(codes, "delete from line")
    child, parent = Session(codes), Session(codes)
    child.execute("begin")
    refused: list[str] = []

    def refer() -> None:
        child.execute("insert into line values (6, 'c6')")

    def delete() -> None:
        parent.execute("begin isolation level repeatable read")
        parent.execute("delete from item where id = 5")
        child.execute("commit")

    def commit() -> None:
        try:
            parent.execute("commit")
        except errors.Error as problem:
            refused.append(problem.sqlstate)

    job = run_between(
        codes, begin(codes, _alter(FOLLOWING)), at({("drain", 1): refer, ("drain", 3): delete, ("mutation", 2): commit})
    )
    assert job.status is JobStatus.SUCCEEDED
    assert refused == ["40001"]
    assert check(codes) == []
    child.close()
    parent.close()


def _alter(using: str) -> str:
    return f"alter table concurrently item alter column code type text using {using}"
