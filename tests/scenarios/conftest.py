from collections.abc import Iterator
from pathlib import Path

import pytest

from seachange.runtime.faults import FAULTS
from tests.scenarios.scenario import ROWS, Scenario
from tests.support.nodes import Place, open_ported_node


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Scenario]:
    """A table of a hundred items in seven categories, most of them in files, some in the catalog."""
    node = open_ported_node(Place(tmp_path))
    node.jobs.paused = True
    node.parts.inline_rows_max = ROWS // 2
    scenario = Scenario(node)
    scenario.run("create table item (id int primary key, code text, category int, n int)")
    for first, last in ((1, ROWS - 20), (ROWS - 19, ROWS)):
        scenario.run(f"insert into item select i, 'c' || i, i % 7, i from generate_series({first}, {last}) g(i)")
    yield scenario
    FAULTS.disarm()
    scenario.close()
    node.close()
