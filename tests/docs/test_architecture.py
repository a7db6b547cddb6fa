"""docs/architecture.md maps every package, and docs/invariants.md leads to modules that state an invariant."""

import re

from tests.docs.pages import ROOT, links

SOURCE = ROOT / "src" / "seachange"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
INVARIANTS = (ROOT / "docs" / "invariants.md").read_text()
# Parts of a package that the map does not list: the two catalogs, a model, and a table of functions.
UNLISTED = {"catalog/postgres", "catalog/sqlite", "verify/model", "sql/translate/mapped"}
_PATH = re.compile(r"`(?P<path>[a-z_]+/[a-z_/]+(?:\.py)?)/?`")


def packages() -> set[str]:
    found = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("__init__.py")}
    return found - {"."} - UNLISTED


def test_the_map_has_every_package_and_room():
    assert {package for package in packages() if f"`{package}`" not in ARCHITECTURE} == set()


def test_paths_of_the_map_exist():
    """An entry point is named within its package, and checked below."""
    paths = {found["path"] for found in _PATH.finditer(ARCHITECTURE)} - {"run/execute.py"}
    assert paths
    assert {path for path in paths if not (SOURCE / path).exists() and not (ROOT / path).exists()} == set()


def test_entry_points_of_the_map_exist():
    rows = re.findall(r"^\| `(\w+)` \| .* \| ((?:`[\w/]+\.py`(?:, )?)+) \|$", ARCHITECTURE, re.MULTILINE)
    entries = [SOURCE / package / name for package, names in rows for name in re.findall(r"`([^`]+)`", names)]
    assert len(rows) == len([package for package in packages() if "/" not in package])
    assert [entry for entry in entries if not entry.exists()] == []


def test_every_listed_module_states_an_invariant():
    modules = {target for target in links(INVARIANTS) if target.startswith(("../src/", "../soak/"))}
    assert len(modules) > 60
    assert {name for name in modules if "**Invariant:**" not in (ROOT / "docs" / name).read_text()} == set()


def test_every_invariant_has_a_module_and_a_test():
    rows = [line for line in INVARIANTS.splitlines() if line.startswith("| ") and "---" not in line]
    rows = [line for line in rows if not line.startswith("| invariant |")]
    assert len(rows) > 80
    assert [line for line in rows if "](../tests/" not in line or not re.search(r"\]\(../(src|soak)/", line)] == []
