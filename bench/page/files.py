"""The files of the page, its pictures and the figures of the README."""

from collections.abc import Sequence
from pathlib import Path

from bench.page.headline import lines_of, short_table
from bench.page.plots import DRAWN, draw_all
from bench.page.text import IMAGES, page
from bench.peers.environment import ROOT
from bench.scale import SCALES
from bench.store import Taken, read_all

PAGE = ROOT / "docs" / "benchmarks.md"
PICTURES = PAGE.parent / IMAGES
README = ROOT / "README.md"
FIGURES_BEGIN = "<!-- figures: written by `python -m bench.page` -->\n"
FIGURES_END = "<!-- end of the figures -->\n"


def write_all(folder: Path) -> None:
    taken = read_all(folder)
    PAGE.write_text(page(taken, draw_all(taken, PICTURES)))
    README.write_text(with_figures(README.read_text(), taken))


def with_figures(readme: str, taken: Sequence[Taken]) -> str:
    """The text with the current figures between the two marks."""
    head, begin, rest = readme.partition(FIGURES_BEGIN)
    _, end, tail = rest.partition(FIGURES_END)
    assert begin, "the README has no place for figures"
    assert end, "the place for figures in the README has no end"
    figures = ["", *short_table(lines_of(taken)), "", *caption(taken), ""]
    return "".join([head, begin, *(f"{line}\n" for line in figures), end, tail])


def caption(taken: Sequence[Taken]) -> list[str]:
    measure = next(each for each in taken if each.topic == "headline")
    scale = SCALES[measure.scale]
    return [
        f"{scale.rows:,} rows, {scale.rate:g} transactions per second offered to each system,"
        f" {measure.machine['cores']} cores, {measure.day}.",
    ]


def drawn() -> list[str]:
    """The existing pictures."""
    return [name for name in DRAWN if (PICTURES / f"{name}.svg").exists()]
