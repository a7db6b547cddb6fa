"""Constraints that a transaction block adds: other sessions may violate them until it commits; then it cannot."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.replica.conflicts import ConflictMap
from seachange.engine.session.session import Session
from seachange.model.ids import KeyHash, Seq
from seachange.verify.consistency import inspect
from tests.support.nodes import Place
from tests.support.open_change import OpenChange

pytestmark = pytest.mark.either_catalog

BULK_ROWS = 3_000


@pytest.fixture
def nodes(place: Place) -> Iterator[tuple[Node, Node]]:
    opened = [open_node(place.data, place.catalog, name=name) for name in ("here", "there")]
    for node in opened:
        node.jobs.paused = True
        node.maintenance.paused = True
    session = Session(opened[0])
    session.execute("create table p (id int primary key)")
    session.execute("insert into p values (1), (2)")
    session.execute("create table t (id int primary key, a int, b int, c int)")
    session.close()
    yield opened[0], opened[1]
    for node in opened:
        node.close()


@dataclass(frozen=True, slots=True)
class Rule:
    """A constraint, how it is added, a statement that meets it, and one that does not; both work without it."""

    ddl: str
    good: str
    bad: str
    sqlstate: str
    text: str
    before: str = ""


RULES = {
    "check": Rule(
        "alter table t add constraint k check (a > 0)",
        "insert into t values (1, 1, 1, 1)",
        "insert into t values (2, -5, 2, 1)",
        "23514",
        "-5",
    ),
    "check by update": Rule(
        "alter table t add constraint k check (a > 0)",
        "insert into t values (1, 1, 1, 1)",
        "update t set a = -5 where id = 7",
        "23514",
        "-5",
        before="insert into t values (7, 7, 7, 1)",
    ),
    "not null": Rule(
        "alter table t alter a set not null",
        "insert into t values (1, 1, 1, 1)",
        "insert into t (id, b) values (2, 2)",
        "23502",
        '"a"',
    ),
    "unique": Rule(
        "alter table t add constraint u unique (b)",
        "insert into t values (1, 1, 1, 1)",
        "insert into t values (2, 1, 7, 1), (3, 1, 7, 1)",
        "23505",
        "(b)=(7)",
    ),
    "foreign key": Rule(
        "alter table t add constraint f foreign key (c) references p",
        "insert into t values (1, 1, 1, 1)",
        "insert into t values (2, 1, 2, 9)",
        "23503",
        "(c)=(9)",
    ),
    "parent": Rule(
        "alter table t add constraint f foreign key (c) references p on delete cascade",
        "insert into t values (1, 1, 1, 1)",
        "delete from p where id = 2",
        "23503",
        "(id)=(2)",
        before="insert into t values (7, 7, 7, 2)",
    ),
    "parent by update": Rule(
        "alter table t add constraint f foreign key (c) references p",
        "update p set id = 3 where id = 1",
        "update p set id = 4 where id = 2",
        "23503",
        "(id)=(2)",
        before="insert into t values (7, 7, 7, 2)",
    ),
    "check in bulk": Rule(
        "alter table t add constraint k check (a > 0)",
        f"insert into t select i, i, i, 1 from generate_series(1, {BULK_ROWS}) g(i)",
        f"insert into t select i, 5000 - i, i, 1 from generate_series(4000, {4000 + BULK_ROWS}) g(i)",
        "23514",
        ", 0, ",
    ),
    "check by bulk update": Rule(
        "alter table t add constraint k check (a >= 0)",
        "update t set a = a + 1",
        "update t set a = a - 100",
        "23514",
        "-",
        before=f"insert into t select i, 0, i, 1 from generate_series(1, {BULK_ROWS}) g(i)",
    ),
    "not null in bulk": Rule(
        "alter table t alter a set not null",
        f"insert into t select i, i, i, 1 from generate_series(1, {BULK_ROWS}) g(i)",
        f"insert into t select i, nullif(i, 5000), i, 1 from generate_series(4000, {4000 + BULK_ROWS}) g(i)",
        "23502",
        '"a"',
    ),
    "not null by bulk update": Rule(
        "alter table t alter a set not null",
        "update t set a = a + 1",
        "update t set a = nullif(a, 77)",
        "23502",
        '"a"',
        before=f"insert into t select i, i, i, 1 from generate_series(1, {BULK_ROWS}) g(i)",
    ),
    "unique in bulk": Rule(
        "alter table t add constraint u unique (b)",
        f"insert into t select i, i, i, 1 from generate_series(1, {BULK_ROWS}) g(i)",
        f"insert into t select i, i, i - 3999, 1 from generate_series(4000, {4000 + BULK_ROWS}) g(i)",
        "23505",
        "(b)=",
        before="insert into t values (8000, 1, 3001, 1)",
    ),
    "unique within bulk": Rule(
        "alter table t add constraint u unique (b)",
        f"insert into t select i, i, i, 1 from generate_series(1, {BULK_ROWS}) g(i)",
        f"insert into t select i, i, i / 2 + 9000, 1 from generate_series(4000, {4000 + BULK_ROWS}) g(i)",
        "23505",
        "(b)=",
    ),
    "foreign key in bulk": Rule(
        "alter table t add constraint f foreign key (c) references p",
        f"insert into t select i, i, i, 1 + i % 2 from generate_series(1, {BULK_ROWS}) g(i)",
        f"insert into t select i, i, i, 1 + i % 3 from generate_series(4000, {4000 + BULK_ROWS}) g(i)",
        "23503",
        "(c)=(3)",
    ),
    "parents in bulk": Rule(
        "alter table t add constraint f foreign key (c) references p",
        f"insert into p select i from generate_series(10, {10 + BULK_ROWS}) g(i)",
        "delete from p",
        "23503",
        "(id)=(2)",
        before="insert into t values (7, 7, 7, 2)",
    ),
}
each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


def open_change(node: Node, rule: Rule) -> OpenChange:
    """Of a table that has no rows yet, for the sake of its index; those that the rule needs are written then."""
    change = OpenChange(node, rule.ddl)
    change.to_commit()
    if rule.before:
        run(node, rule.before)
    return change


def test_violation_is_found_when_the_node_has_forgotten_the_keys_of_its_commit(nodes: tuple[Node, Node]):
    here, there = nodes
    rule = RULES["check"]
    change = open_change(here, rule)
    run(there, rule.bad)
    here.epoch.catch_up()
    here.epoch.conflicts = ConflictMap()
    with pytest.raises(errors.SerializationFailure) as caught:
        change.commit()
    assert rule.text in str(caught.value)


def run(node: Node, *statements: str) -> list[tuple[object, ...]]:
    session = Session(node)
    try:
        for statement in statements:
            result = session.execute(statement)
        return list(result.rows)
    finally:
        session.close()


def refused(node: Node, statement: str) -> str:
    with pytest.raises(errors.Error) as caught:
        run(node, statement)
    return caught.value.sqlstate


@each_rule
def test_violation_by_another_session_fails_the_block(nodes: tuple[Node, Node], rule: Rule):
    here, there = nodes
    change = open_change(here, rule)
    run(there, rule.good)
    run(there, rule.bad)
    with pytest.raises(errors.SerializationFailure) as caught:
        change.commit()
    assert rule.text in str(caught.value)
    assert "session" in str(caught.value)
    # Nothing was lost, and no session is checked.
    run(there, "insert into t values (-1, -1, -1, null)", "delete from t where id = -1")


@pytest.mark.one_in(2)
@each_rule
def test_constraint_that_is_met_is_committed_and_checked(nodes: tuple[Node, Node], rule: Rule):
    here, there = nodes
    change = open_change(here, rule)
    run(there, rule.good)
    change.commit()
    if "cascade" not in rule.ddl:
        assert refused(there, rule.bad) == rule.sqlstate
    assert not inspect(here).anomalies


@each_rule
def test_violator_that_commits_after_the_block_fails(nodes: tuple[Node, Node], rule: Rule):
    here, there = nodes
    change = open_change(here, rule)
    violator = Session(there)
    violator.execute("begin isolation level repeatable read")
    violator.execute(rule.bad)
    change.commit()
    with pytest.raises(errors.Error) as caught:
        violator.execute("commit")
    assert caught.value.sqlstate in (rule.sqlstate, "40001")
    violator.close()
    assert not inspect(here).anomalies


@each_rule
def test_rebased_violator_fails_the_block(nodes: tuple[Node, Node], rule: Rule):
    """A transaction that was planned before the change is checked, and recorded, when it commits."""
    here, there = nodes
    is_indexed = rule.sqlstate == "23505"
    if rule.before and not is_indexed:
        run(here, rule.before)
    violator = Session(there)
    violator.execute("begin isolation level repeatable read")
    violator.execute(rule.bad)
    change = OpenChange(here, rule.ddl)
    change.to_commit()
    if rule.before and is_indexed:
        run(here, rule.before)
    violator.execute("commit")
    violator.close()
    with pytest.raises(errors.SerializationFailure) as caught:
        change.commit()
    assert rule.text in str(caught.value) or "bulk" in str(caught.value)


# Keys of what is not committed.

UNIQUE = "alter table t add constraint u unique (b)"
ONE = "insert into t values (31000, 1, 500, 1)"
OTHER = "insert into t values (31001, 1, 500, 1)"
ONE_IN_BULK = f"insert into t select i, i, i, 1 from generate_series(1, {BULK_ROWS}) g(i)"
OTHER_IN_BULK = f"insert into t select i, i, i - 9000, 1 from generate_series(9001, {9000 + BULK_ROWS}) g(i)"
UPDATE = "update t set b = b + 10400 where id >= 20000"
ROWS = "insert into t select i, i, i - 30000, 1 from generate_series(20000, 23000) g(i)"
PAIRS = {
    "rows": (ONE, OTHER),
    "row and bulk": (ONE, OTHER_IN_BULK),
    "bulk and row": (ONE_IN_BULK, OTHER),
    "bulk and bulk": (ONE_IN_BULK, OTHER_IN_BULK),
    "row and bulk update": (ONE, UPDATE),
    "bulk update and row": (UPDATE, ONE),
    "bulk and bulk update": (OTHER_IN_BULK, UPDATE),
    "bulk update and bulk": (UPDATE, OTHER_IN_BULK),
}
each_pair = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
each_place = pytest.mark.parametrize("same_node", [True, False], ids=["same node", "two nodes"])


def commit_both(one: Node, other: Node, statements: tuple[str, str]) -> None:
    """Both transactions are open when they write."""
    sessions = [Session(one), Session(other)]
    for session in sessions:
        session.execute("set lock_timeout = '500ms'")
        session.execute("begin isolation level repeatable read")
        session.execute("select count(*) from p")
    for session, statement in zip(sessions, statements, strict=True):
        session.execute(statement)
    for session in sessions:
        session.execute("commit")
        session.close()


@pytest.mark.one_in(2)
@each_pair
@each_place
def test_writers_of_one_key_of_an_uncommitted_index_neither_wait_nor_fail(
    nodes: tuple[Node, Node], pair: tuple[str, str], same_node: bool
):
    here, there = nodes
    change = OpenChange(here, UNIQUE)
    change.to_commit()
    run(there, ROWS)
    commit_both(here, here if same_node else there, pair)
    with pytest.raises(errors.SerializationFailure) as caught:
        change.commit()
    assert "duplicate key" in str(caught.value)


@pytest.mark.one_in(2)
@each_pair
@each_place
def test_writers_of_one_key_are_not_recorded_before_the_index_is_checked(
    nodes: tuple[Node, Node], pair: tuple[str, str], same_node: bool
):
    here, there = nodes
    change = OpenChange(here, UNIQUE)
    change.to_first_state()
    run(there, ROWS)
    commit_both(here, here if same_node else there, pair)
    change.to_commit()
    # A validation would have found them.
    assert run(here, "select count(*) from (select b from t group by b having count(*) > 1)") != [(0,)]
    change.commit()


@each_place
def test_writers_of_different_keys_do_not_fail_the_block(nodes: tuple[Node, Node], same_node: bool):
    here, there = nodes
    change = OpenChange(here, UNIQUE)
    change.to_commit()
    run(there, ROWS)
    elsewhere = here if same_node else there
    commit_both(here, elsewhere, (ONE_IN_BULK.replace("i, i, i, 1", "i, i, i + 50000, 1"), UPDATE))
    commit_both(here, elsewhere, (OTHER_IN_BULK.replace("- 9000", "+ 90000"), ONE.replace("500", "100")))
    run(there, "delete from t where id = 20007", "insert into t values (30000, 1, 20407, 1)")
    change.commit()
    assert not inspect(here).anomalies


FOREIGN_KEY = "alter table t add constraint f foreign key (c) references p"
CHILD = "insert into t values (1, 1, 1, 2)"
CHILDREN = f"insert into t select i, i, i, 2 from generate_series(1, {BULK_ROWS}) g(i)"
PARENT = "delete from p where id = 2"
PARENTS = "delete from p where id <> 1"
REFERENCES = {
    "child first": (CHILD, PARENT),
    "parent first": (PARENT, CHILD),
    "children first": (CHILDREN, PARENTS),
    "parents first": (PARENTS, CHILDREN),
}
each_reference = pytest.mark.parametrize("pair", REFERENCES.values(), ids=REFERENCES.keys())
MANY_PARENTS = f"insert into p select i from generate_series(10, {10 + BULK_ROWS}) g(i)"


@each_reference
@each_place
def test_child_and_parent_of_an_uncommitted_foreign_key_neither_wait_nor_fail(
    nodes: tuple[Node, Node], pair: tuple[str, str], same_node: bool
):
    here, there = nodes
    run(here, MANY_PARENTS)
    change = OpenChange(here, FOREIGN_KEY)
    change.to_commit()
    commit_both(here, here if same_node else there, pair)
    with pytest.raises(errors.SerializationFailure) as caught:
        change.commit()
    assert "foreign key" in str(caught.value)


@each_reference
def test_child_and_parent_are_not_recorded_before_the_foreign_key_is_checked(
    nodes: tuple[Node, Node], pair: tuple[str, str]
):
    here, there = nodes
    run(here, MANY_PARENTS)
    change = OpenChange(here, FOREIGN_KEY)
    change.to_first_state()
    commit_both(here, there, pair)
    change.to_commit()
    change.commit()
    assert inspect(here).anomalies


@each_reference
def test_writer_of_an_uncommitted_foreign_key_is_checked_after_its_commit(
    nodes: tuple[Node, Node], pair: tuple[str, str]
):
    """It has locked no parent, so the block that adds the foreign key fences it."""
    here, there = nodes
    run(here, MANY_PARENTS)
    change = OpenChange(here, FOREIGN_KEY)
    change.to_commit()
    late = Session(there)
    late.execute("begin isolation level repeatable read")
    late.execute(pair[0])
    change.commit()
    run(here, pair[1])
    with pytest.raises(errors.Error) as caught:
        late.execute("commit")
    assert caught.value.sqlstate in ("23503", "40001")
    late.close()
    assert not inspect(here).anomalies


class _Overtaken(ConflictMap):
    """The first time that keys are looked for, another transaction commits right after."""

    def __init__(self, overtake: Callable[[], object]) -> None:
        super().__init__()
        self._overtake: Callable[[], object] | None = overtake

    def find(self, writes: Mapping[KeyHash, Seq], shares: Mapping[KeyHash, Seq]) -> Seq | None:
        found, overtake = super().find(writes, shares), self._overtake
        if overtake is not None and writes:
            self._overtake = None
            overtake()
        return found


def test_key_that_is_committed_after_keys_were_compared_is_found(nodes: tuple[Node, Node]):
    """What the node applies between the comparison of uncommitted keys and that of the others must not be missed."""
    here, there = nodes
    change = open_change(there, RULES["unique"])
    here.epoch.catch_up()

    def overtake() -> None:
        run(there, "insert into t values (3, 1, 7, 1)")
        here.epoch.catch_up()

    writer = Session(here)
    writer.execute("begin")
    writer.execute("insert into t values (2, 1, 7, 1)")
    here.epoch.conflicts = _Overtaken(overtake)
    writer.execute("commit")
    writer.close()
    with pytest.raises(errors.SerializationFailure) as caught:
        change.commit()
    assert "(b)=(7)" in str(caught.value)
