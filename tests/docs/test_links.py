"""Every link of the documentation leads somewhere, and the README leads to every page."""

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    dead = []
    for target in links(page.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        place = (page.parent / name).resolve() if name else page
        if not place.exists() or (anchor and anchor not in anchors(place.read_text())):
            dead.append(target)
    assert dead == []


def test_the_readme_leads_to_every_page():
    named = {(ROOT / target).resolve() for target in links((ROOT / "README.md").read_text())}
    assert [page.name for page in (ROOT / "docs").glob("*.md") if page not in named] == []


def test_decisions_are_numbered_as_they_say():
    """Two branches may take the same number."""
    pages = sorted((ROOT / "docs" / "adr").glob("*.md"))
    numbers = [int(page.name.split("-")[0]) for page in pages]
    assert len(set(numbers)) == len(numbers)
    assert [page.read_text().split(".")[0] for page in pages] == [f"# {number}" for number in numbers]
