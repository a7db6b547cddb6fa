"""Plans of every statement, and of many together, as users see them; `make golden` rewrites the files."""

from pathlib import Path

import pytest

from seachange.planner.rules.release import CURRENT
from tests.planner.golden import FOLDER, Case, read_blocks, write_blocks

FILES = sorted(FOLDER.glob("*.txt"))
# A case that is longer than this is more than one case.
BYTES_MAX = 10_000


@pytest.mark.golden
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_plan_is_the_one_in_the_golden_file(path: Path, rewrite: bool):
    before = path.read_text()
    after = write_blocks(Case().answer(read_blocks(before)))
    assert len(after) <= BYTES_MAX
    if rewrite:
        path.write_text(after)
    else:
        assert after == before


def test_every_rule_is_used():
    used = set()
    for path in FILES:
        case = Case()
        case.answer(read_blocks(path.read_text()))
        used |= {dependency.rule.name for plan in case.plans for dependency in plan.graph.dependencies}
    assert [rule.name for rule in CURRENT.rules if rule.name not in used] == []
