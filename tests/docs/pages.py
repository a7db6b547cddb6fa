"""The pages of the documentation, and their code blocks, links and headings."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_FENCE = re.compile(r"^```(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!\\)\[[^\]\[]*\]\((?P<target>[^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced code block."""

    language: str
    text: str


def blocks(page: str) -> list[Block]:
    return [Block(found["language"], found["text"]) for found in _FENCE.finditer(page)]


def links(page: str) -> list[str]:
    prose = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", page))
    return [found["target"] for found in _LINK.finditer(prose)]


def anchors(page: str) -> set[str]:
    """The anchors of the headings of the page."""
    headings = [found["text"] for found in _HEADING.finditer(_FENCE.sub("", page))]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
