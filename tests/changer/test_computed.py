"""Columns with computed values for existing rows are added while others write."""

from contextlib import ExitStack, closing

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.jobs import JobStatus
from seachange.verify.consistency import check
from tests.changer.changing import ask, begin, run_between
from tests.support.nodes import Place

pytestmark = pytest.mark.either_catalog

DRAWN = {
    "uuid": "alter table concurrently item add column u uuid default gen_random_uuid()",
    "serial": "alter table concurrently item add column u serial",
}
GENERATED = "alter table concurrently item add column g int not null generated always as (100 / category) stored"
WRITES = {
    "insert": "insert into item values (1001, 'c1001', 1)",
    "update": "update item set code = 'new' where id = 8",
    "move": "update item set id = 1009 where id = 9",
    "delete": "delete from item where id = 10",
    "load": "insert into item select i, 'c' || i, 1 from generate_series(5001, 6500) g(i)",
    "many": "update item set code = code || '!' where id between 201 and 400",
}


@pytest.fixture
def started(shop: Place, node: Node) -> Node:
    ask(node, "update item set category = category + 1")
    return node


@pytest.mark.parametrize(
    ("what", "moment"), [("uuid", "before"), ("uuid", "backfill"), ("uuid", "mutation"), ("serial", "before")]
)
def test_default_is_drawn_once_per_row(shop: Place, started: Node, what: str, moment: str):
    with ExitStack() as stack:
        there = stack.enter_context(closing(open_node(shop.data, shop.catalog, name="there")))
        late = {how: stack.enter_context(closing(Session(there))) for how in WRITES}
        begun: list[str] = []

        def write(stage: str) -> None:
            if stage == moment and not begun:
                begun.append(stage)
                for how, session in late.items():
                    session.execute("begin")
                    session.execute(WRITES[how])
            elif stage in ("backfill", "mutation"):
                ask(started, f"update item set code = '{stage}' where id between 21 and 23")
                ask(started, f"update item set code = '{stage}' where id between 41 and 150")

        write("before")
        assert run_between(started, begin(started, DRAWN[what]), write, 50).status is JobStatus.SUCCEEDED
        seen = dict(map(tuple, ask(started, "select id, u from item")))
        for session in late.values():
            session.execute("commit")
    rows = dict(map(tuple, ask(started, "select id, u from item")))
    assert None not in rows.values()
    assert len(set(rows.values())) == len(rows) == 500 + 1 - 1 + 1500
    # A row whose key is changed by a writer that does not know the column counts as a new row.
    assert {id_: u for id_, u in seen.items() if id_ not in (9, 10)} == {i: u for i, u in rows.items() if i in seen}
    assert check(started) == []


@pytest.mark.parametrize("moment", ["before", "backfill", "mutation"])
def test_generated_values_follow_the_rows(shop: Place, started: Node, moment: str):
    with ExitStack() as stack:
        there = stack.enter_context(closing(open_node(shop.data, shop.catalog, name="there")))
        late = {how: stack.enter_context(closing(Session(there))) for how in (*WRITES, "source")}
        begun: list[str] = []

        def write(stage: str) -> None:
            if stage == moment and not begun:
                begun.append(stage)
                for how, session in late.items():
                    session.execute("begin")
                    session.execute(WRITES.get(how, "update item set category = 50 where id = 11"))

        write("before")
        assert run_between(started, begin(started, GENERATED), write, 50).status is JobStatus.SUCCEEDED
        for session in late.values():
            session.execute("commit")
    assert ask(started, "select count(*), count(g) from item where g = 100 / category") == [(2000, 2000)]
    assert ask(started, "select g from item where id = 11") == [(2,)]
    assert check(started) == []


def test_a_row_without_a_value_fails_the_change(started: Node):
    def write(stage: str) -> None:
        if stage == "mutation":
            ask(started, "update item set category = 0 where id = 7")

    job = run_between(started, begin(started, GENERATED.replace("not null ", "")), write)
    assert job.failure is not None
    assert (job.status, job.failure.sqlstate) == (JobStatus.FAILED, "22012")
    assert "(id)=(7)" in job.failure.message
    assert ask(started, "select category from item where id = 7") == [(0,)]
    assert check(started) == []


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
@pytest.mark.parametrize(
    ("options", "drawn", "following"),
    [
        ("minvalue 1 maxvalue 7", [1, 2, 3, 4, 5, 6, 7], 4),
        ("minvalue -3 maxvalue 4 increment -2 start 2", [-2, 0, 2, 4], 2),
        ("minvalue 1 maxvalue 499", list(range(1, 500)), 2),
        ("minvalue 1 maxvalue 500", list(range(1, 501)), 1),
    ],
)
def test_cycling_sequence_ends_as_if_drawn_row_by_row(node: Node, options: str, drawn: list[int], following: int):
    """It ends where it would if the rows had drawn from it one by one."""
    ask(node, f"create sequence q {options} cycle")
    ask(node, "alter table item add column s int default nextval('q')")
    assert sorted({s for (s,) in ask(node, "select s from item")}) == drawn
    counts = [n for (n,) in ask(node, "select count(*) from item group by s")]
    assert max(counts) - min(counts) <= 1
    assert ask(node, "select nextval('q')") == [(following,)]
    assert check(node) == []


@pytest.mark.parametrize("catalog_kind", ["sqlite"])
def test_exhausted_sequence_fails_the_change(node: Node):
    ask(node, "create sequence q maxvalue 499")
    with pytest.raises(errors.Error) as caught:
        ask(node, "alter table item add column s int default nextval('q')")
    assert caught.value.sqlstate == "2200H"
