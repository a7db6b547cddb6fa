"""The pages of the documentation, and what a reader of Markdown makes of them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_FENCE = re.compile(r"^```(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!\\)\[[^\]\[]*\]\((?P<target>[^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *$", re.MULTILINE)


class Block(NamedTuple):
    """What stands between two fences."""

    language: str
    text: str


def blocks(page: str) -> list[Block]:
    return [Block(found["language"], found["text"]) for found in _FENCE.finditer(page)]


def links(page: str) -> list[str]:
    prose = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", page))
    return [found["target"] for found in _LINK.finditer(prose)]


def anchors(page: str) -> set[str]:
    """What a link can end in to lead to a heading of the page."""
    headings = [found["text"] for found in _HEADING.finditer(_FENCE.sub("", page))]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
