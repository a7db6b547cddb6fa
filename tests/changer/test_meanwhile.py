"""Statements find their rows through every readable index while another change is running."""

import pytest

from seachange.engine.node.node import Node
from tests.changer.changing import ask, begin, run

pytestmark = pytest.mark.either_catalog


@pytest.mark.parametrize("condition", ["id in (5, 6)", "code = 'c5'", "category = 5 and id = 5"])
def test_rows_are_found_while_a_column_is_on_its_way(node: Node, condition: str):
    """The key of an index on an expression is a hidden column, which has a name of its own during the build."""
    run(node, begin(node, "create index concurrently item_code on item (code)"))
    run(node, begin(node, "create index concurrently item_category on item (category)"))
    job_id = begin(node, "create index concurrently item_lower on item (lower(code))")
    ask(node, f"update item set category = 70 where {condition}")
    ask(node, "delete from item where category = 70 and id = 5")
    run(node, job_id)
    assert ask(node, "select count(*) from item where lower(code) in ('c5', 'c6')") == [(1,)]
