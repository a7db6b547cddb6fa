"""The page of the benchmarks and the figures of the README are what the kept results give."""

import re

from bench.measures import MEASURES
from bench.page.figures import is_worse, shown
from bench.page.files import PAGE, PICTURES, README, drawn, with_figures
from bench.page.plots import fingerprint
from bench.page.text import page
from bench.page.topics import TOPICS, peer_of
from bench.store import KEPT, Line, Quantity, read_all, topic_of

AGAIN = "run `python -m bench.page`"


def test_the_page_is_what_the_results_give():
    assert PAGE.read_text() == page(read_all(KEPT), drawn()), AGAIN


def test_the_figures_of_the_readme_are_those_of_the_results():
    text = README.read_text()
    assert text == with_figures(text, read_all(KEPT)), AGAIN


def test_the_pictures_were_drawn_of_the_results():
    shown_on_page = re.findall(r"images/(\w+)\.svg", PAGE.read_text())
    assert shown_on_page
    made_of = fingerprint(read_all(KEPT))
    assert [name for name in shown_on_page if made_of not in (PICTURES / f"{name}.svg").read_text()] == [], AGAIN


def test_every_topic_has_a_place_on_the_page():
    assert {topic_of(measure.name) for measure in MEASURES} - {topic.name for topic in TOPICS} == {"headline"}


def test_every_kept_measure_is_one_that_there_is():
    known = {measure.name for measure in MEASURES}
    assert [taken.measure for taken in read_all(KEPT) if taken.measure not in known] == []


def line(unit: str, ratio: float) -> Line:
    return Line("scans.x", "ok", "", "", unit, None, None, Quantity(ratio, (ratio, ratio), 1), "", {})


def test_what_is_worse_depends_on_the_unit():
    assert [is_worse(line(unit, ratio)) for unit in ("/s", "ms") for ratio in (0.5, 2.0)] == [True, False, False, True]


def test_the_peer_is_that_of_the_longest_name():
    assert peer_of("builds.index.spark_sql") == "Spark SQL"
    assert peer_of("scans.uniform.one_column") == "DuckDB on Parquet"
    assert peer_of("growth.size.time") is None


def test_figures_have_three_digits():
    assert [shown(value, "s") for value in (0.0123, 1.234, 12.34, 1234.0)] == ["0.012 s", "1.23 s", "12.3 s", "1,234 s"]
