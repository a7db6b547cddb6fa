"""The files of `deploy` name commands, options, files and metrics that exist."""

import json
import re
import shlex
import shutil
import subprocess
import urllib.request
from importlib import import_module
from pathlib import Path

import psycopg
import pytest

from seachange.cli.main import COMMANDS, parser_of
from tests.support.serving import HOST, serving

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
# Of PromQL.
FUNCTIONS = {"sum", "max", "min", "rate", "by", "histogram_quantile", "le"}
SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? \S+$")


def commands() -> list[tuple[str, list[str]]]:
    """Every call of seachange in the files, with its place."""
    found = []
    for unit in sorted(DEPLOY.glob("systemd/*.service")):
        lines = re.findall(r"^ExecStart=\S+/seachange (.*)$", unit.read_text(), re.MULTILINE)
        found += [(unit.name, shlex.split(line)) for line in lines]
    compose = (DEPLOY / "compose.yaml").read_text()
    found += [("compose.yaml", shlex.split(line)) for line in re.findall(r"command: ((?:serve --|worker).*)", compose)]
    (line,) = re.findall(r"^CMD (\[.*\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    found.append(("Dockerfile", json.loads(line)))
    return found


def test_every_command_line_is_one_that_seachange_takes():
    called = commands()
    assert {place for place, _ in called} >= {"seachange.service", "seachange-worker@.service", "compose.yaml"}
    for place, (command, *words) in called:
        parsed = parser_of(command, import_module(COMMANDS[command][0])).parse_args(words)
        assert parsed.data, place


def test_the_image_is_built_from_files_that_there_are():
    text = (DEPLOY / "Dockerfile").read_text()
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE):
        *sources, _ = line.split()
        for source in sources:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in ignored, source
    (extras,) = re.findall(r'"\.\[(.*)\]"', text)
    declared = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert set(extras.split(",")) <= set(declared)


def test_mounted_files_exist():
    for source in re.findall(r"- (?:\")?(\./[^:]+):", (DEPLOY / "compose.yaml").read_text()):
        assert (DEPLOY / source).is_file(), source


@pytest.fixture(scope="module")
def metrics(tmp_path_factory) -> dict[str, set[str]]:
    """The labels of each metric of a server that has been used, with a schema change that waits to be published."""
    folder = tmp_path_factory.mktemp("shop") / "data"
    with serving(folder) as served, psycopg.connect(served.url, autocommit=True) as connection:
        connection.execute("create table t (id int primary key, n int)")
        connection.execute("insert into t select i, i from generate_series(1, 100) i")
        connection.execute("set seachange.publish = 'manual'")
        connection.execute("alter table concurrently t add constraint u unique (n)")
        with pytest.raises(psycopg.Error):
            connection.execute("select nosuch from t")
        with urllib.request.urlopen(f"http://{HOST}:{served.http_port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
    found: dict[str, set[str]] = {}
    for line in lines:
        if not line.startswith("#"):
            match = SAMPLE.match(line)
            assert match is not None, line
            found.setdefault(match[1], set()).update(re.findall(r'(\w+)="', match[2] or ""))
    return found


def queries() -> list[str]:
    panels = json.loads((DEPLOY / "grafana" / "seachange.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


@pytest.mark.parametrize("query", queries())
def test_a_query_of_the_dashboard_finds_its_metric_and_labels(query, metrics):
    used = re.findall(r"\bseachange_\w+", query)
    assert used
    assert query.count("(") == query.count(")")
    for metric in used:
        assert metric in metrics
    for labels in re.findall(r"by \(([^)]*)\)", query):
        # Prometheus itself adds the instance.
        known = set().union(*(metrics[metric] for metric in used)) | {"instance"}
        assert {label.strip() for label in labels.split(",")} <= known
    words = set(re.findall(r"\b[a-z_]+\b", re.sub(r"seachange_\w+|\$__rate_interval", "", query)))
    assert words - FUNCTIONS <= {"instance"}.union(*(metrics[metric] for metric in used))


def test_a_counter_is_shown_as_a_rate():
    for query in queries():
        for metric in re.findall(r"\bseachange_\w+_(?:total|bucket)\b", query):
            assert f"rate({metric}[" in query


def test_the_units_are_accepted_by_systemd(tmp_path):
    checker = shutil.which("systemd-analyze")
    if checker is None:
        pytest.skip("systemd-analyze is not installed")
    for unit in sorted((DEPLOY / "systemd").iterdir()):
        # The program and its user are not on this machine.
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(re.sub(r"^(User|Group)=.*$", "", text, flags=re.MULTILINE))
    units = [str(path) for path in sorted(tmp_path.iterdir()) if "@" not in path.name]
    done = subprocess.run([checker, "verify", "--man=no", *units], capture_output=True, text=True)
    own = [line for line in done.stderr.splitlines() if "seachange" in line]
    assert own == []
