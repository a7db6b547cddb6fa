"""Every interleaving of every script: no outcome without a serial equal, save at the levels that a script names."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from seachange.engine.node.node import Node
from tests.engine.database import open_quiet
from tests.isolation.script import LEVELS, Script, interleavings, read_script
from tests.isolation.tester import Outcome, ScriptRunner, is_serial

SCRIPTS = {path.stem: read_script(path) for path in sorted((Path(__file__).parent / "scripts").glob("*.txt"))}


@pytest.fixture(scope="module")
def tester(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptRunner]:
    """Sessions of one node: they wait for each other."""
    node = open_quiet(tmp_path_factory.mktemp("one_node"))
    tester = ScriptRunner([node], 3)
    yield tester
    tester.close()
    node.close()


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptRunner]:
    """Sessions of different nodes: they know of each other by the log, and of explicit locks by the catalog."""
    data = tmp_path_factory.mktemp("nodes")
    nodes: list[Node] = [open_quiet(data, str(n)) for n in range(3)]
    tester = ScriptRunner(nodes, 3)
    yield tester
    tester.close()
    for node in nodes:
        node.close()


def check(tester: ScriptRunner, script: Script, level: str, counts: Counter[str]) -> None:
    lengths = {name: len(steps) + 1 for name, steps in script.sessions.items()}
    strange: list[tuple[tuple[str, ...], Outcome]] = []
    for order in interleavings(lengths):
        outcome = tester.run(script, level, order)
        counts["interleavings run"] += 1
        if not is_serial(script, outcome):
            strange.append((order, outcome))
    counts["scripts, each at a level"] += 1
    if level in script.anomalies:
        assert strange, f"{script.name} shows no anomaly at {level}: what does it test?"
    else:
        assert not strange, f"{script.name} at {level}: {len(strange)} outcomes without a serial equal: {strange[:2]}"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", SCRIPTS)
def test_within_a_node(tester: ScriptRunner, name: str, level: str, counts: Counter[str]) -> None:
    check(tester, SCRIPTS[name], level, counts)


@pytest.mark.parametrize(
    "level", ["read committed", pytest.param("repeatable read", marks=pytest.mark.slow), "serializable"]
)
@pytest.mark.parametrize("name", SCRIPTS)
def test_across_nodes(apart: ScriptRunner, name: str, level: str, counts: Counter[str]) -> None:
    check(apart, SCRIPTS[name], level, counts)
