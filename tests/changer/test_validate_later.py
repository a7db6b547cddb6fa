"""VALIDATE CONSTRAINT: a change that begins with work, so that its job exists before anything is published."""

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.model.jobs import JobStatus
from seachange.runtime.faults import FAULTS
from tests.changer.changing import ask, begin, run
from tests.support.nodes import Place

pytestmark = pytest.mark.either_catalog

ADD = "alter table item add constraint few check (category < {}) not valid"
VALIDATE = "alter table item validate constraint few"


def _states(node: Node) -> list[str]:
    node.epoch.catch_up()
    return [check.state.value for check in node.epoch.schemas.newest.within().by_name["public", "item"].checks]


def test_validate_with_valid_rows(node: Node):
    ask(node, ADD.format(7))
    assert _states(node) == ["ENFORCED"]
    ask(node, VALIDATE)
    assert _states(node) == ["PUBLIC"]


def test_validate_with_an_invalid_row(node: Node):
    ask(node, ADD.format(6))
    with pytest.raises(errors.Error) as caught:
        ask(node, VALIDATE)
    assert caught.value.sqlstate == errors.CheckViolation.sqlstate
    assert _states(node) == ["ENFORCED"]


def test_validate_as_a_job(node: Node):
    ask(node, ADD.format(7))
    job_id = begin(node, VALIDATE.replace("alter table", "alter table concurrently"))
    assert run(node, job_id).status is JobStatus.SUCCEEDED
    assert _states(node) == ["PUBLIC"]


def test_validate_conflicts_with_a_concurrent_drop(node: Node, shop: Place):
    """The constraint is dropped after the statement has been planned, and before its job exists."""
    ask(node, ADD.format(7))
    other = open_node(shop.data, shop.catalog, name="there")

    def drop() -> None:
        FAULTS.disarm()
        ask(other, "alter table item drop constraint few")

    try:
        FAULTS.arm("commit.queued", drop)
        with pytest.raises(errors.UndefinedObject):
            ask(node, VALIDATE)
    finally:
        other.close()
    assert _states(node) == []
    assert ask(node, "select id from seachange.jobs") == []
