"""Results are kept by topic; a measure that is taken again replaces its own lines and no others."""

from pathlib import Path

from bench.harness import Absence, Reading, Result, Sample, judge
from bench.scale import SMALL
from bench.store import keep, read_all


def result(name: str, value: float) -> Result:
    return judge(Reading(name, "s", Sample((value, value + 1, value + 5)), facts={"seen": value}), None)


def test_a_measure_replaces_its_own_lines(tmp_path: Path):
    keep(tmp_path, "scans.uniform", SMALL, [result("scans.uniform.x", 1), result("scans.uniform.y", 2)])
    keep(tmp_path, "scans.text", SMALL, [result("scans.text.x", 3)])
    keep(tmp_path, "scans.uniform", SMALL, [result("scans.uniform.x", 7)])
    keep(tmp_path, "bulk", SMALL, [judge(Absence("bulk", "not here"), None)])
    bulk, text, uniform = read_all(tmp_path)
    assert [taken.measure for taken in (bulk, text, uniform)] == ["bulk", "scans.text", "scans.uniform"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bulk.json", "scans.json"]
    (line,) = uniform.lines
    assert line.subject is not None
    assert (line.subject.median, line.subject.spread, line.subject.repetitions) == (8, (7, 12), 3)
    assert line.facts == {"seen": 7}
    assert bulk.lines[0].subject is None
    assert bulk.lines[0].reason == "not here"
    assert uniform.machine["cores"]
