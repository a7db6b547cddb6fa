"""DOT and Mermaid of plans are valid, whatever things are called."""

import pytest

from seachange.planner.explain.picture import dot, draw, explain_picture, mermaid
from tests.planner.explain.grammars import InvalidTextError, read_dot, read_mermaid
from tests.planner.explain.plans import CHANGE, FOO, golden_plans, world


def test_pictures_of_all_plans_are_valid():
    for name, plan, catalog in golden_plans():
        picture = draw(plan, catalog)
        boxes = {box.id for frame in picture.frames for box in frame.boxes}
        arrows = {(arrow.start, arrow.end) for arrow in picture.arrows}
        for nodes, edges in (read_dot(dot(picture)), read_mermaid(mermaid(picture))):
            assert boxes <= nodes, name
            assert arrows <= set(edges), name


def test_a_picture_shows_stages_steps_and_rules():
    made = world(FOO, foo=1000)
    text = "\n".join(explain_picture(made.plan(CHANGE), made.catalog))
    assert 's1_1 -> s1_2 [style=dashed, label="a column is written before an index stores it"];' in text
    assert 's1_1["column c4+<br/>ABSENT → WRITE_ONLY"]:::comes' in text
    assert "the point of no return" in text
    # The parts of a column that comes are told with it.
    assert "name of column" not in text


@pytest.mark.parametrize("name", ['q""x', "back\\slash", "a]b[c", "x;y#z", "<b>", "end", "{}|`", "n\\N", "a\nb", "é λ"])
def test_names_cannot_break_out(name):
    made = world(FOO, foo=1000)
    picture = draw(made.plan(f'alter table foo add column "{name}" int unique'), made.catalog)
    read_dot(dot(picture))
    read_mermaid(mermaid(picture))


@pytest.mark.parametrize(
    "line",
    ['    s1["a"b"]:::comes', "    s1[plain]:::comes", '    s1["<b>"]:::comes', '    s1["x"]:::unknown', "  s1 --> s9"],
)
def test_the_grammar_of_mermaid_can_fail(line):
    whole = ["flowchart TB", '  subgraph f["t"]', '    s1["x"]:::comes', "  end"]
    styles = ["  classDef comes fill:#dafbe1,stroke:#1a7f37,color:#1f2328"]
    read_mermaid([*whole, *styles])
    changed = [*whole, line, *styles] if "-->" in line else [*whole[:2], line, *whole[3:], *styles]
    with pytest.raises(InvalidTextError):
        read_mermaid(changed)


@pytest.mark.parametrize(
    "line", ['    s1 [label="a"b", fillcolor=red];', '    s1 [label="\\N", fillcolor=red];', "  a -> b;"]
)
def test_the_grammar_of_dot_can_fail(line):
    head = ["digraph change {", "  rankdir=TB;", "  subgraph cluster_f {", '    label="t";']
    good = [*head, '    s1 [label="x\\\\", fillcolor=red];', "  }", "}"]
    read_dot(good)
    with pytest.raises(InvalidTextError):
        read_dot([*head, line, "  }", "}"] if "label" in line else [*good[:-1], line, "}"])
