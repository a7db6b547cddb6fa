"""Prose is plain English: neither pages nor Python files have the markers of tests/docs/prose.py."""

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT
from tests.docs.prose import MARKERS, in_markdown, in_python, python_files

FOLDERS = ("src", "tests", "bench", "soak", "compat", "demo", "examples")
# The list of the markers itself, examples of them, words that TPC-H prescribes, and the name of a system account.
EXEMPT = {
    ROOT / "tests/docs/prose.py",
    Path(__file__),
    ROOT / "bench/tpch/generate.py",
    ROOT / "tests/support/postgres.py",
}


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "tests/scenarios/README.md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_pages_have_no_markers(page: Path):
    assert in_markdown(page.read_text()) == []


def test_python_files_have_no_markers():
    found = {path: in_python(path.read_text()) for path in python_files(ROOT, FOLDERS) if path not in EXEMPT}
    assert {str(path.relative_to(ROOT)): markers for path, markers in found.items() if markers} == {}


@pytest.mark.parametrize("marker", MARKERS)
def test_every_marker_is_found(marker: str):
    split = marker.replace(" ", "\n# ")
    assert in_markdown(f"A {marker.replace(' ', chr(10)).capitalize()} b.") == [marker]
    assert in_python(f'"""A {marker} b."""\n') == [marker]
    assert in_python(f"# A {split} b.\nx = 1\n") == [marker]
    assert in_python(f"x = f'a {marker} {{1}}'\n") == [marker]


def test_identifiers_and_longer_words_are_not_prose():
    assert in_python("nobody = heed_locks(anew=1)\n") == []
    assert in_markdown("unheeded renewal") == []
